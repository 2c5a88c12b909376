// SPDX-License-Identifier: MIT
// What an HDF5 file refers to outside of itself, told by its own bytes (The HDF Group, HDF5 File Format
// Specification, version 3.0). The library behind GDAL's drivers would tell it, too, but GDAL does not pass
// it on; a second library beside the one that GDAL has brought along may be another version of it; and it
// dies of damaged files, which this must not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

struct Hdf5Reference {
    enum class Kind {
        storage, ///< a dataset whose values lie in a file of their own
        mapping, ///< a virtual dataset, which shows parts of datasets of other files
        link     ///< a name that leads into another file
    };
    Kind kind = Kind::storage;
    std::string object; ///< the dataset or link, its full name: "/SITE/Reflectance/Reflectance_Data"
    std::string file;   ///< as it is written there; of a mapping "." is the file itself, and "%b" a number
    std::string inner;  ///< the dataset or object in that file; empty for storage
};

struct Hdf5Contents {
    std::vector<std::string> objects; ///< groups and datasets
    std::vector<uint64_t> headers;    ///< of these, their addresses
    std::vector<std::string> links;   ///< names that lead to another name, here or in another file
    std::vector<Hdf5Reference> references;
    bool complete = true; ///< false: a part of the file is damaged, too deep, or of a later version
};

/// Walks through groups and the headers of datasets; no values are read. Nothing for a file that is none of
/// HDF5. Never throws for what a file holds.
Hdf5Contents walk_hdf5(const std::string& path);

} // namespace hsi::raster
