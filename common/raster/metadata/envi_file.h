// SPDX-License-Identifier: MIT
// ENVI's pairs of files, data and header, for GDAL. GDAL reads a header in its own way: it stops at a line of
// 10,000 characters, takes comments within braces and quotes for values, knows neither a byte-order mark nor
// Latin-1, and chooses the header itself. Where GDAL would read a header in another way than EnviHeader, a
// file system of ours, which holds no files, shows it the data with a header in GDAL's manner: every tool,
// label image and handle of a lane then sees one scene.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/io/raw_file.h"
#include "raster/metadata/envi_header.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The data file of an ENVI header that the user named: "x", "x.img" or the like for "x.hdr", "x.img" for
/// "x.img.hdr"; among several files, the one with the size in the header. nullopt for other files.
/// \throws Error when it is a header without data, or cannot be read (read_envi_header()).
std::optional<EnviFile> envi_file_of_header(const std::string& path);

/// The data file of an ESRI header (GDAL's driver EHdr) that the user named; empty for other files, and
/// without data next to it.
std::string data_of_esri_header(const std::string& path);

/// The names that the data of an ENVI header `x.hdr` may have, in the order in which they are looked for.
std::vector<std::string> envi_data_names(const std::string& header);

/// The file, if its ENVI header says that all of it are samples: these may begin like any format, even like
/// an HDF5 file or a TIFF. nullopt for other files, for headers that state another size or an offset, and for
/// remote files. Never throws.
std::optional<EnviFile> all_samples(const std::string& path);

/// The header next to a data file, in any spelling; empty without one.
std::string envi_header_beside(const std::string& data);
/// The bytes of the file according to the header, with its offset; 0 if the header does not state them.
uint64_t envi_bytes_told(const EnviHeader& header);

/// A request to GDAL.
struct Opening {
    std::string path;
    std::string header; ///< the ENVI header in use; empty: `path` itself, or the one that GDAL finds
    unsigned kinds = GDAL_OF_RASTER; ///< GDAL_OF_RASTER, GDAL_OF_VECTOR or both
    std::vector<std::string> drivers, open_options;
};

/// GDALOpenEx for reading, as described at the top of this file; null if GDAL opens nothing, with its reasons
/// in the living GdalErrors. \throws Error for a header that cannot be read.
DatasetHandle open_in_gdal(const Opening& opening);

/// The header that an ENVI dataset has been opened with; empty for other datasets.
std::string envi_header_of(GDALDataset& dataset);
/// True if GDAL alone, as the source of a VRT for example, reads the samples that an ENVI header describes,
/// and, with `nodata`, the same missing samples; true for other files, too. `header` as in Opening.
bool gdal_sees_pixels(const std::string& path, const std::string& header, bool nodata);

} // namespace hsi::raster
