// SPDX-License-Identifier: MIT
#include "gdal_hsi_detect/options.h"

#include "core/error.h"
#include "detect/fit/fit.h"
#include "detect/local/local.h"
#include "detect/pixel/pixel.h"
#include "gdal_hsi_detect/scores.h"
#include "gdal_hsi_detect/settings.h"
#include "raster/raster_sink.h"
#include "tool/definition.h"
#include "tool/mask.h"
#include "tool/model_values.h"
#include "tool/phrases.h"
#include "tool/words.h"

#include <cmath>
#include <string>
#include <variant>

namespace hsi::detect_tool {
namespace {

using tool::Content;

/// Returns true if a detect::Detector computes the scores. The values of Method and Approach are then equal.
bool has_detector(Approach approach) { return approach <= Approach::rx; }
Method method_of(Approach approach) { return static_cast<Method>(approach); }
bool has_target(Approach approach) {
    return !has_detector(approach) || detect::has_target(method_of(approach));
}
bool has_background(Approach approach) {
    return has_detector(approach) && detect::has_background(method_of(approach));
}
std::string name_of(Approach approach) {
    return has_detector(approach)      ? detect::name_of(method_of(approach))
           : approach == Approach::sff ? "sff"
                                       : "mtmf";
}
bool local(const Options& o) { return o.window[1] > 0; }
bool grouped(const Options& o) { return !o.background_by.empty(); }
bool normal_scores(const Options& o) {
    return has_background(o.approach) && is_normal(method_of(o.approach), o.exclusion) && !local(o) &&
           !grouped(o);
}

/// Reads a threshold such as "0.1" or "99%".
void parse_threshold(Options& o) {
    const std::string& text = o.map.threshold_text;
    const bool percent = !text.empty() && text.back() == '%';
    const auto value = tool::parse_number(percent ? text.substr(0, text.size() - 1) : text);
    if (!value || !std::isfinite(*value))
        throw UsageError("-threshold: '" + text + "' is not a " + (value ? "finite " : "") + "number",
                         "Give a score, or a share of the scores: 99%.");
    (percent ? o.map.percent : o.map.threshold) = *value;
    if (percent && !(*value > 0 && *value < 100))
        throw UsageError("-threshold " + text + ": the share must be above 0 % and below 100 %",
                         "Use 99% to keep the best 1 % of the pixels.");
}

/// Reads -shrinkage. The option must have been given.
void parse_shrinkage(Options& o) {
    std::string text = o.shrinkage.text;
    const std::string prefix = "bands:";
    const bool by_bands = text.rfind(prefix, 0) == 0;
    if (by_bands) text.erase(0, prefix.size());
    o.shrinkage.best = text == "auto" && !by_bands;
    o.shrinkage.ledoit_wolf = text == "ledoit-wolf" && !by_bands;
    o.shrinkage.conditioning.by_bands = by_bands || o.shrinkage.ledoit_wolf || grouped(o);
    if (o.shrinkage.best && grouped(o))
        throw UsageError(tool::cannot_be_used_with("-shrinkage auto",
                                                   "-background-by: its share depends on the units of "
                                                   "the bands, so dark bands have little weight"),
                         "Use -shrinkage ledoit-wolf, the default with -background-by.");
    if (local(o) && (by_bands || o.shrinkage.best || o.shrinkage.ledoit_wolf))
        throw UsageError(tool::cannot_be_used_with("-shrinkage " + o.shrinkage.text, "-window"),
                         "Give the share of the mean variance to add, such as -shrinkage 0.01, or 0.");
    if (o.shrinkage.best || o.shrinkage.ledoit_wolf || (text == "none" && !by_bands)) return;
    const auto value = tool::parse_number(text);
    if (!(value && *value >= 0 && *value <= 1))
        throw UsageError(
            "-shrinkage: '" + o.shrinkage.text + "' is not a number from 0 to 1, auto, ledoit-wolf or none",
            "Use bands:0.1 to shrink towards the bands' own variances, 0.1 to shrink towards their mean.");
    o.shrinkage.conditioning.shrinkage = *value;
}

/// Checks -background-by and its options.
void check_groups(const tool::Call& call, const Options& o, const std::string& method) {
    const std::string background = "Use it with mf, cem, ace and rx, which compare with a background.";
    if (call.given("columns-per-group") && o.background_by != "columns")
        throw UsageError(tool::option_requires("-columns-per-group", "-background-by columns"));
    if (call.given("exclude-iterations") && o.exclusion.share == 0)
        throw UsageError(tool::option_requires("-exclude-iterations", "-exclude-share"));
    if (!(o.exclusion.share >= 0 && o.exclusion.share < 0.5))
        throw UsageError("-exclude-share " + number(o.exclusion.share) +
                             " is not a share from 0 to below 0.5",
                         "Use 0.02 to exclude the 2 % of the pixels with the greatest scores.");
    for (const char* const option : {"background-by", "exclude-share"}) {
        if (!call.given(option)) continue;
        const std::string name = std::string("-") + option;
        if (!has_background(o.approach))
            throw UsageError(tool::cannot_be_used_with(name, method), background);
        if (local(o))
            throw UsageError(
                tool::cannot_be_used_with(name, "-window, whose background is the surrounding pixels"),
                "Leave one of them out.");
    }
    if (o.target.absorption) {
        if (o.approach != Approach::mf && o.approach != Approach::ace)
            throw UsageError("-target-is-absorption cannot be used with " + method +
                             "; it requires -method mf or ace");
        if (o.target.library.empty())
            throw UsageError(tool::option_requires("-target-is-absorption", "-target"),
                             "The spectrum of a pixel is not an absorption.");
    }
    if (!grouped(o)) return;
    if (call.given("nc"))
        throw UsageError(tool::cannot_be_used_with("-nc", "-background-by"),
                         "Use -shrinkage ledoit-wolf for groups of few pixels.");
}

/// Reads -shrinkage and -nc.
void parse_conditioning(const tool::Call& call, Options& o, const std::string& method) {
    for (const char* name : {"shrinkage", "nc"}) {
        if (!call.given(name) || o.approach == Approach::mtmf) continue;
        const std::string option = std::string("-") + name;
        if (!has_background(o.approach))
            throw UsageError(tool::cannot_be_used_with(option, method),
                             "Use it with mf, cem, ace and rx, which compare with a background.");
        if (local(o) && option == "-nc")
            throw UsageError(tool::cannot_be_used_with("-nc", "-window"),
                             "Make components with gdal_hsi_pca first, and search them for anomalies.");
    }
    if (call.given("shrinkage"))
        parse_shrinkage(o);
    else if (grouped(o)) {
        o.shrinkage.ledoit_wolf = true;
        o.shrinkage.text = "ledoit-wolf";
    }
    if (call.given("nc") && has_detector(o.approach)) {
        const bool best = o.components_text == "auto";
        const auto value = tool::parse_number(o.components_text);
        if (!best && !(value && *value >= 1 && *value <= 65535 && *value == std::floor(*value)))
            throw UsageError("-nc: '" + o.components_text + "' is not a whole number from 1, or auto");
        o.shrinkage.conditioning.components =
            best ? detect::Conditioning::best_components : static_cast<int>(*value);
    }
    if (o.map.false_alarms && o.background.empty() && o.shrinkage.any() && !grouped(o))
        throw UsageError(
            "-false-alarms with -shrinkage requires -background: the distribution of the scores is unknown",
            "Use -nc auto instead of -shrinkage, or give -background FILE to measure its scores, or a "
            "-threshold.");
}

/// Rejects a threshold that no score can reach or that every score reaches. Such a threshold was probably
/// meant in another unit.
void check_reach(const Options& o, const std::string& method) {
    if (!o.map.threshold) return;
    constexpr double pi = 3.14159265358979323846, half_circle = 180, whole = 100;
    const double v = *o.map.threshold;
    const std::string given = "-threshold " + o.map.threshold_text + " with " + method + ": ";
    const std::string share = v > 1 && v < whole
                                  ? "For a share of the scores, add %: " + o.map.threshold_text + "%."
                                  : std::string();
    switch (o.approach) {
    case Approach::ace:
        if (v > 1 || v < -1) throw UsageError(given + "scores are between -1 and 1", share);
        break;
    case Approach::sam:
        if (v >= 0 && v <= pi) break;
        throw UsageError(given + "scores are angles in radians, from 0 to 3.14159",
                         v > 0 && v <= half_circle ? o.map.threshold_text + " degrees are " +
                                                         number(v * pi / half_circle) + " radians."
                                                   : std::string());
    case Approach::sid:
    case Approach::rx:
        if (v < 0) throw UsageError(given + "scores are never below 0");
        break;
    case Approach::sff:
        if (v < 0) throw UsageError(given + "scores are never below 0");
        if (v > 1 && o.features.score == detect::FitScore::fit)
            throw UsageError(given + "scores are between 0 and 1", share);
        break;
    default: // any threshold is possible
        break;
    }
}

void check_threshold(const tool::Call& call, const Options& o, const std::string& method) {
    check_reach(o, method);
    const char* const name = call.given("threshold") ? "-threshold" : "-false-alarms";
    if (o.map.any_threshold() && o.map.path.empty())
        throw UsageError(tool::option_requires(name, "-map"), "Give the map with -map FILE.");
    if (!has_target(o.approach) && !o.map.path.empty() && !o.map.any_threshold())
        throw UsageError("-map with -method rx requires a threshold",
                         "Give a threshold with -threshold or -false-alarms.");
    if (!o.map.false_alarms) return;
    if (!(*o.map.false_alarms > 0 && *o.map.false_alarms < 1))
        throw UsageError("-false-alarms " + number(*o.map.false_alarms) +
                         " is not a rate above 0 and below 1");
    if (!normal_scores(o) && o.background.empty())
        throw UsageError("-false-alarms with " +
                             (local(o)                ? "-window"
                              : grouped(o)            ? "-background-by"
                              : o.exclusion.share > 0 ? "-exclude-share"
                                                      : method) +
                             " requires -background: the distribution of the scores is unknown",
                         "Give -background FILE to measure its scores, or a -threshold.");
}

/// Options for which the background is computed from the scene.
constexpr const char* backgrounds_of_scene[] = {"window", "background", "background-by", "exclude-share"};

/// Checks -statistics, which replaces only the pass over the background.
void check_statistics(const tool::Call& call, const Options& o, const std::string& method) {
    if (o.statistics.empty()) return;
    if (!has_background(o.approach))
        throw UsageError(tool::cannot_be_used_with("-statistics", method),
                         "Use it with mf, cem, ace and rx, which compare with a background.");
    for (const char* const option : backgrounds_of_scene)
        if (call.given(option))
            throw UsageError(
                tool::cannot_be_used_with("-statistics", std::string("-") + option +
                                                             ", which takes the background from the scene"),
                "Leave one of them out; use -mask and -mask-exclude of gdal_hsi_statistics instead.");
    if (o.shrinkage.best || o.shrinkage.ledoit_wolf)
        throw UsageError(tool::cannot_be_used_with(
                             "-statistics", std::string("-shrinkage ") + o.shrinkage.text +
                                                ", which needs the pixels and not only their statistics"),
                         "Give the share itself: -shrinkage 0.1.");
}

/// Checks -follow: a scene that is still growing is read once, line by line.
void check_follow(const tool::Call& call, const Options& o, const tool::CommonOptions& options,
                  const std::string& method) {
    if (!options.source.follow) return;
    for (const char* const option : backgrounds_of_scene)
        if (call.given(option) && has_background(o.approach))
            throw UsageError(
                tool::cannot_be_used_with("-follow", std::string("-") + option +
                                                         ", which takes the background from the scene"),
                "The scene is incomplete: give -statistics FILE of earlier lines.");
    if (has_background(o.approach) && o.statistics.empty())
        throw UsageError("-follow with " + method +
                             " requires -statistics FILE, since the scene is incomplete",
                         "Make the statistics of earlier lines with gdal_hsi_statistics.");
    if (o.approach == Approach::mtmf)
        throw UsageError(tool::cannot_be_used_with("-follow", method + ", whose background is the scene"),
                         "Use -method mf with -statistics FILE.");
    if (call.given("target-pixel"))
        throw UsageError(
            tool::cannot_be_used_with("-follow", "-target-pixel: the pixel may not be written yet"),
            "Write its spectrum to a library (gdal_hsi_spectra), and use the library as -target.");
    if (o.map.percent || !o.background.empty())
        throw UsageError(tool::cannot_be_used_with("-follow", "a threshold that depends on all scores"),
                         "Give a score with -threshold V, or -false-alarms without -background.");
}

/// Checks the options of -method sff, and options that cannot be used with it.
void check_features(const tool::Call& call, Options& o, const tool::CommonOptions& options,
                    const std::string& method) {
    if (o.approach != Approach::sff) {
        for (const char* const name : {"range", "features", "score", "depth"})
            if (call.given(name))
                throw UsageError(tool::option_requires(std::string("-") + name, "-method sff"),
                                 "Leave it out, or use -method sff.");
        return;
    }
    o.features.ranges = tool::parse_ranges(o.range_texts, "-range");
    if (o.target.library.empty())
        throw UsageError(o.target.pixels.empty() ? tool::option_requires(method, "-target LIBRARY")
                                                 : tool::cannot_be_used_with(method, "-target-pixel"),
                         "Give a library with -target, since features are assigned to spectra by name.");
    if (raster::is_virtual(options.destination))
        throw UsageError(tool::cannot_be_used_with(method, "a virtual scene as dst"),
                         "Write another format.");
}

/// Checks the options of -method mtmf, and options that cannot be used with it.
void check_tuned(const tool::Call& call, Options& o, const tool::CommonOptions& options,
                 const std::string& method) {
    if (o.approach != Approach::mtmf) {
        for (const char* const name : {"mnf-model", "any-wavelengths", "max-infeasibility"})
            if (call.given(name))
                throw UsageError(tool::option_requires(std::string("-") + name, "-method mtmf"),
                                 "Leave it out, or use -method mtmf.");
        return;
    }
    if (o.mixtures.any_wavelengths && o.mixtures.model.empty())
        throw UsageError(tool::option_requires("-any-wavelengths", "-mnf-model"),
                         "Leave it out, or give the model.");
    if (call.given("max-infeasibility") && o.map.path.empty())
        throw UsageError(tool::option_requires("-max-infeasibility", "-map"),
                         "Give the map with -map FILE; dst always has the infeasibility.");
    for (const char* const name :
         {"background", "background-by", "exclude-share", "shrinkage", "false-alarms"})
        if (call.given(name))
            throw UsageError(tool::cannot_be_used_with(std::string("-") + name,
                                                       method + ", whose background is the scene"),
                             "Leave it out, or use -method mf.");
    if (o.map.percent)
        throw UsageError(tool::cannot_be_used_with(
                             "-threshold " + o.map.threshold_text,
                             method + ": a share of the scores has no meaning if some are infeasible"),
                         "Give a score: the fraction of the target in the pixel, 0 to 1.");
    if (call.given("nc")) {
        const auto value = tool::parse_number(o.components_text);
        if (!(value && *value >= 1 && *value <= 65535 && *value == std::floor(*value)))
            throw UsageError("-nc: '" + o.components_text + "' is not a whole number from 1",
                             "Leave it out to use the components with at least as much signal as noise.");
        o.mixtures.components = static_cast<int>(*value);
    }
    if (raster::is_virtual(options.destination))
        throw UsageError(tool::cannot_be_used_with(method, "a virtual scene as dst"),
                         "Write another format.");
}

/// Returns the settings of the approach. The options must have been checked.
decltype(Settings::how) approach_of(const Options& o) {
    if (o.approach == Approach::sff) return o.features;
    if (o.approach == Approach::mtmf) return o.mixtures;
    const Method method = method_of(o.approach);
    if (!has_background(o.approach)) return Alone{method};
    if (local(o))
        return Rings{o.window[0], o.window[1],
                     o.shrinkage.text.empty() ? Rings().ridge_share : o.shrinkage.conditioning.shrinkage};
    if (grouped(o)) return Groups{method, o.background_by, o.columns_per_group, o.shrinkage, o.exclusion};
    return OneBackground{method, o.statistics, o.shrinkage, o.exclusion};
}

} // namespace

Settings settings_of(const tool::Call& call, Options& o, const tool::CommonOptions& options) {
    const bool has_targets = o.target.given();
    if (!call.given("method")) o.approach = has_targets ? Approach::ace : Approach::rx;
    const std::string method = "-method " + name_of(o.approach);
    if (call.given("threshold")) parse_threshold(o);
    check_features(call, o, options, method);
    check_tuned(call, o, options, method);
    if (has_target(o.approach) && !has_targets)
        throw UsageError(method + " requires a target",
                         "Give spectra with -target LIBRARY, or pixels with -target-pixel LINE SAMPLE.");
    if (!has_target(o.approach) && has_targets)
        throw UsageError(method + " uses no target: it finds pixels that differ from the background",
                         "Leave the target out, or use another method.");
    if (call.given("window")) {
        const auto [inner, outer] = o.window;
        const std::string given = "-window " + std::to_string(inner) + " " + std::to_string(outer);
        if (has_target(o.approach)) throw UsageError(given + " requires -method rx");
        if (inner < 1 || inner >= outer || outer > detect::largest_window || inner % 2 == 0 || outer % 2 == 0)
            throw UsageError(given + " is not a ring around a pixel",
                             "Give two odd numbers, the smaller one first, from 1 to " +
                                 std::to_string(detect::largest_window) + ".");
    }
    if (!o.background.empty() && !has_background(o.approach) && !o.map.false_alarms)
        throw UsageError(tool::cannot_be_used_with("-background", method),
                         "Use it with mf, cem, ace and rx, which compare with a background.");
    if (call.given("spectrum") && o.target.library.empty())
        throw UsageError(tool::option_requires("-spectrum", "-target"));
    if (call.given("library-scale") && o.target.library.empty())
        throw UsageError(tool::option_requires("-library-scale", "-target"));
    if (call.given("resample") && o.target.library.empty())
        throw UsageError(tool::option_requires("-resample", "-target"));
    check_groups(call, o, method);
    check_threshold(call, o, method);
    parse_conditioning(call, o, method);
    check_follow(call, o, options, method);
    check_statistics(call, o, method);
    Settings settings{name_of(o.approach), o.target, o.map, o.background, approach_of(o)};
    const auto* const mixtures = std::get_if<Mixtures>(&settings.how);
    tool::check_mask_use(options.mask,
                         mixtures != nullptr ? mixtures->model.empty() : has_background(o.approach), method);
    return settings;
}

void declare_features(tool::Builder& args, Options& o) {
    const char* const group = "Absorption features";
    args.option("range", o.range_texts,
                "A feature of all targets without rows in -features (sff): 2100-2300nm, 2.1-2.3um")
        .shown_as("RANGE")
        .under(group);
    args.input("features", o.features.path, Content::text,
               "Table of features (sff): name, from_nm, to_nm and optionally weight, fit_min and depth_min")
        .under(group);
    args.choice<detect::FitScore>(
            "score", o.features.score, "Content of dst (sff)",
            {{"fit", detect::FitScore::fit,
              "the correlation of pixel and target, averaged over the features"},
             {"depth", detect::FitScore::depth, "the depth of the features in the pixel"},
             {"fd", detect::FitScore::fd, "both, multiplied feature by feature"}})
        .under(group);
    args.output("depth", o.features.depth, Content::raster,
                "Also write the depth of the targets' features in every pixel to FILE (sff)")
        .under(group);
}

void declare_mixtures(tool::Builder& args, Options& o) {
    const char* const tuned = "Mixture-tuned matched filter";
    args.input("mnf-model", o.mixtures.model, Content::model,
               "Use the components of this model of gdal_hsi_mnf (mtmf)")
        .under(tuned);
    tool::add_any_wavelengths(args, o.mixtures.any_wavelengths, "With -mnf-model: ");
    args.option("max-infeasibility", o.mixtures.most_infeasible,
                "Reject pixels with a greater infeasibility (mtmf with -map; background and true "
                "mixtures: about 1)")
        .above(0)
        .under(tuned);
}

} // namespace hsi::detect_tool
