// SPDX-License-Identifier: MIT
// Writes a cloud-optimised GeoTIFF whose blocks all threads compress. GDAL determines the content of the
// directories. The blocks follow the directories in the order that readers of a COG expect.
#pragma once

#include "core/cancel.h"

#include <gdal_priv.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

struct CogFile {
    std::string path; ///< path of the file to write
    /// The bytes of a small COG that GDAL's driver has made from a raster with the same bands and metadata.
    /// It must have an overview if the file to write has overviews. Its size and its number of blocks may
    /// differ.
    std::string model;
    std::string stage;        ///< path of a GTiff with all pixels
    std::vector<int> factors; ///< reduction factor of each overview, ascending
    std::string resampling;   ///< GDAL's name of the resampling method for overviews
    uint64_t memory = 0;      ///< bytes that may be used to create overviews
    GDALDataType type = GDT_Unknown;
    int64_t block_side = 0;
    int level = 0;        ///< compression level; 0: the default of the codec
    int threads = 1;      ///< each thread uses two blocks and the compressed bytes of one block
    int most_threads = 1; ///< maximum number of threads for overviews, within `memory`
    const CancelFlag* cancel = nullptr;
};

/// Writes the file. The layout is "Cloud Optimized GeoTIFF", version 1.0 (OGC 21-026), with the structural
/// metadata of GDAL's COG driver. The directories come first, then the blocks of the smallest overview, of
/// the larger overviews, and finally of the image. Each block is preceded by its size, and followed by a copy
/// of its last four bytes. The bytes of the file do not depend on the number of threads. Returns false, and
/// writes nothing, if only GDAL can write the compression that `model` has. \throws Error and Cancelled.
bool write_cog(const CogFile& cog);

} // namespace hsi::raster
