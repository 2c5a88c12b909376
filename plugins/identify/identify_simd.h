// SPDX-License-Identifier: MIT
// The inner loops, compiled for every instruction set and selected at run time. They process several pixels
// at once, one pixel in each SIMD lane.
#pragma once

#include "identify/identify.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::identify {

inline constexpr size_t most_lanes = 8;

/// The values of the pixels that are processed together. Each value has `lanes` elements, one per pixel.
struct Vector {
    explicit Vector(const Plan& plan);
    static uint64_t bytes(const Plan& plan);

    std::vector<double> values; ///< v, one row per band
    std::vector<double> slots;  ///< the slots of the plan
    /// One row per span: 1 if the continuum is above 0 and the feature is not flat, otherwise 0.
    std::vector<double> open;
    std::vector<double> squares; ///< S_OO, one row per span
    std::vector<double> ratios;  ///< O - mean O of each span, in rows from first_ratio[span] on
    std::vector<size_t> first_ratio;
    /// Flags of values that have been computed for the current pixels. The first two lists have one flag per
    /// span, the third has one per fit.
    std::vector<uint8_t> ends_made, ratios_made, fits_made;
    std::vector<size_t> accepted; ///< indices in Plan::rules of the rules that at least one lane satisfies
    /// Three rows for each rule in `accepted`: fit, depth, fd. The fit is -1 in lanes that do not satisfy the
    /// rule.
    std::vector<double> sums;
};

struct SimdKernels {
    size_t lanes;
    /// Evaluates all rules. Values that are needed only for rules that all pixels have already failed are not
    /// computed.
    void (*judge)(const Plan& plan, Vector& pixels);
    /// Computes all slots except the slots of the current rule. Does not evaluate the rules.
    void (*measure)(const Plan& plan, Vector& pixels);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::identify
