// SPDX-License-Identifier: MIT
// Tiles into a GDAL dataset, one at a time and in order.
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

/// Where a format keeps the blocks of each band apart, whole blocks are put together here and handed over
/// once: GDAL's block cache, which would write a block before it is full when it runs short, is not involved.
/// Other formats get their tiles through RasterIO, all bands in one call.
class BlockWriter {
  public:
    /// `memory`: bytes that unfinished blocks may take.
    BlockWriter(GDALDataset& dataset, StoreRule rule, uint64_t memory);

    void write(const Rect& core, const CubeView<float>& src); ///< throws Error with GDAL's reason
    void finish();                                            ///< hands over blocks that never became full

    /// Bytes of one row of blocks, all bands.
    uint64_t row_bytes() const;
    /// The memory for unfinished blocks (a tile may touch two rows of them), or for GDAL's block cache
    /// instead.
    uint64_t wanted_bytes() const;
    /// Blocks that tiles should cover wholly when rows of them cannot be held.
    stream::BlockLayout layout() const;

  private:
    /// A row of unfinished blocks: block (x, band) at (x * bands + band) * block bytes.
    struct BlockRow {
        std::vector<char> bytes;
        int64_t pixels = 0; ///< filled so far
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
    bool m_apart = true; ///< a block holds one band
    bool m_assemble = false;
    std::map<int64_t, BlockRow> m_rows;
    std::vector<std::vector<char>> m_spare; ///< buffers of rows that are done
    std::vector<char> m_scratch;
};

} // namespace hsi::raster
