// SPDX-License-Identifier: MIT
// Places for the blocks of an uncompressed TIFF, so that any number of threads and processes can write them.
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
    bool tiled = false;                         ///< a tile at the border is whole, the last strip is not
    bool apart = false;                         ///< a block holds one band; else all bands of a pixel

    int64_t planes() const { return apart ? bands : 1; }
    int64_t across() const { return (samples + block_samples - 1) / block_samples; }
    int64_t down() const { return (lines + block_lines - 1) / block_lines; }
};

/// The part of a TIFF before its blocks, as GDAL has made and closed it without any (SPARSE_OK).
struct TiffStart {
    int64_t end = 0;      ///< of the file
    bool swapped = false; ///< not in this machine's byte order
    bool big = false;     ///< a BigTIFF
};
/// Throws Error where the file is not as GDAL leaves it.
TiffStart start_of_tiff_blocks(const std::string& path);

/// Enters places and sizes of all blocks into the directory of such a file: band after band where bands are
/// apart, line of blocks after line of blocks. Throws Error, also if the file has no room for their numbers.
void enter_tiff_blocks(const std::string& path, const TiffShape& shape, const std::vector<uint64_t>& offsets,
                       const std::vector<uint64_t>& counts);

/// Gives the blocks of a TIFF that GDAL has made and closed without any (SPARSE_OK) their places: after the
/// present end, from a page's beginning on, band after band if bands are separate, line of blocks after line
/// of blocks. Only the two arrays of the directory are written; the file does not grow. `layout` has the path
/// and the type. \return the same with all places. Throws Error if the file is not as GDAL leaves it.
WriteLayout place_tiff_blocks(WriteLayout layout, const TiffShape& shape);

} // namespace hsi::raster
