// SPDX-License-Identifier: MIT
// The data of a feature fit that all pixels share, on the CPU and on GPUs.
#pragma once

#include "detect/detect_simd.h"
#include "detect/fit/fit.h"

#include <cstddef>
#include <vector>

namespace hsi::detect {

/// A feature in the kernels' layout.
struct FeatureToFit {
    size_t target = 0;
    FitLine line;
};

/// The features of a range; their spectra minus the mean, one per row.
struct RangeToFit {
    FitRange range;
    std::vector<FeatureToFit> features;
    std::vector<double> matrix;
};

/// The task in the workers' layout.
struct FitPlan {
    /// \throws Error if the parts of the task are inconsistent.
    explicit FitPlan(FitTask all);
    std::vector<int> output_bands(bool map) const;

    FitTask task;
    std::vector<RangeToFit> parts; ///< one per range
    size_t longest = 0, most = 0;  ///< maximum numbers of bands, and of features, of a range

  private:
    void add_range(size_t r);
};

} // namespace hsi::detect
