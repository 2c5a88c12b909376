// SPDX-License-Identifier: MIT
#include "resample/resample.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "resample/resample_simd.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

namespace hsi::resample {
namespace {

constexpr int64_t vector_pixels = 16; ///< kernels process multiples of this number of pixels

class ResampleWorker final : public stream::Worker {
  public:
    ResampleWorker(int inputs, const std::vector<math::ResampledBand>& bands)
        : m_bands(bands), m_simd(simd_kernels()), m_rows(static_cast<size_t>(inputs)),
          m_tail(static_cast<size_t>(inputs * vector_pixels)) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t first = 0; first < in.samples; first += block_pixels) {
                const int64_t count = std::min(block_pixels, in.samples - first),
                              whole = count / vector_pixels * vector_pixels;
                if (whole > 0) {
                    for (size_t b = 0; b < m_rows.size(); ++b)
                        m_rows[b] = in.row(static_cast<int>(b), line) + first;
                    make(whole, line, first, out[0]);
                }
                if (whole == count) continue;
                // Vectors must not read or write past the end of the tile.
                const auto bytes = static_cast<size_t>(count - whole) * sizeof(float);
                for (size_t b = 0; b < m_rows.size(); ++b) {
                    float* const row = m_tail.data() + b * vector_pixels;
                    std::memcpy(row, in.row(static_cast<int>(b), line) + first + whole, bytes);
                    m_rows[b] = row;
                }
                make_tail(count - whole, line, first + whole, out[0]);
            }
    }

    int64_t valid = 0, invalid = 0;

  private:
    void make(int64_t count, int64_t line, int64_t sample, const CubeView<float>& out) {
        const bool holes = judge(count, count);
        for (size_t j = 0; j < m_bands.size(); ++j) {
            float* const to = out.row(static_cast<int>(j), line) + sample;
            multiply(m_bands[j], count, to);
            if (holes) blank(to, count);
        }
    }
    void make_tail(int64_t count, int64_t line, int64_t sample, const CubeView<float>& out) {
        const bool holes = judge(vector_pixels, count);
        std::array<float, vector_pixels> made{};
        for (size_t j = 0; j < m_bands.size(); ++j) {
            multiply(m_bands[j], vector_pixels, made.data());
            if (holes) blank(made.data(), count);
            std::memcpy(out.row(static_cast<int>(j), line) + sample, made.data(),
                        static_cast<size_t>(count) * sizeof(float));
        }
    }

    void multiply(const math::ResampledBand& band, int64_t count, float* to) const {
        m_simd.add_products(m_rows.data(), band.sources.data(), band.weights.data(), band.weights.size(),
                            count, to);
    }
    /// Sums magnitudes over `padded` pixels. Only the first `count` pixels are real. Returns true if one of
    /// these is invalid.
    bool judge(int64_t padded, int64_t count) {
        m_simd.add_magnitudes(m_rows.data(), m_rows.size(), padded, m_magnitude.data());
        int64_t good = 0;
        for (int64_t i = 0; i < count; ++i)
            good += is_valid_sum(m_magnitude[static_cast<size_t>(i)]);
        valid += good;
        invalid += count - good;
        return good < count;
    }
    void blank(float* row, int64_t count) const {
        for (int64_t i = 0; i < count; ++i)
            if (!is_valid_sum(m_magnitude[static_cast<size_t>(i)]))
                row[i] = std::numeric_limits<float>::quiet_NaN();
    }

    const std::vector<math::ResampledBand>& m_bands;
    const SimdKernels& m_simd;
    std::vector<const float*> m_rows;
    std::vector<float> m_tail;
    std::array<double, block_pixels> m_magnitude{};
};

class CpuResampling final : public Resampling {
  public:
    CpuResampling(int inputs, std::vector<math::ResampledBand> bands)
        : m_inputs(inputs), m_bands(std::move(bands)) {
        check_weights(inputs, m_bands);
    }
    std::vector<int> output_bands() const override { return {static_cast<int>(m_bands.size())}; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return static_cast<uint64_t>(m_inputs) * (sizeof(float*) + vector_pixels * sizeof(float)) +
               block_pixels * sizeof(double);
    }
    /// A tile of this size fits into the last-level cache of a small computer.
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<ResampleWorker>(m_inputs, m_bands);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const ResampleWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
    }

  private:
    const int m_inputs;
    const std::vector<math::ResampledBand> m_bands;
};

} // namespace

void check_weights(int inputs, const std::vector<math::ResampledBand>& bands) {
    for (const auto& band : bands)
        if (band.sources.empty() || band.sources.size() != band.weights.size() ||
            band.sources.back() >= static_cast<size_t>(inputs))
            throw Error("internal: weights of bands that there are not");
}

std::unique_ptr<Resampling> make_resampling(int inputs, std::vector<math::ResampledBand> bands) {
    return std::make_unique<CpuResampling>(inputs, std::move(bands));
}

const char* simd_target() { return simd_kernels().target; }

} // namespace hsi::resample
