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

/// If a GeoTIFF stores the blocks of each band separately, this class assembles whole blocks and writes each
/// block once. GDAL's block cache is not used for these blocks, because it would write unfinished blocks when
/// memory is short. In other formats, RasterIO writes each tile with all bands in one call.
class BlockWriter {
  public:
    /// `memory`: bytes that unfinished blocks may use.
    BlockWriter(GDALDataset& dataset, StoreRule rule, uint64_t memory);

    void write(const Rect& core, const CubeView<float>& src); ///< \throws Error with GDAL's reason
    void finish(); ///< writes the remaining blocks, which tiles have not filled

    /// Returns the bytes of one row of blocks with all bands.
    uint64_t row_bytes() const;
    /// Returns the memory for unfinished blocks, or for GDAL's block cache if it is used instead. A tile may
    /// overlap two rows of blocks.
    uint64_t wanted_bytes() const;
    /// Returns the size of the blocks that tiles should cover completely; empty if whole rows of blocks fit
    /// in memory.
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
