// SPDX-License-Identifier: MIT
#include "raster/output/block_writer.h"

#include "core/error.h"
#include "core/host_memory.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"

#include <algorithm>
#include <cstring>

namespace hsi::raster {
namespace {

constexpr size_t stripe_bytes = size_t{4} << 20;

void check(CPLErr result, const GdalErrors& errors) {
    if (result != CE_None || errors.any()) throw Error(errors.text());
}

} // namespace

BlockWriter::BlockWriter(GDALDataset& dataset, StoreRule rule, uint64_t memory)
    : m_memory(memory), m_dataset(dataset), m_rule(rule), m_bands(dataset.GetRasterCount()),
      m_samples(dataset.GetRasterXSize()), m_lines(dataset.GetRasterYSize()) {
    int bx = 1, by = 1;
    dataset.GetRasterBand(1)->GetBlockSize(&bx, &by);
    m_block_samples = bx;
    m_block_lines = by;
    m_across = (m_samples + bx - 1) / bx;
    m_block_bytes = static_cast<size_t>(m_block_samples * m_block_lines) * m_rule.sample_bytes();
    const char* interleave = dataset.GetMetadataItem("INTERLEAVE", "IMAGE_STRUCTURE");
    m_apart = m_bands == 1 || (interleave != nullptr && EQUAL(interleave, "BAND"));
    m_assemble = m_apart && dataset.GetDriver() != nullptr &&
                 EQUAL(dataset.GetDriver()->GetDescription(), "GTiff") && 2 * row_bytes() <= memory;
}

uint64_t BlockWriter::row_bytes() const {
    return static_cast<uint64_t>(m_across) * static_cast<uint64_t>(m_bands) * m_block_bytes;
}

uint64_t BlockWriter::wanted_bytes() const {
    // If a block contains all bands, the dataset keeps one block in memory in addition to GDAL's block cache.
    const uint64_t own = m_apart ? 0 : static_cast<uint64_t>(m_bands) * m_block_bytes;
    return std::min(2 * row_bytes(), m_memory) + own;
}

stream::BlockLayout BlockWriter::layout() const {
    if (m_assemble || m_block_samples >= m_samples) return {};
    return {m_block_samples, m_block_lines};
}

void BlockWriter::write(const Rect& core, const CubeView<float>& src) {
    if (m_assemble)
        assemble(core, src);
    else
        write_through(core, src);
}

void BlockWriter::write_through(const Rect& core, const CubeView<float>& src) {
    const GdalErrors errors;
    const auto samples = static_cast<size_t>(core.w);
    const auto size = static_cast<int64_t>(m_rule.sample_bytes());
    const int64_t line_bytes = core.w * size * m_bands;
    const int64_t step = m_rule.floats()
                             ? core.h
                             : std::clamp<int64_t>(static_cast<int64_t>(stripe_bytes) / line_bytes /
                                                       m_block_lines * m_block_lines,
                                                   m_block_lines, std::max(core.h, m_block_lines));
    for (int64_t y = 0; y < core.h; y += step) {
        const int64_t h = std::min(step, core.h - y);
        void* from = src.row(0, y);
        GSpacing line_space = src.line_stride * size, band_space = src.band_stride * size;
        if (m_rule.floats()) {
            for (int k = 0; k < m_bands; ++k)
                for (int64_t line = y; line < y + h; ++line)
                    m_rule.finish(src.row(k, line), samples);
        } else {
            m_scratch.resize(static_cast<size_t>(line_bytes * h));
            char* to = m_scratch.data();
            for (int k = 0; k < m_bands; ++k)
                for (int64_t line = y; line < y + h; ++line, to += core.w * size)
                    m_rule.store_line(src, k, line, 0, samples, to);
            from = m_scratch.data();
            line_space = core.w * size;
            band_space = line_space * h;
        }
        check(m_dataset.RasterIO(GF_Write, static_cast<int>(core.x), static_cast<int>(core.y + y),
                                 static_cast<int>(core.w), static_cast<int>(h), from,
                                 static_cast<int>(core.w), static_cast<int>(h), gdal_type(m_rule.type()),
                                 m_bands, nullptr, size, line_space, band_space, nullptr),
              errors);
    }
}

void BlockWriter::assemble(const Rect& core, const CubeView<float>& src) {
    for (int64_t row = core.y / m_block_lines; row * m_block_lines < core.bottom(); ++row) {
        const int64_t y0 = row * m_block_lines, y1 = std::min(y0 + m_block_lines, m_lines);
        const int64_t from = std::max(core.y, y0), to = std::min(core.bottom(), y1);
        BlockRow& blocks = m_rows[row];
        if (blocks.bytes.empty()) {
            if (!m_spare.empty()) {
                blocks.bytes = std::move(m_spare.back());
                m_spare.pop_back();
            } else {
                blocks.bytes.resize(row_bytes());
            }
        }
        const size_t size = m_rule.sample_bytes();
        for (int64_t bx = core.x / m_block_samples; bx * m_block_samples < core.right(); ++bx) {
            const int64_t x0 = bx * m_block_samples;
            const int64_t left = std::max(core.x, x0), right = std::min(core.right(), x0 + m_block_samples);
            const auto count = static_cast<size_t>(right - left);
            for (int k = 0; k < m_bands; ++k) {
                char* block = blocks.bytes.data() + static_cast<size_t>(bx * m_bands + k) * m_block_bytes;
                for (int64_t line = from; line < to; ++line)
                    m_rule.store_line(
                        src, k, line - core.y, left - core.x, count,
                        block + static_cast<size_t>((line - y0) * m_block_samples + (left - x0)) * size);
            }
        }
        blocks.pixels += core.w * (to - from);
        if (blocks.pixels == m_samples * (y1 - y0)) {
            write_row(row, blocks);
            m_spare.push_back(std::move(blocks.bytes));
            m_rows.erase(row);
        }
    }
}

void BlockWriter::write_row(int64_t row, BlockRow& blocks) {
    const GdalErrors errors;
    for (int k = 0; k < m_bands; ++k) {
        GDALRasterBand* band = m_dataset.GetRasterBand(k + 1);
        for (int64_t bx = 0; bx < m_across; ++bx)
            check(
                band->WriteBlock(static_cast<int>(bx), static_cast<int>(row),
                                 blocks.bytes.data() + static_cast<size_t>(bx * m_bands + k) * m_block_bytes),
                errors);
    }
}

void BlockWriter::finish() {
    for (auto& [row, blocks] : m_rows)
        write_row(row, blocks);
    m_rows.clear();
    m_spare.clear();
}

} // namespace hsi::raster
