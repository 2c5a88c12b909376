// SPDX-License-Identifier: MIT
// Data of a fit of features that all pixels share, on the processor and on GPUs.
#pragma once

#include "detect/detect_simd.h"
#include "detect/fit/fit.h"

#include <cstddef>
#include <vector>

namespace hsi::detect {

/// A feature as the kernels take it.
struct FeatureToFit {
    size_t target = 0;
    FitLine line;
};

/// The features of a range, and their spectra less the mean, one row each.
struct RangeToFit {
    FitRange range;
    std::vector<FeatureToFit> features;
    std::vector<double> matrix;
};

/// The task as the workers read it.
struct FitPlan {
    /// \throws Error when the parts of the task do not go together.
    explicit FitPlan(FitTask all);
    std::vector<int> output_bands(bool map) const;

    FitTask task;
    std::vector<RangeToFit> parts; ///< by range
    size_t longest = 0, most = 0;  ///< bands, and features, of a range

  private:
    void add_range(size_t r);
};

} // namespace hsi::detect
