// SPDX-License-Identifier: MIT
// Writes tiles into a GDAL dataset, one at a time and in order.
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

/// For formats that store the blocks of each band separately, assembles whole blocks here and writes each
/// once. GDAL's block cache, which would write a block before it is full if memory is short, is not used.
/// Other formats get their tiles through RasterIO, all bands in one call.
class BlockWriter {
  public:
    /// `memory`: bytes that unfinished blocks may take.
    BlockWriter(GDALDataset& dataset, StoreRule rule, uint64_t memory);

    void write(const Rect& core, const CubeView<float>& src); ///< throws Error with GDAL's reason
    void finish();                                            ///< writes blocks that never became full

    /// Returns the bytes of one row of blocks with all bands.
    uint64_t row_bytes() const;
    /// Returns the memory for unfinished blocks (a tile may touch two rows of them), or for GDAL's block
    /// cache instead.
    uint64_t wanted_bytes() const;
    /// Returns the blocks that tiles should cover completely if rows of them do not fit in memory.
    stream::BlockLayout layout() const;

  private:
    /// A row of unfinished blocks: block (x, band) is at (x * bands + band) * block bytes.
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
    bool m_apart = true; ///< a block contains one band
    bool m_assemble = false;
    std::map<int64_t, BlockRow> m_rows;
    std::vector<std::vector<char>> m_spare; ///< buffers of finished rows
    std::vector<char> m_scratch;
};

} // namespace hsi::raster
