// SPDX-License-Identifier: MIT
// The settings of gdal_hsi_detect: the values of its options, and the approach to scores that they select.
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
    std::vector<std::string> spectra;           ///< of the library; empty: all
    std::vector<std::array<int64_t, 2>> pixels; ///< line, sample
    bool absorption = false;                    ///< -target-is-absorption
    double library_scale = 1;
    bool any_scale = false;
    tools::BandFit fit = tools::BandFit::automatic;
    bool given() const { return !library.empty() || !pixels.empty(); }
};

struct MapOptions {
    std::string path;                                       ///< empty: no map
    std::string threshold_text;                             ///< -threshold
    std::optional<double> threshold, percent, false_alarms; ///< at most one of them
    bool any_threshold() const { return threshold || percent || false_alarms; }
};

/// -shrinkage and -nc.
struct Shrinkage {
    std::string text;         ///< -shrinkage
    bool best = false;        ///< auto
    bool ledoit_wolf = false; ///< ledoit-wolf
    detect::Conditioning conditioning;
    bool any() const { return best || ledoit_wolf || conditioning.shrinkage > 0; }
};

/// -exclude-share and -exclude-iterations.
struct Exclusion {
    double share = 0;
    int iterations = 1;
};

/// Returns whether the scores of a single background have a known distribution if the background is normal.
/// With -shrinkage they do not.
inline bool is_normal(Method method, const Exclusion& exclusion) {
    return (method == Method::rx || method == Method::ace || method == Method::mf) && exclusion.share == 0;
}

// --- The approaches
// ------------------------------------------------------------------------------------

/// sam, sid: each pixel alone.
struct Alone {
    Method method = Method::sam;
};

/// mf, cem, ace, rx with one background.
struct OneBackground {
    Method method = Method::ace;
    std::string statistics; ///< a file; empty: the scene's own
    Shrinkage shrinkage;
    Exclusion exclusion;
};

/// rx with the ring around each pixel: its inner and outer square, in pixels.
struct Rings {
    int inner = 0, outer = 0;
    double ridge_share = detect::Ring().ridge_share; ///< -shrinkage
};

/// mf, cem, ace, rx with the pixel's own group.
struct Groups {
    Method method = Method::ace;
    std::string by; ///< "columns", or the map
    int64_t columns = 1;
    Shrinkage shrinkage;
    Exclusion exclusion;
    bool by_columns() const { return by == "columns"; }
};

/// sff
struct Features {
    std::vector<raster::BandChoice> ranges; ///< for every target without its own ranges
    std::string path;                       ///< -features
    detect::FitScore score = detect::FitScore::fit;
    std::string depth; ///< an output; empty: not requested
};

/// mtmf
struct Mixtures {
    std::string model; ///< -mnf-model; empty: the scene's own components
    bool any_wavelengths = false;
    std::optional<double> most_infeasible;
    int components = 0; ///< -nc; 0: components whose noise is at most the signal
};

struct Settings {
    std::string method; ///< -method
    TargetOptions target;
    MapOptions map;
    std::string background; ///< -background; empty: all pixels
    std::variant<Alone, OneBackground, Rings, Groups, Features, Mixtures> how;

    /// Returns true if small scores are the best.
    bool small_is_best() const { return std::holds_alternative<Alone>(how); }
    /// Returns whether the threshold is one of the scores, which must be computed first.
    bool ranks() const { return map.percent || (map.false_alarms && !background.empty()); }
    double share_of_detection() const { return ranks() ? 1.0 / 3 : 1.0; } ///< of the work of all scores
};

} // namespace hsi::detect_tool
