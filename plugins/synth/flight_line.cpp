// SPDX-License-Identifier: MIT
// Lines over a landscape, in any direction and light.
#include "core/error.h"
#include "synth/hash.h"
#include "synth/synth.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace hsi::synth {
namespace {

constexpr int64_t painted_side = 32; ///< pixels each way for which the landscape is painted at once

uint64_t bits_of(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
}

class LinePainter final : public stream::Operation {
  public:
    LinePainter(const MadeScene& scene, const FlightLine& line, bool labels)
        : m_line(line), m_labels(labels), m_bands(scene.options().bands), m_samples(scene.options().samples) {
        Options quiet = scene.options();
        quiet.snr = std::numeric_limits<double>::infinity();
        m_land = std::make_shared<const MadeScene>(quiet);
        for (const double sigma : scene.noise())
            m_sigma.push_back(static_cast<float>(sigma * scene.options().scale));
        m_key = substream(scene.options().seed, 101);
        for (const double v : {line.x, line.y, line.sine})
            m_key = draw(m_key, bits_of(v));
    }
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override {
        std::vector<int> bands{m_bands};
        if (m_labels) bands.push_back(1);
        return bands;
    }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return static_cast<uint64_t>(side() * side()) * static_cast<uint64_t>(m_bands + 1) * 4;
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Lane>(*this);
    }

  private:
    /// Of the part of the landscape that a block sees.
    static int64_t side() { return painted_side * 3 / 2 + 2; }

    class Lane final : public stream::Worker {
      public:
        explicit Lane(const LinePainter& owner)
            : m(owner), m_values(static_cast<size_t>(side() * side() * m.m_bands)),
              m_classes(static_cast<size_t>(side() * side())) {}
        void process(const Tile& tile, const CubeView<float>&,
                     const std::vector<CubeView<float>>& out) override {
            const Rect& core = tile.core;
            for (int64_t y = core.y; y < core.bottom(); y += painted_side)
                for (int64_t x = core.x; x < core.right(); x += painted_side) {
                    const Rect part{x, y, std::min(painted_side, core.right() - x),
                                    std::min(painted_side, core.bottom() - y)};
                    paint(part, out[0].cut(x - core.x, y - core.y, part.w, part.h),
                          m.m_labels ? out[1].cut(x - core.x, y - core.y, part.w, part.h)
                                     : CubeView<float>{});
                }
        }

      private:
        std::pair<int64_t, int64_t> place(int64_t line, int64_t sample) const {
            const double j = static_cast<double>(sample) + 0.5, i = static_cast<double>(line) + 0.5;
            const FlightLine& f = m.m_line;
            return {static_cast<int64_t>(std::floor(f.x + f.cosine * j + f.sine * i)),
                    static_cast<int64_t>(std::floor(f.y - f.sine * j + f.cosine * i))};
        }
        void paint(const Rect& part, const CubeView<float>& cube, const CubeView<float>& labels) {
            Rect land;
            for (const int64_t line : {part.y, part.bottom() - 1})
                for (const int64_t sample : {part.x, part.right() - 1}) {
                    const auto [column, row] = place(line, sample);
                    const Rect seen{column, row, 1, 1};
                    if (land.empty()) land = seen;
                    const int64_t right = std::max(land.right(), seen.right()),
                                  bottom = std::max(land.bottom(), seen.bottom());
                    land.x = std::min(land.x, column);
                    land.y = std::min(land.y, row);
                    land.w = right - land.x;
                    land.h = bottom - land.y;
                }
            const auto values = CubeView<float>::packed(m_values.data(), m.m_bands, land.h, land.w);
            const auto classes = CubeView<float>::packed(m_classes.data(), 1, land.h, land.w);
            m.m_land->paint(land, values, labels.data ? classes : CubeView<float>{});
            for (int64_t y = 0; y < part.h; ++y)
                for (int64_t x = 0; x < part.w; ++x) {
                    const auto [column, row] = place(part.y + y, part.x + x);
                    if (labels.data) labels.at(0, y, x) = classes.at(0, row - land.y, column - land.x);
                    const double across =
                        (2 * static_cast<double>(part.x + x) + 1) / static_cast<double>(m.m_samples) - 1;
                    const auto light = static_cast<float>(m.m_line.light * (1 + m.m_line.slope * across));
                    const uint64_t pixel = draw(m.m_key, part.x + x, part.y + y);
                    for (int b = 0; b < m.m_bands; ++b)
                        cube.at(b, y, x) = values.at(b, row - land.y, column - land.x) * light +
                                           m.m_sigma[static_cast<size_t>(b)] * noise(pixel, b);
                }
        }
        /// The sum of four numbers of equal spread: nearly normal, mean 0, variance 1.
        static float noise(uint64_t pixel, int band) {
            const uint64_t h = draw(pixel, static_cast<uint64_t>(band));
            float sum = -2.0f + 2.0f / 65536;
            for (int k = 0; k < 4; ++k)
                sum += static_cast<float>((h >> (16 * k)) & 0xffffu) * 0x1p-16f;
            return sum * 1.7320508f;
        }
        const LinePainter& m;
        std::vector<float> m_values, m_classes;
    };

    const FlightLine m_line;
    const bool m_labels;
    const int m_bands;
    const int64_t m_samples;
    std::shared_ptr<const MadeScene> m_land;
    std::vector<float> m_sigma;
    uint64_t m_key = 0;
};

} // namespace

std::unique_ptr<stream::Operation> make_line_painter(const MadeScene& scene, const FlightLine& line,
                                                     bool labels) {
    const Options& o = scene.options();
    if (o.targets > 0 || o.nan_pixels > 0 || o.bad_bands > 0 || o.stripe_width > 0)
        throw UsageError("-corner: a line over a landscape has no targets, holes, stripes or bad bands",
                         "Leave -targets, -nan-pixels, -nodata-stripe and -bad-bands out.");
    return std::make_unique<LinePainter>(scene, line, labels);
}

} // namespace hsi::synth
