// SPDX-License-Identifier: MIT
// Data of a tuned filter that all pixels share, on the processor and on GPUs.
#pragma once

#include "detect/tuned/tuned.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace hsi::detect {

/// The task as the workers read it.
struct TunedPlan {
    /// \throws as make_tuned_filter().
    explicit TunedPlan(const TunedTask& task);
    std::vector<int> output_bands(bool map) const;

    const int bands, height, components; ///< height: bands used
    const size_t targets;
    const std::vector<int> used;
    std::vector<int> place; ///< of a band among those used; -1: left out
    const std::vector<double> mean, loadings;
    std::vector<double> signal;          ///< max(l - 1, 0)
    std::vector<double> places, weights; ///< targets x components: t, and (t / l) / sum(t^2 / l)
    const std::optional<double> most_infeasible;

  private:
    void add_target(const TunedTask& task, size_t k);
};

} // namespace hsi::detect
