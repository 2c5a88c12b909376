// SPDX-License-Identifier: MIT
// Assigns positions to the blocks of an uncompressed TIFF in advance, so that any number of threads and
// processes can write the blocks.
#pragma once

#include "raster/io/raw_writer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

/// The shape of a TIFF and of its blocks.
struct TiffShape {
    int64_t bands = 0, lines = 0, samples = 0;
    int64_t block_lines = 0, block_samples = 0; ///< for strips, block_samples equals samples
    /// A tile at the border has full size; the last strip has only the remaining lines.
    bool tiled = false;
    bool apart = false; ///< true: each block contains one band; false: all bands of its pixels

    int64_t planes() const { return apart ? bands : 1; }
    int64_t across() const { return (samples + block_samples - 1) / block_samples; }
    int64_t down() const { return (lines + block_lines - 1) / block_lines; }
};

/// Properties of a TIFF that GDAL has created and closed without any blocks (SPARSE_OK).
struct TiffStart {
    int64_t end = 0;      ///< size of the file in bytes
    bool swapped = false; ///< the file does not have the byte order of this machine
    bool big = false;     ///< the file is a BigTIFF
};
/// Returns the properties of a TIFF without blocks. Throws Error if the file is not as GDAL writes it.
TiffStart start_of_tiff_blocks(const std::string& path);

/// Enters the positions (`offsets`) and sizes (`counts`) of all blocks into the directory of a TIFF without
/// blocks. In both lists, blocks are ordered by band if bands are separate, then by row of blocks. Throws
/// Error, also if a position is too large for a TIFF that is not a BigTIFF.
void enter_tiff_blocks(const std::string& path, const TiffShape& shape, const std::vector<uint64_t>& offsets,
                       const std::vector<uint64_t>& counts);

/// Assigns positions to the blocks of a TIFF that GDAL has created and closed without any blocks (SPARSE_OK).
/// The blocks begin on the first page boundary after the end of the file. They are ordered by band if bands
/// are separate, then by row of blocks. Only the two arrays of the directory are written; the file does not
/// grow. `layout` has the path and the data type. Returns the layout with all positions. Throws Error if the
/// file is not as GDAL writes it.
WriteLayout place_tiff_blocks(WriteLayout layout, const TiffShape& shape);

} // namespace hsi::raster
