// SPDX-License-Identifier: MIT
// The inner loops, compiled for every instruction set and selected at run time. They process a vector of
// pixels, one pixel per lane.
#pragma once

#include "identify/identify.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::identify {

inline constexpr size_t most_lanes = 8;

/// The facts about a vector of pixels: `lanes` numbers per fact.
struct Vector {
    explicit Vector(const Plan& plan);
    static uint64_t bytes(const Plan& plan);

    std::vector<double> values; ///< v, one row per band
    std::vector<double> slots;  ///< of the plan
    std::vector<double>
        open; ///< of each span: 1 if the continuum is above 0 and the feature is not flat, else 0
    std::vector<double> squares; ///< of each span: S_OO
    std::vector<double> ratios;  ///< O - mean O of each span, from first_ratio[span] rows on
    std::vector<size_t> first_ratio;
    std::vector<uint8_t> ends_made, ratios_made, fits_made; ///< of spans, spans, fits
    std::vector<size_t> accepted;                           ///< indices in Plan::rules, accepted by at least
                                                            ///< one lane
    std::vector<double>
        sums; ///< for each of these rules, three rows: fit, depth, fd; fit is -1 if the rule fails
};

struct SimdKernels {
    size_t lanes;
    /// Evaluates all rules; values that only rejected pixels would need are not computed.
    void (*judge)(const Plan& plan, Vector& pixels);
    /// Computes all slots except the rule's, without a result.
    void (*measure)(const Plan& plan, Vector& pixels);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::identify
