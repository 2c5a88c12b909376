// SPDX-License-Identifier: MIT
// The options of gdal_hsi_detect, and decisions that depend on several of them.
#pragma once

#include "gdal_hsi_detect/settings.h"
#include "tool/definition.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::detect_tool {

/// The values of -method: those of detect::Method, in its order, and those with separate operations.
enum class Approach { sam, sid, mf, cem, ace, rx, sff, mtmf };

/// The values of the options, one by one.
struct Options {
    Approach approach = Approach::ace;
    TargetOptions target;
    MapOptions map;
    std::string background, background_by, statistics;
    std::array<int, 2> window{0, 0}; ///< inner, outer; 0: none
    int64_t columns_per_group = 1;
    Shrinkage shrinkage;
    std::string components_text; ///< -nc
    Exclusion exclusion;
    std::vector<std::string> range_texts;
    Features features;
    Mixtures mixtures;
};

/// Returns the settings; parses the texts among the options. \throws UsageError for options that contradict
/// each other.
Settings settings_of(const tool::Call& call, Options& o, const tool::CommonOptions& options);

/// Declares the options of -method sff.
void declare_features(tool::Builder& args, Options& o);

/// Declares the options of -method mtmf.
void declare_mixtures(tool::Builder& args, Options& o);

} // namespace hsi::detect_tool
