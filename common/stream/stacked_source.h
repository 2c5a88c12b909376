// SPDX-License-Identifier: MIT
// Presents several cubes of the same size as one cube, band after band, so that an operation reads two scenes
// in one pass.
#pragma once

#include "core/error.h"
#include "stream/cube_source.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::stream {

class StackedSource final : public CubeSource {
  public:
    /// Throws Error if the sources differ in size. At least one source is required.
    explicit StackedSource(std::vector<std::shared_ptr<const CubeSource>> sources)
        : m_sources(std::move(sources)) {
        m_shape = m_sources.at(0)->shape();
        m_shape.bands = 0;
        for (const auto& s : m_sources) {
            const CubeShape shape = s->shape();
            if (shape.samples != m_shape.samples || shape.lines != m_shape.lines)
                throw Error("scenes of " + std::to_string(m_shape.samples) + "x" +
                            std::to_string(m_shape.lines) + " and " + std::to_string(shape.samples) + "x" +
                            std::to_string(shape.lines) + " pixels cannot be read together");
            m_shape.bands += shape.bands;
        }
    }
    CubeShape shape() const override { return m_shape; }
    /// Returns the largest blocks of all sources, because each read of part of a block decodes the whole
    /// block. Sources with less than an eighth of the bands of the largest source are ignored: reading their
    /// blocks in parts costs less than tiles of an unsuitable shape.
    BlockLayout layout() const override {
        int most = 0;
        for (const auto& s : m_sources)
            most = std::max(most, s->shape().bands);
        constexpr int few = 8;
        BlockLayout all;
        bool first = true;
        for (const auto& s : m_sources) {
            if (few * s->shape().bands < most) continue;
            const BlockLayout one = s->layout();
            if (std::exchange(first, false)) {
                all = one;
                continue;
            }
            all.block_lines = std::max(all.block_lines, one.block_lines);
            all.block_samples = all.block_samples <= 0 || one.block_samples <= 0
                                    ? 0
                                    : std::max(all.block_samples, one.block_samples);
        }
        return all;
    }
    std::unique_ptr<CubeReader> open_reader() const override {
        auto reader = std::make_unique<Reader>();
        for (const auto& s : m_sources)
            reader->parts.push_back({s->open_reader(), s->shape().bands});
        return reader;
    }
    uint64_t reader_bytes() const override {
        uint64_t bytes = 0;
        for (const auto& s : m_sources)
            bytes += s->reader_bytes();
        return bytes;
    }
    uint64_t window_bytes(int64_t samples, int64_t lines) const override {
        uint64_t bytes = 0;
        for (const auto& s : m_sources)
            bytes += s->window_bytes(samples, lines);
        return bytes;
    }
    uint64_t stored_bytes_per_pixel() const override {
        uint64_t bytes = 0;
        for (const auto& s : m_sources)
            bytes += s->stored_bytes_per_pixel();
        return bytes;
    }

  private:
    struct Reader final : CubeReader {
        struct Part {
            std::unique_ptr<CubeReader> reader;
            int bands;
        };
        std::vector<Part> parts;
        void read(const Rect& window, const CubeView<float>& dst) override {
            int first = 0;
            for (const Part& p : parts) {
                p.reader->read(window, CubeView<float>(dst.row(first, 0), p.bands, dst.lines, dst.samples,
                                                       dst.line_stride, dst.band_stride));
                first += p.bands;
            }
        }
        void prefetch(const Rect& window) override {
            for (const Part& p : parts)
                p.reader->prefetch(window);
        }
        bool expect(const Rect& window) override {
            bool all = !parts.empty();
            for (const Part& p : parts)
                all = p.reader->expect(window) && all;
            return all;
        }
        uint64_t look_ahead(uint64_t bytes, int threads) override {
            uint64_t held = 0;
            for (const Part& p : parts)
                held += p.reader->look_ahead(bytes / parts.size(), threads);
            return held;
        }
    };
    std::vector<std::shared_ptr<const CubeSource>> m_sources;
    CubeShape m_shape;
};

} // namespace hsi::stream
