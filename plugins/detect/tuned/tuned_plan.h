// SPDX-License-Identifier: MIT
// The data of a tuned filter that all pixels share, on the CPU and on GPUs.
#pragma once

#include "detect/tuned/tuned.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace hsi::detect {

/// A task's data in the layout that workers use.
struct TunedPlan {
    /// \throws Error or TargetIsMean as make_tuned_filter() does.
    explicit TunedPlan(const TunedTask& task);
    std::vector<int> output_bands(bool map) const;

    const int bands, height, components; ///< bands: of the cube; height: number of used bands
    const size_t targets;
    const std::vector<int> used;
    std::vector<int> place; ///< [band]: index among the used bands; -1 if not used
    const std::vector<double> mean, loadings;
    std::vector<double> signal;          ///< per component: max(l - 1, 0), where l is its eigenvalue
    std::vector<double> places, weights; ///< targets x components: t, and (t / l) / sum(t^2 / l)
    const std::optional<double> most_infeasible;

  private:
    void add_target(const TunedTask& task, size_t k);
};

} // namespace hsi::detect
