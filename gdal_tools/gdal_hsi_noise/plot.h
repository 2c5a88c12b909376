// SPDX-License-Identifier: MIT
// Plots the signal-to-noise ratio over the wavelengths.
#pragma once

#include "shared/plot.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::noise_tool {

/// A curve. The y axis is logarithmic; values of 0 or less are gaps.
struct Curve {
    std::string x_label, y_label;
    std::vector<double> x, y;    ///< x is ascending
    std::vector<char> shaded;    ///< not 0: the background at this x is grey
    std::optional<double> level; ///< y of a horizontal line
};

inline constexpr tools::Plot::Frame frame{900, 480, 90, 870, 30, 410};

tools::Plot plot_of(const Curve& curve);

} // namespace hsi::noise_tool
