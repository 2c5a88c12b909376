// SPDX-License-Identifier: MIT
// The vectors with which classification multiplies pixels, on the CPU and on the GPU.
#pragma once

#include "atdca/atdca.h"

#include <vector>

namespace hsi::atdca {

struct Classifier {
    ClassifyOptions options;
    int bands = 0, targets = 0;
    std::vector<double> units; ///< targets x bands: the targets' spectra, of length 1
    std::vector<double>
        weights; ///< targets x bands: rows of the pseudo-inverse; empty unless abundances are requested

    /// Throws Error as make_classification() does.
    Classifier(const std::vector<std::vector<float>>& spectra, const ClassifyOptions& options);
    bool has_scores() const { return options.scores != ClassifyOptions::Scores::none; }
    std::vector<int> output_bands() const;
};

inline constexpr double degrees_per_radian = 180.0 / 3.141592653589793;

} // namespace hsi::atdca
