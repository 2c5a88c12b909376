// SPDX-License-Identifier: MIT
// Cubes in memory as sources and sinks of the pipeline, and functions that make scenes.
#pragma once

#include "core/error.h"
#include "stream/cube_source.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace hsi::test {

struct Cube {
    stream::CubeShape shape;
    std::vector<float> values; ///< band-sequential

    Cube() = default;
    Cube(int64_t samples, int64_t lines, int bands, float fill = 0.0f)
        : shape{samples, lines, bands}, values(static_cast<size_t>(samples * lines * bands), fill) {}
    CubeView<float> view() {
        return CubeView<float>::packed(values.data(), shape.bands, shape.lines, shape.samples);
    }
    CubeView<const float> view() const {
        return CubeView<const float>::packed(values.data(), shape.bands, shape.lines, shape.samples);
    }
    float& at(int band, int64_t line, int64_t sample) { return view().at(band, line, sample); }
    float at(int band, int64_t line, int64_t sample) const { return view().at(band, line, sample); }
};

/// Returns smooth, positive spectra of magnitude `level`, with spatial structure and noise. The generator is
/// fixed, so the same arguments give the same scene.
inline Cube random_scene(int64_t samples, int64_t lines, int bands, uint32_t seed = 1, double noise = 0.02,
                         double level = 1.0) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::normal_distribution<double> normal;
    constexpr int materials = 5;
    std::vector<std::vector<double>> spectra(materials, std::vector<double>(static_cast<size_t>(bands)));
    for (auto& s : spectra) {
        double v = 0.3 + uniform(random);
        for (auto& x : s) {
            v = std::max(0.05, v + 0.1 * (uniform(random) - 0.5));
            x = v;
        }
    }
    Cube cube(samples, lines, bands);
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < samples; ++s) {
            const auto a = static_cast<size_t>((l / 7 + s / 5) % materials),
                       b = static_cast<size_t>((l / 11 + s / 3) % materials);
            const double mix = uniform(random) * 0.3, light = 0.5 + uniform(random);
            for (int k = 0; k < bands; ++k) {
                const auto i = static_cast<size_t>(k);
                const double clean = light * ((1 - mix) * spectra[a][i] + mix * spectra[b][i]);
                cube.at(k, l, s) = static_cast<float>(level * (clean + noise * normal(random)));
            }
        }
    return cube;
}

inline void make_invalid(Cube& cube, int64_t line, int64_t sample, int band,
                         float value = std::numeric_limits<float>::quiet_NaN()) {
    cube.at(band, line, sample) = value;
}

class MemorySource final : public stream::CubeSource {
  public:
    explicit MemorySource(const Cube& cube) : m_cube(cube) {}
    stream::CubeShape shape() const override { return m_cube.shape; }
    stream::BlockLayout layout() const override { return m_layout; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this);
    }
    void set_layout(stream::BlockLayout layout) { m_layout = layout; }
    /// Function that is called before each read; it may throw.
    std::function<void(const Rect&)> on_read;

  private:
    class Reader final : public stream::CubeReader {
      public:
        explicit Reader(const MemorySource& source) : m_source(source) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            const auto shape = m_source.shape();
            if (!Rect{0, 0, shape.samples, shape.lines}.contains(window) || dst.bands != shape.bands ||
                dst.lines != window.h || dst.samples != window.w)
                throw Error("a test read outside the scene");
            if (m_source.on_read) m_source.on_read(window);
            for (int b = 0; b < dst.bands; ++b)
                for (int64_t l = 0; l < window.h; ++l)
                    std::memcpy(dst.row(b, l), m_source.m_cube.view().row(b, window.y + l) + window.x,
                                static_cast<size_t>(window.w) * sizeof(float));
        }

      private:
        const MemorySource& m_source;
    };
    const Cube& m_cube;
    stream::BlockLayout m_layout;
};

class MemorySink final : public stream::CubeSink {
  public:
    MemorySink(int64_t samples, int64_t lines, int bands, bool concurrent = true)
        : cube(samples, lines, bands, -12345.0f), m_concurrent(concurrent) {}
    stream::CubeShape shape() const override { return cube.shape; }
    bool concurrent() const override { return m_concurrent; }
    void write(const Rect& core, const CubeView<float>& src) override {
        if (on_write) on_write(core);
        for (int b = 0; b < src.bands; ++b)
            for (int64_t l = 0; l < core.h; ++l)
                std::memcpy(cube.view().row(b, core.y + l) + core.x, src.row(b, l),
                            static_cast<size_t>(core.w) * sizeof(float));
    }
    Cube cube;
    std::function<void(const Rect&)> on_write; ///< function that is called before each write; it may throw

  private:
    bool m_concurrent;
};

/// Returns true if both cubes have equal bits, also for NaN.
inline bool identical(const Cube& a, const Cube& b) {
    return a.values.size() == b.values.size() &&
           std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

} // namespace hsi::test
