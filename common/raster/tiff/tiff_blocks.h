// SPDX-License-Identifier: MIT
// Determines positions for the blocks of an uncompressed TIFF, so that any number of threads and processes
// can write them.
#pragma once

#include "raster/io/raw_writer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

/// The facts about a file for place_tiff_blocks().
struct TiffShape {
    int64_t bands = 0, lines = 0, samples = 0;
    int64_t block_lines = 0, block_samples = 0; ///< strips: block_samples is samples
    bool tiled = false;                         ///< a tile at the border has full size, the last strip does
                                                ///< not
    bool apart = false;                         ///< a block contains one band; else all bands of a pixel

    int64_t planes() const { return apart ? bands : 1; }
    int64_t across() const { return (samples + block_samples - 1) / block_samples; }
    int64_t down() const { return (lines + block_lines - 1) / block_lines; }
};

/// The part of a TIFF before its blocks, as GDAL has created and closed it without any blocks (SPARSE_OK).
struct TiffStart {
    int64_t end = 0;      ///< of the file
    bool swapped = false; ///< not in this machine's byte order
    bool big = false;     ///< a BigTIFF
};
/// Throws Error if the file differs from what GDAL writes.
TiffStart start_of_tiff_blocks(const std::string& path);

/// Enters positions and sizes of all blocks into the directory of such a file: band by band if bands are
/// separate, row of blocks by row of blocks. Throws Error, also if the file has no room for these numbers.
void enter_tiff_blocks(const std::string& path, const TiffShape& shape, const std::vector<uint64_t>& offsets,
                       const std::vector<uint64_t>& counts);

/// Gives positions to the blocks of a TIFF that GDAL has created and closed without any blocks (SPARSE_OK):
/// after the current end, from the beginning of a page on, band by band if bands are separate, row of blocks
/// by row of blocks. Writes only the two arrays of the directory; the file does not grow. `layout` has the
/// path and the type. \return the layout with all positions. Throws Error if the file differs from what GDAL
/// writes.
WriteLayout place_tiff_blocks(WriteLayout layout, const TiffShape& shape);

} // namespace hsi::raster
