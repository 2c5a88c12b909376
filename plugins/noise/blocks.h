// SPDX-License-Identifier: MIT
// Estimates the noise in square blocks of pixels, with one block in each SIMD lane. Every sum adds one pixel
// after the other, so the result does not depend on the width of a register.
#pragma once

#include "core/cube_view.h"
#include "noise/noise.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::noise {

/// The estimate of a band in a block. For `residual` and `ssdc`: the variance of the residual, then the
/// squared coefficients of the two neighbouring bands and of the neighbouring pixel. For `deviations`: the
/// standard deviation and the mean. Missing values are NaN.
using Said = std::array<float, 4>;

/// Blocks that have only valid pixels. Their first pixels are in line `y`, at the samples `x`.
struct BlockRow {
    int64_t y = 0;
    std::vector<int64_t> x;
    std::vector<Said*> said; ///< receives the estimates of the bands, one pointer per block
};

class BlockEstimator {
  public:
    BlockEstimator(BlockMethod method, int64_t size, const std::vector<Neighbours>& neighbours);
    void estimate(const CubeView<float>& in, const BlockRow& blocks);
    static uint64_t bytes(int64_t size);

    const BlockMethod method;
    const int64_t size;
    const std::vector<Neighbours>& neighbours;
    std::vector<double> rows; ///< scratch of the kernels: pixels x lanes, for a few bands
};

} // namespace hsi::noise
