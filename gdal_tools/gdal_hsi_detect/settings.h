// SPDX-License-Identifier: MIT
// The settings of gdal_hsi_detect, as its options give them.
#pragma once

#include "detect/fit/fit.h"
#include "detect/pixel/pixel.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::detect_tool {

using detect::Method;

/// -method: those of detect::Method, in its order, and what has operations of its own.
enum class Approach { sam, sid, mf, cem, ace, rx, sff, mtmf };

struct Settings {
    Approach approach = Approach::ace;
    Method method = Method::ace; ///< of those that have a Detector
    std::string library, background, map, statistics;
    std::vector<std::string> spectra;           ///< of the library; empty: all
    std::vector<std::array<int64_t, 2>> pixels; ///< line, sample
    std::array<int, 2> window{0, 0};            ///< inner, outer; 0: none
    std::string threshold_text;
    std::optional<double> threshold, percent, false_alarms; ///< one of them, or none
    double library_scale = 1;
    tools::BandFit fit = tools::BandFit::automatic;
    std::string shrinkage_text, components_text;
    bool shrink_best = false; ///< -shrinkage auto
    bool ledoit_wolf = false; ///< -shrinkage ledoit-wolf
    detect::Conditioning conditioning;
    std::string background_by; ///< "columns", or the map of groups; empty: one background
    int64_t columns_per_group = 1;
    double exclude_share = 0;
    int exclude_iterations = 1;
    bool absorption = false; ///< -target-is-absorption
    bool any_scale = false, any_wavelengths = false;
    std::vector<std::string> range_texts;
    std::vector<raster::BandChoice> ranges; ///< of every target that has none of its own
    std::string features, depth;            ///< files
    detect::FitScore score = detect::FitScore::fit;
    bool has_detector() const { return approach <= Approach::rx; }
    std::string mnf_model;
    std::optional<double> most_infeasible;
    int tuned_components = 0; ///< mtmf: -nc; 0: those of a noise that is no more than the signal
    std::string method_name() const {
        return has_detector() ? detect::name_of(method) : approach == Approach::sff ? "sff" : "mtmf";
    }
    /// A mask says what statistics are made from; mtmf's are those of the scene.
    bool has_statistics() const {
        return has_background() || (approach == Approach::mtmf && mnf_model.empty());
    }
    /// Bands of dst for each target: mtmf has the infeasibility behind each score.
    int bands_a_target() const { return approach == Approach::mtmf ? 2 : 1; }
    bool has_target() const { return !has_detector() || detect::has_target(method); }
    bool has_background() const { return has_detector() && detect::has_background(method); }
    bool small_is_best() const { return has_detector() && detect::is_small_at_target(method); }
    bool takes_absorption() const {
        return has_detector() && (method == Method::mf || method == Method::ace);
    }
    bool local() const { return window[1] > 0; }
    bool grouped() const { return !background_by.empty(); }
    bool by_columns() const { return background_by == "columns"; }
    bool shrinks() const { return shrink_best || ledoit_wolf || conditioning.shrinkage > 0; }
    /// Scores of a normal background are known; with -shrinkage they are not.
    bool normal_scores() const {
        return has_detector() &&
               ((method == Method::rx && !local()) || method == Method::ace || method == Method::mf) &&
               !grouped() && exclude_share == 0;
    }
    bool any_threshold() const { return threshold || percent || false_alarms; }
    /// The threshold is one of the scores, which have to be seen first.
    bool ranks() const { return percent || (false_alarms && !background.empty()); }
    double share_of_detection() const { return ranks() ? 1.0 / 3 : 1.0; } ///< of the work of all scores
};

} // namespace hsi::detect_tool
