// SPDX-License-Identifier: MIT
// Tiles from a source to a sink as they are, but for invalid pixels, which become NaN in every band.
#pragma once

#include "parallel/ranks.h"
#include "stream/operation.h"
#include "stream/shared.h"

#include <cmath>
#include <limits>

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
        return static_cast<uint64_t>(2 * limits.core_samples * limits.core_lines);
    }

  private:
    class CopyWorker final : public Worker {
      public:
        explicit CopyWorker(const CopyOperation& owner) : m_owner(owner) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            const auto pixels = static_cast<size_t>(tile.core.area());
            m_finite.assign(pixels, 1);
            m_some.assign(pixels, m_owner.m_zero_is_invalid ? 0 : 1);
            for (int b = 0; b < in.bands; ++b)
                for (int64_t y = 0, i = 0; y < tile.core.h; ++y)
                    for (int64_t x = 0; x < tile.core.w; ++x, ++i) {
                        const float v = in.at(b, y, x);
                        if (!std::isfinite(v)) m_finite[static_cast<size_t>(i)] = 0;
                        if (v != 0) m_some[static_cast<size_t>(i)] = 1;
                    }
            for (size_t i = 0; i < pixels; ++i) {
                m_finite[i] = m_finite[i] && m_some[i];
                valid += m_finite[i];
            }
            for (int b = 0; b < in.bands; ++b)
                for (int64_t y = 0, i = 0; y < tile.core.h; ++y)
                    for (int64_t x = 0; x < tile.core.w; ++x, ++i)
                        out[0].at(b, y, x) = m_finite[static_cast<size_t>(i)]
                                                 ? in.at(b, y, x)
                                                 : std::numeric_limits<float>::quiet_NaN();
        }
        int64_t valid = 0;

      private:
        const CopyOperation& m_owner;
        std::vector<unsigned char> m_finite, m_some;
    };
    const int m_bands;
    const bool m_zero_is_invalid;
    int64_t m_valid = 0;
};

} // namespace hsi::stream
