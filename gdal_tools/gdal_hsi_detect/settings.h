// SPDX-License-Identifier: MIT
// The settings of gdal_hsi_detect: values of options, and the approach that they select.
#pragma once

#include "detect/fit/fit.h"
#include "detect/local/local.h"
#include "detect/pixel/pixel.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hsi::detect_tool {

using detect::Method;

// --- Settings of several approaches
// ---------------------------------------------------------------------

struct TargetOptions {
    std::string library;
    std::vector<std::string> spectra;           ///< names of the library's spectra that are used; empty: all
    std::vector<std::array<int64_t, 2>> pixels; ///< [line, sample] of each target pixel
    bool absorption = false;                    ///< -target-is-absorption
    double library_scale = 1;
    bool any_scale = false;
    tools::BandFit fit = tools::BandFit::automatic;
    bool given() const { return !library.empty() || !pixels.empty(); }
};

struct MapOptions {
    std::string path;                                       ///< path of -map; empty: no map
    std::string threshold_text;                             ///< text of -threshold
    std::optional<double> threshold, percent, false_alarms; ///< at most one of them has a value
    bool any_threshold() const { return threshold || percent || false_alarms; }
};

/// The values of -shrinkage and -nc.
struct Shrinkage {
    std::string text;         ///< text of -shrinkage
    bool best = false;        ///< -shrinkage auto
    bool ledoit_wolf = false; ///< -shrinkage ledoit-wolf
    detect::Conditioning conditioning;
    bool any() const { return best || ledoit_wolf || conditioning.shrinkage > 0; }
};

/// The values of -exclude-share and -exclude-iterations.
struct Exclusion {
    double share = 0;
    int iterations = 1;
};

/// Returns true if the scores have a known distribution, provided that there is a single background, that it
/// has a normal distribution, and that -shrinkage is not used.
inline bool is_normal(Method method, const Exclusion& exclusion) {
    return (method == Method::rx || method == Method::ace || method == Method::mf) && exclusion.share == 0;
}

// --- The approaches
// ------------------------------------------------------------------------------------

/// sam and sid, which need no background.
struct Alone {
    Method method = Method::sam;
};

/// mf, cem, ace and rx with one background for all pixels.
struct OneBackground {
    Method method = Method::ace;
    std::string statistics; ///< file of -statistics; empty: statistics of the scene
    Shrinkage shrinkage;
    Exclusion exclusion;
};

/// rx with a ring around each pixel as background. inner, outer: widths of the squares that bound the ring,
/// in pixels.
struct Rings {
    int inner = 0, outer = 0;
    double ridge_share = detect::Ring().ridge_share; ///< value of -shrinkage
};

/// mf, cem, ace and rx, where each group of pixels has its own background.
struct Groups {
    Method method = Method::ace;
    std::string by; ///< "columns", or the path of the map
    int64_t columns = 1;
    Shrinkage shrinkage;
    Exclusion exclusion;
    bool by_columns() const { return by == "columns"; }
};

/// Settings of -method sff.
struct Features {
    std::vector<raster::BandChoice> ranges; ///< ranges of targets that have no ranges in -features
    std::string path;                       ///< path of -features
    detect::FitScore score = detect::FitScore::fit;
    std::string depth; ///< path of -depth; empty: no such output
};

/// Settings of -method mtmf.
struct Mixtures {
    std::string model; ///< path of -mnf-model; empty: the components of the scene
    bool any_wavelengths = false;
    std::optional<double> most_infeasible;
    int components = 0; ///< -nc; 0: all components with at least as much signal as noise
};

struct Settings {
    std::string method; ///< text of -method
    TargetOptions target;
    MapOptions map;
    std::string background; ///< path of -background; empty: all pixels
    std::variant<Alone, OneBackground, Rings, Groups, Features, Mixtures> how;

    /// Returns true if smaller scores are better.
    bool small_is_best() const { return std::holds_alternative<Alone>(how); }
    /// Returns true if the threshold is the score of a certain rank. All scores must then be computed before
    /// the pass that writes the outputs.
    bool ranks() const { return map.percent || (map.false_alarms && !background.empty()); }
    /// Returns the fraction that the last pass takes of the progress of all passes over scores.
    double share_of_detection() const { return ranks() ? 1.0 / 3 : 1.0; }
};

} // namespace hsi::detect_tool
