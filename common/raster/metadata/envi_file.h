// SPDX-License-Identifier: MIT
// ENVI's pairs of files, data and header, for GDAL. GDAL reads headers differently: it stops at a text line
// of 10,000 characters, reads comments within braces and quotes as values, supports neither a byte-order mark
// nor Latin-1, and selects the header itself. If GDAL would read a header in another way than EnviHeader, a
// file system of ours (without stored files) presents the data with a header in GDAL's form. So every tool,
// label image and reader sees the same scene.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/io/raw_file.h"
#include "raster/metadata/envi_header.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Returns the data file of an ENVI header that the user named: "x", "x.img" or the like for "x.hdr", "x.img"
/// for "x.img.hdr"; among several files, the one with the size in the header. nullopt for other files.
/// \throws Error if it is a header without data, or cannot be read (read_envi_header()).
std::optional<EnviFile> envi_file_of_header(const std::string& path);

/// Returns the data file of an ESRI header (GDAL's driver EHdr) that the user named; empty for other files,
/// and without data next to it.
std::string data_of_esri_header(const std::string& path);

/// Returns the names that the data of an ENVI header `x.hdr` may have, in the order of the search.
std::vector<std::string> envi_data_names(const std::string& header);

/// Returns the file if its ENVI header states that all of its bytes are samples; these may look like any
/// format, even like HDF5 or TIFF. nullopt for other files, for headers that state another size or an offset,
/// and for remote files. Never throws.
std::optional<EnviFile> all_samples(const std::string& path);

/// Returns the header next to a data file, in any spelling; empty without a header.
std::string envi_header_beside(const std::string& data);
/// Returns the bytes of the file according to the header, including its offset; 0 if the header does not
/// state them.
uint64_t envi_bytes_told(const EnviHeader& header);

/// A request to GDAL to open a file.
struct Opening {
    std::string path;
    std::string header; ///< the ENVI header in use; empty: `path` itself, or the one that GDAL finds
    unsigned kinds = GDAL_OF_RASTER; ///< GDAL_OF_RASTER, GDAL_OF_VECTOR or both
    std::vector<std::string> drivers, open_options;
};

/// Calls GDALOpenEx for reading, as described at the top of this file. Returns null if GDAL opens nothing;
/// its reasons are then in the existing GdalErrors. \throws Error for a header that cannot be read.
DatasetHandle open_in_gdal(const Opening& opening);

/// Returns the header with which an ENVI dataset was opened; empty for other datasets.
std::string envi_header_of(GDALDataset& dataset);
/// Returns true if GDAL alone (for example as the source of a VRT) reads the samples that an ENVI header
/// describes, and, with `nodata`, the same missing samples. Also true for other files. `header` as in
/// Opening.
bool gdal_sees_pixels(const std::string& path, const std::string& header, bool nodata);

} // namespace hsi::raster
