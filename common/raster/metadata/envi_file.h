// SPDX-License-Identifier: MIT
// ENVI's pairs of files, data and header, as GDAL is to see them. GDAL reads a header in its own way: it
// stops at a line of 10,000 characters, takes comments within braces and quotes for values, knows neither a
// byte-order mark nor Latin-1, and chooses the header itself. Where that gives anything else than EnviHeader
// reads, GDAL is shown the data beside a header in its own manner, by a file system of ours that holds
// nothing: every tool, label image and handle of a lane then sees one scene.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/io/raw_file.h"
#include "raster/metadata/envi_header.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The file that an ENVI header named by the user tells of: "x" or "x.img" and their like beside "x.hdr",
/// "x.img" beside "x.img.hdr", of the size that it tells where there are several. Nothing for other files.
/// \throws Error when it is a header and has no data, or cannot be read (read_envi_header()).
std::optional<EnviFile> envi_file_of_header(const std::string& path);

/// The data file of an ESRI header (GDAL's driver EHdr) named by the user; empty for other files, and where
/// there are no data beside it.
std::string data_of_esri_header(const std::string& path);

/// The names that the data of an ENVI header `x.hdr` may have, in the order in which they are looked for.
std::vector<std::string> envi_data_names(const std::string& header);

/// The file, where all of it are samples by the ENVI header beside it: these may begin like any format, an
/// HDF5 file or a TIFF among them. Nothing for other files, headers that tell of another size or of something
/// before the samples, and files behind a network. Never throws.
std::optional<EnviFile> all_samples(const std::string& path);

/// The header beside a file of data, of any spelling; empty when there is none.
std::string envi_header_beside(const std::string& data);
/// Bytes of the file that a header tells of, its offset counted in; 0 when it does not tell.
uint64_t envi_bytes_told(const EnviHeader& header);

/// What GDAL is asked for.
struct Opening {
    std::string path;
    std::string
        header; ///< the ENVI header that counts; empty: the one that `path` is, or whichever GDAL finds
    unsigned kinds = GDAL_OF_RASTER; ///< GDAL_OF_RASTER, GDAL_OF_VECTOR or both
    std::vector<std::string> drivers, open_options;
};

/// GDALOpenEx for reading, as the head of this file tells; null where GDAL opens nothing, with its reasons in
/// the GdalErrors that live. \throws Error for a header that cannot be read.
DatasetHandle open_in_gdal(const Opening& opening);

/// The header that an ENVI dataset has been opened with; empty when it is none.
std::string envi_header_of(GDALDataset& dataset);
/// True when GDAL by itself, as the source of a VRT for example, reads the samples that an ENVI header tells
/// of, and with `nodata` takes the same ones for none; true for other files, too. `header` as in Opening.
bool gdal_sees_pixels(const std::string& path, const std::string& header, bool nodata);

} // namespace hsi::raster
