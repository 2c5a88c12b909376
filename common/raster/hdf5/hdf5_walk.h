// SPDX-License-Identifier: MIT
// Finds the files that an HDF5 file refers to, from its bytes (The HDF Group, HDF5 File Format Specification,
// version 3.0). GDAL does not list these files. The HDF5 library is not used, because it crashes on damaged
// files, and because GDAL may contain another version of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

struct Hdf5Reference {
    enum class Kind {
        storage, ///< a dataset with its values in an external file
        mapping, ///< a virtual dataset, which shows parts of datasets of other files
        link     ///< a name that leads to another file
    };
    Kind kind = Kind::storage;
    std::string object; ///< full name of the dataset or link: "/SITE/Reflectance/Reflectance_Data"
    /// Name of the other file as written in the file. In a mapping, "." means the file itself, and "%b"
    /// stands for a number.
    std::string file;
    std::string inner; ///< dataset or object in the other file; empty for storage
};

struct Hdf5Contents {
    std::vector<std::string> objects; ///< groups and datasets
    std::vector<uint64_t> headers;    ///< address of the header of each object
    std::vector<std::string> links;   ///< links, which lead to another name in the file or to another file
    std::vector<Hdf5Reference> references;
    bool complete = true; ///< false: a part of the file is damaged, too deep, or of a later version
};

/// Reads groups and the headers of datasets, but no values, and returns what they contain. Returns an empty
/// result for a file that is not HDF5. Never throws because of the content of a file.
Hdf5Contents walk_hdf5(const std::string& path);

} // namespace hsi::raster
