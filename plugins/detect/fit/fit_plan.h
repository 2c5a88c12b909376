// SPDX-License-Identifier: MIT
// The data of a feature fit that all pixels share, on the CPU and on GPUs.
#pragma once

#include "detect/detect_simd.h"
#include "detect/fit/fit.h"

#include <cstddef>
#include <vector>

namespace hsi::detect {

/// The parameters with which kernels fit a feature of a target.
struct FeatureToFit {
    size_t target = 0;
    FitLine line;
};

/// A range, and the features of all targets in it.
struct RangeToFit {
    FitRange range;
    std::vector<FeatureToFit> features;
    std::vector<double> matrix; ///< features x bands of the range: L minus its mean
};

/// A task, and its data in the layout that workers use.
struct FitPlan {
    /// \throws Error if the parts of the task are inconsistent.
    explicit FitPlan(FitTask all);
    std::vector<int> output_bands(bool map) const;

    FitTask task;
    std::vector<RangeToFit> parts; ///< one per range
    size_t longest = 0, most = 0;  ///< greatest number of bands, and of features, in a range

  private:
    void add_range(size_t r);
};

} // namespace hsi::detect
