// SPDX-License-Identifier: MIT
// Writes tiles into a GDAL dataset, one tile at a time and in order.
#pragma once

#include "core/cube_view.h"
#include "core/rect.h"
#include "raster/sample_convert.h"
#include "stream/cube_source.h"

#include <gdal_priv.h>

#include <cstdint>
#include <map>
#include <vector>

namespace hsi::raster {

/// If a GeoTIFF stores the blocks of each band separately, and two rows of blocks fit into `memory`, this
/// class assembles whole blocks and writes each block once. GDAL's block cache is not used for these blocks,
/// because it would write unfinished blocks when memory is short. Otherwise, RasterIO writes each tile with
/// all bands.
class BlockWriter {
  public:
    /// `memory`: bytes that unfinished blocks may use.
    BlockWriter(GDALDataset& dataset, StoreRule rule, uint64_t memory);

    void write(const Rect& core, const CubeView<float>& src); ///< \throws Error with GDAL's reason
    void finish(); ///< writes the remaining blocks, which tiles have not filled

    /// Returns the bytes of one row of blocks with all bands.
    uint64_t row_bytes() const;
    /// Returns the bytes that unfinished blocks take, or the bytes that GDAL's block cache needs if it is
    /// used instead. They are enough for two rows of blocks, because a tile may overlap two rows, but at most
    /// `memory`.
    uint64_t wanted_bytes() const;
    /// Returns the size of the blocks whose borders tiles should follow. Empty if tiles need not follow
    /// blocks: rows of blocks are assembled, or a block is as wide as the raster.
    stream::BlockLayout layout() const;

  private:
    /// A row of unfinished blocks. The block of column x and band b begins at (x * bands + b) *
    /// m_block_bytes.
    struct BlockRow {
        std::vector<char> bytes;
        int64_t pixels = 0; ///< number of pixels that tiles have filled
    };
    void write_through(const Rect& core, const CubeView<float>& src);
    void assemble(const Rect& core, const CubeView<float>& src);
    void write_row(int64_t row, BlockRow& blocks);

    uint64_t m_memory;
    GDALDataset& m_dataset;
    StoreRule m_rule;
    int m_bands = 0;
    int64_t m_samples = 0, m_lines = 0, m_block_samples = 1, m_block_lines = 1, m_across = 1;
    size_t m_block_bytes = 0;
    bool m_apart = true; ///< each block contains a single band
    bool m_assemble = false;
    std::map<int64_t, BlockRow> m_rows;
    std::vector<std::vector<char>> m_spare; ///< buffers of finished rows, for reuse
    std::vector<char> m_scratch;
};

} // namespace hsi::raster
