// SPDX-License-Identifier: MIT
// Tiles from a source to a sink as they are, but for invalid pixels, which become NaN in every band.
#pragma once

#include "parallel/ranks.h"
#include "stream/operation.h"
#include "stream/shared.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hsi::stream {

class CopyOperation final : public Operation, public Divisible {
  public:
    /// zero_is_invalid: a pixel that is zero in all bands has no value.
    CopyOperation(int bands, bool zero_is_invalid) : m_bands(bands), m_zero_is_invalid(zero_is_invalid) {}
    std::vector<int> output_bands() const override { return {m_bands}; }
    std::unique_ptr<Worker> start(int, const TileLimits&) override {
        return std::make_unique<CopyWorker>(*this);
    }
    void stop(Worker& worker) override { m_valid += static_cast<const CopyWorker&>(worker).valid; }
    void exchange(parallel::Ranks& ranks) override { m_valid = ranks.sum("valid pixels", m_valid); }
    int64_t valid() const { return m_valid; } ///< pixels; complete after the pass
    uint64_t scratch_bytes(const TileLimits& limits) const override {
        return static_cast<uint64_t>(limits.core_samples) * 2 * sizeof(float);
    }

  private:
    class CopyWorker final : public Worker {
      public:
        explicit CopyWorker(const CopyOperation& owner) : m_owner(owner) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            const auto w = static_cast<size_t>(tile.core.w);
            m_wrong.resize(w);
            m_greatest.resize(w);
            for (int64_t y = 0; y < tile.core.h; ++y) {
                std::fill(m_wrong.begin(), m_wrong.end(), 0.0f);
                std::fill(m_greatest.begin(), m_greatest.end(), m_owner.m_zero_is_invalid ? 0.0f : 1.0f);
                for (int b = 0; b < in.bands; ++b)
                    look(in.row(b, y), w, m_wrong.data(), m_greatest.data());
                int64_t here = 0;
                for (size_t x = 0; x < w; ++x) {
                    if (!(m_greatest[x] > 0)) m_wrong[x] = std::numeric_limits<float>::quiet_NaN();
                    here += m_wrong[x] == 0;
                }
                for (int b = 0; b < in.bands; ++b)
                    if (here == tile.core.w)
                        std::copy_n(in.row(b, y), w, out[0].row(b, y));
                    else
                        copy_valid(in.row(b, y), m_wrong.data(), w, out[0].row(b, y));
                valid += here;
            }
        }
        int64_t valid = 0;

      private:
        /// wrong: 0, or NaN where a value is not finite. Without branches, so that a compiler takes several
        /// pixels at once.
        static void look(const float* from, size_t count, float* wrong, float* greatest) {
            for (size_t x = 0; x < count; ++x) {
                const float v = std::fabs(from[x]);
                wrong[x] += v * 0.0f;
                greatest[x] = v > greatest[x] ? v : greatest[x];
            }
        }
        static void copy_valid(const float* from, const float* wrong, size_t count, float* to) {
            for (size_t x = 0; x < count; ++x)
                to[x] = wrong[x] == 0 ? from[x] : std::numeric_limits<float>::quiet_NaN();
        }

        const CopyOperation& m_owner;
        std::vector<float> m_wrong, m_greatest; ///< of a line
    };
    const int m_bands;
    const bool m_zero_is_invalid;
    int64_t m_valid = 0;
};

} // namespace hsi::stream
