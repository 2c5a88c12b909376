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

/// The values of -method: first the methods of detect::Method, in its order, then the methods with their own
/// operations.
enum class Approach { sam, sid, mf, cem, ace, rx, sff, mtmf };

/// The values of the options, before settings_of() combines them.
struct Options {
    Approach approach = Approach::ace;
    TargetOptions target;
    MapOptions map;
    std::string background, background_by, statistics;
    std::array<int, 2> window{0, 0}; ///< widths of the inner and the outer window, in pixels; 0: no window
    int64_t columns_per_group = 1;
    Shrinkage shrinkage;
    std::string components_text; ///< text of -nc
    Exclusion exclusion;
    std::vector<std::string> range_texts;
    Features features;
    Mixtures mixtures;
};

/// Parses the texts among the options and returns the settings. \throws UsageError if options contradict each
/// other.
Settings settings_of(const tool::Call& call, Options& o, const tool::CommonOptions& options);

/// Declares the options of -method sff.
void declare_features(tool::Builder& args, Options& o);

/// Declares the options of -method mtmf.
void declare_mixtures(tool::Builder& args, Options& o);

} // namespace hsi::detect_tool
