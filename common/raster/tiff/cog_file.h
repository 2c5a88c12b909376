// SPDX-License-Identifier: MIT
// A cloud-optimised GeoTIFF whose blocks are compressed by all threads. GDAL determines its directories, and
// the blocks are written after them in the order that readers of a COG expect.
#pragma once

#include "core/cancel.h"

#include <gdal_priv.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

struct CogFile {
    std::string path;  ///< to be written
    std::string model; ///< the bytes of a COG that the driver has made from a raster with the same bands and
                       ///< metadata, with an overview if this file has any; size and blocks may differ
    std::string stage; ///< the path of a GTiff with all pixels
    std::vector<int> factors; ///< the reduction factor of each overview, rising
    std::string resampling;   ///< of the overviews, by GDAL's name
    uint64_t memory = 0;      ///< bytes that creating overviews may take
    GDALDataType type = GDT_Unknown;
    int64_t block_side = 0;
    int level = 0;        ///< of the codec; 0: the default
    int threads = 1;      ///< each thread uses two blocks and the compressed bytes of one
    int most_threads = 1; ///< for the overviews, within `memory`
    const CancelFlag* cancel = nullptr;
};

/// Writes the file. Layout: "Cloud Optimized GeoTIFF", version 1.0 (OGC 21-026), with the structural metadata
/// of GDAL's COG driver: all directories first, then the blocks of the smallest overview, of the next one,
/// and finally of the image, each between its size and its last four bytes. The file's bytes do not depend on
/// threads. \return false if the model is compressed in a way that only GDAL supports; nothing is written
/// then. \throws Error and Cancelled.
bool write_cog(const CogFile& cog);

} // namespace hsi::raster
