// SPDX-License-Identifier: MIT
// Opens ENVI files (data and header) with GDAL. GDAL reads headers differently from EnviHeader: it stops at a
// text line of 10,000 characters, and reads comments within braces and quotes as values. It supports neither
// a byte-order mark nor Latin-1, and selects the header file itself. If GDAL would read a header differently,
// it opens the data under a name of a virtual file system. There, the header has a form that GDAL reads
// correctly; no file is written. All tools, label images and readers therefore see the same scene.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/io/raw_file.h"
#include "raster/metadata/envi_header.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Returns the paths of an ENVI header that the user named, and of the data file that belongs to it. The data
/// file of "x.hdr" is "x", "x.img" or a similar name, and the data file of "x.img.hdr" is "x.img". Among
/// several files, the function selects a file with the size that the header states. nullopt if `path` is not
/// an ENVI header. \throws Error if the header has no data file or cannot be read (read_envi_header()).
std::optional<EnviFile> envi_file_of_header(const std::string& path);

/// Returns the path of the data file that belongs to an ESRI header (GDAL's driver EHdr) which the user
/// named. Empty if `path` is not an ESRI header, or if there is no data file next to the header.
std::string data_of_esri_header(const std::string& path);

/// Returns the possible names of the data file of an ENVI header `x.hdr`, in the order of the search.
std::vector<std::string> envi_data_names(const std::string& header);

/// Returns the paths of a data file and its ENVI header if the header states that the whole file consists of
/// samples. Such data may begin like a file of any format, even like HDF5 or TIFF. nullopt for other files,
/// for remote files, and for headers that state another size or an offset. Never throws.
std::optional<EnviFile> all_samples(const std::string& path);

/// Returns the path of the ENVI header next to a data file, with the extension .hdr or .HDR; empty if there
/// is no header.
std::string envi_header_beside(const std::string& data);
/// Returns the size of the data file in bytes that follows from the header, including the header offset; 0 if
/// the header does not state all numbers that are needed.
uint64_t envi_bytes_told(const EnviHeader& header);

/// A request to GDAL to open a file.
struct Opening {
    std::string path;
    std::string header; ///< path of the ENVI header; empty: GDAL's choice, or `path` is the header
    unsigned kinds = GDAL_OF_RASTER; ///< GDAL_OF_RASTER, GDAL_OF_VECTOR or both
    std::vector<std::string> drivers, open_options;
};

/// Opens a file with GDAL for reading. If the path is a header, opens its data file. ENVI headers are handled
/// as described at the top of this file. Returns null if GDAL cannot open the file; the reasons are then in
/// the caller's GdalErrors. \throws Error if a header cannot be read or has no data file, and for a pipe.
DatasetHandle open_in_gdal(const Opening& opening);

/// Returns the path of the header with which GDAL has opened an ENVI dataset; empty for other datasets.
std::string envi_header_of(GDALDataset& dataset);
/// Returns true if GDAL reads the samples that the ENVI header describes even without open_in_gdal(), for
/// example when the file is the source of a VRT. If `nodata` is true, the nodata values must also agree.
/// Returns true for files without an ENVI header. `header` has the same meaning as in Opening.
bool gdal_sees_pixels(const std::string& path, const std::string& header, bool nodata);

} // namespace hsi::raster
