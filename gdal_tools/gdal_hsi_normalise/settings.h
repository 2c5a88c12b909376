// SPDX-License-Identifier: MIT
// The options of gdal_hsi_normalise.
#pragma once

#include "gdal_hsi_normalise/geometry.h"
#include "normalise/normalise.h"
#include "tool/definition.h"

#include <array>
#include <string>
#include <vector>

namespace hsi::normalise_tool {

struct Settings {
    std::string geometry, model, angles_file, time, bins_text = "18", zenith_text = "mean";
    std::vector<std::string> angle_texts, merged, removed, applied;
    std::vector<std::array<std::string, 2>> with;
    std::array<double, 2> ndvi{0.05, 1};
    double b_r = 0;
    normalise::Method method;
    normalise::Binning binning;
    AngleSettings angles;
    bool append = false, has_source = false;
    std::vector<std::string> given; ///< names of the fit options that the user gave
};

/// Checks options against each other, and converts their texts to values. \throws UsageError.
void settle(Settings& s, const tool::Call& call);
/// Compares the given options with a model. `path`: file of the model. \throws Error with the first option
/// whose value differs from the value in the model.
void refuse_other_options(const Settings& s, const normalise::Model& model, const std::string& path);

} // namespace hsi::normalise_tool
