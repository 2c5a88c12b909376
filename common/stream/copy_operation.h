// SPDX-License-Identifier: MIT
// Copies tiles from a source to a sink, and sets invalid pixels to NaN in every band.
#pragma once

#include "core/valid_pixel.h"
#include "parallel/group.h"
#include "stream/operation.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace hsi::stream {

class CopyOperation final : public Operation {
  public:
    /// zero_is_invalid: treats a pixel that is zero in all bands as missing.
    CopyOperation(int bands, bool zero_is_invalid) : m_bands(bands), m_zero_is_invalid(zero_is_invalid) {}
    std::vector<int> output_bands() const override { return {m_bands}; }
    std::unique_ptr<Worker> start(int, const TileLimits&) override {
        return std::make_unique<CopyWorker>(*this);
    }
    void stop(Worker& worker) override { m_valid += static_cast<const CopyWorker&>(worker).valid; }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override { m_valid = ranks.sum("valid pixels", m_valid); }
    int64_t valid() const { return m_valid; } ///< number of valid pixels; complete after the pass
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
            for (int64_t y = 0; y < tile.core.h; ++y) {
                m_row.start(w);
                for (int b = 0; b < in.bands; ++b)
                    m_row.look(in.row(b, y));
                const int64_t here = m_row.judge(m_owner.m_zero_is_invalid);
                for (int b = 0; b < in.bands; ++b)
                    if (here == tile.core.w)
                        std::copy_n(in.row(b, y), w, out[0].row(b, y));
                    else
                        copy_valid(in.row(b, y), m_row, w, out[0].row(b, y));
                valid += here;
            }
        }
        int64_t valid = 0;

      private:
        static void copy_valid(const float* from, const PixelRow& row, size_t count, float* to) {
            for (size_t x = 0; x < count; ++x)
                to[x] = row.is_valid(x) ? from[x] : std::numeric_limits<float>::quiet_NaN();
        }

        const CopyOperation& m_owner;
        PixelRow m_row;
    };
    const int m_bands;
    const bool m_zero_is_invalid;
    int64_t m_valid = 0;
};

} // namespace hsi::stream
