// SPDX-License-Identifier: MIT
// Finds the pixels of a tile without halo that are valid in both cubes, and the bins of their values.
#pragma once

#include "compare/compare.h"
#include "compare/kernels_simd.h"
#include "core/valid_pixel.h"
#include "stream/operation.h"
#include "stream/value_parts.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hsi::compare {

class ValidPixels {
  public:
    static uint64_t bytes(const stream::TileLimits& t) {
        return static_cast<uint64_t>(t.core_samples * t.core_lines);
    }
    explicit ValidPixels(const stream::TileLimits& t)
        : m_valid(static_cast<size_t>(t.core_samples * t.core_lines)) {}

    /// Returns 1 for each pixel that is valid in both cubes, else 0; packed, with in.samples values per line.
    /// in: 2 x bands x parts bands.
    const uint8_t* judge(const CubeView<float>& in, int parts) {
        const int bands = in.bands / (2 * parts);
        for (int64_t y = 0; y < in.lines; ++y)
            for (int64_t x = 0; x < in.samples; x += static_cast<int64_t>(run_pixels)) {
                const int64_t n = std::min(in.samples - x, static_cast<int64_t>(run_pixels));
                first_sums(in.row(0, y) + x, in.row(bands * parts, y) + x, in.band_stride, parts, bands,
                           static_cast<size_t>(n), m_sums);
                for (int64_t i = 0; i < n; ++i)
                    m_valid[static_cast<size_t>(y * in.samples + x + i)] =
                        is_valid_sum(m_sums.square_s[i], bands > 1) &&
                        is_valid_sum(m_sums.square_t[i], bands > 1);
            }
        return m_valid.data();
    }

  private:
    RunSums m_sums{};
    std::vector<uint8_t> m_valid;
};

/// A line of a band, whose values are floats or sums of parts.
struct BandLine {
    const float* values;
    ptrdiff_t step; ///< floats from one part of a value to the next
    int parts;
    /// Selects band b of a cube.
    BandLine(const CubeView<float>& in, int parts_of_value, int b, int64_t line)
        : values(in.row(b * parts_of_value, line)), step(in.band_stride), parts(parts_of_value) {}
    double operator[](int64_t i) const {
        return parts == 1 ? static_cast<double>(values[i]) : stream::joined(values + i, step);
    }
};

/// Sets bins[i] to the bin of values[i], or -1 if valid[i] is 0.
inline void bin_line(const Binning& binning, const BandLine& values, const uint8_t* valid, int64_t n,
                     int32_t* bins) {
    for (int64_t i = 0; i < n; ++i) {
        const double v = valid[i] ? values[i] : binning.low; // avoids converting NaN to an integer
        const auto bin = static_cast<int32_t>((v - binning.low) * binning.factor);
        bins[i] = valid[i] ? std::min(bin, histogram_bins - 1) : -1;
    }
}

} // namespace hsi::compare
