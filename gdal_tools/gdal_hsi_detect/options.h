// SPDX-License-Identifier: MIT
// The options of gdal_hsi_detect, and what several of them decide together.
#pragma once

#include "gdal_hsi_detect/settings.h"
#include "tool/definition.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::detect_tool {

/// -method: those of detect::Method, in its order, and what has operations of its own.
enum class Approach { sam, sid, mf, cem, ace, rx, sff, mtmf };

/// What the options say, one by one.
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

/// Parses texts among the options, too. \throws UsageError for options that contradict one another.
Settings settings_of(const tool::Call& call, Options& o, const tool::CommonOptions& options);

/// What belongs to -method sff.
void declare_features(tool::Builder& args, Options& o);

/// What belongs to -method mtmf.
void declare_mixtures(tool::Builder& args, Options& o);

} // namespace hsi::detect_tool
