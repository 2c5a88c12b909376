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
#include "tool/model_values.h"
#include "tool/words.h"

#include <cmath>
#include <string>

namespace hsi::detect_tool {
namespace {

using tool::Content;

/// "0.1", "99%".
void parse_threshold(Settings& s) {
    const std::string& text = s.threshold_text;
    const bool percent = !text.empty() && text.back() == '%';
    const auto value = tool::parse_number(percent ? text.substr(0, text.size() - 1) : text);
    if (!value || !std::isfinite(*value))
        throw UsageError("-threshold: '" + text + "' is no " + (value ? "finite " : "") + "number",
                         "Give a score, or a share of the scores: 99%.");
    (percent ? s.percent : s.threshold) = *value;
    if (percent && !(*value > 0 && *value < 100))
        throw UsageError("-threshold " + text +
                             ": the share that is worse is more than 0 % and less than 100 %",
                         "99% leaves the best 1 % of the pixels.");
}

/// -shrinkage, which was given.
void parse_shrinkage(Settings& s) {
    std::string text = s.shrinkage_text;
    const std::string prefix = "bands:";
    const bool by_bands = text.rfind(prefix, 0) == 0;
    if (by_bands) text.erase(0, prefix.size());
    s.shrink_best = text == "auto" && !by_bands;
    s.ledoit_wolf = text == "ledoit-wolf" && !by_bands;
    s.conditioning.by_bands = by_bands || s.ledoit_wolf || s.grouped();
    if (s.shrink_best && s.grouped())
        throw UsageError("-shrinkage auto does not go with -background-by: its share depends on the units of "
                         "the bands, and dark ones count little in it",
                         "Take -shrinkage ledoit-wolf, the default there.");
    if (s.shrink_best || s.ledoit_wolf || (text == "none" && !by_bands)) return;
    const auto value = tool::parse_number(text);
    if (!(value && *value >= 0 && *value <= 1))
        throw UsageError("-shrinkage: '" + s.shrinkage_text +
                             "' is neither a number from 0 to 1 nor auto, ledoit-wolf or none",
                         "bands:0.1 shrinks towards the bands' own variances, 0.1 towards their mean.");
    s.conditioning.shrinkage = *value;
}

/// -background-by and what belongs to it.
void check_groups(const tool::Call& call, const Settings& s, const std::string& method) {
    const std::string background = "It goes with mf, cem, ace and rx, which compare with a background.";
    if (call.given("columns-per-group") && !s.by_columns())
        throw UsageError("-columns-per-group is that of -background-by columns, and there is none");
    if (call.given("exclude-iterations") && s.exclude_share == 0)
        throw UsageError("-exclude-iterations repeats -exclude-share, and there is none");
    if (!(s.exclude_share >= 0 && s.exclude_share < 0.5))
        throw UsageError("-exclude-share " + number(s.exclude_share) + ": a share is from 0 to below 0.5",
                         "0.02 takes the 2 % of greatest score from the statistics.");
    for (const char* const option : {"background-by", "exclude-share"}) {
        if (!call.given(option)) continue;
        const std::string name = std::string("-") + option;
        if (!s.has_background()) throw UsageError(name + " has no meaning with " + method, background);
        if (s.local())
            throw UsageError(name + " does not go with -window, whose background are the pixels around",
                             "Leave one of them out.");
    }
    if (s.absorption) {
        if (!s.takes_absorption())
            throw UsageError("-target-is-absorption goes with -method mf and ace alone, not with " + method);
        if (s.library.empty())
            throw UsageError("-target-is-absorption is said of the library of -target, and there is none",
                             "A pixel is no spectrum of an absorption.");
    }
    if (!s.grouped()) return;
    if (call.given("nc"))
        throw UsageError("-nc does not go with -background-by", "-shrinkage ledoit-wolf bears few pixels.");
}

/// -shrinkage and -nc.
void parse_conditioning(const tool::Call& call, Settings& s, const std::string& method) {
    for (const char* name : {"shrinkage", "nc"}) {
        if (!call.given(name) || s.approach == Approach::mtmf) continue;
        const std::string option = std::string("-") + name;
        if (!s.has_background())
            throw UsageError(option + " has no meaning with " + method,
                             "It goes with mf, cem, ace and rx, which compare with a background.");
        if (s.local())
            throw UsageError(option +
                                 " does not go with -window, which adds 1e-2 of the mean variance always",
                             "Make components with gdal_hsi_pca first, and look for anomalies in them.");
    }
    if (call.given("shrinkage"))
        parse_shrinkage(s);
    else if (s.grouped()) {
        s.ledoit_wolf = true;
        s.shrinkage_text = "ledoit-wolf";
    }
    if (call.given("nc") && s.has_detector()) {
        const bool best = s.components_text == "auto";
        const auto value = tool::parse_number(s.components_text);
        if (!best && !(value && *value >= 1 && *value <= 65535 && *value == std::floor(*value)))
            throw UsageError("-nc: '" + s.components_text + "' is neither a whole number from 1 on nor auto");
        s.conditioning.components = best ? detect::Conditioning::best_components : static_cast<int>(*value);
    }
    if (s.false_alarms && s.background.empty() && s.shrinks() && !s.grouped())
        throw UsageError(
            "-false-alarms with -shrinkage needs a -background: no distribution of its scores is known",
            "Take -nc auto instead of -shrinkage, whose scores have one, or give -background FILE, whose "
            "scores then decide, or a -threshold.");
}

/// A threshold that no score can reach, or that none can miss, was meant as something else.
void check_reach(const Settings& s, const std::string& method) {
    if (!s.threshold) return;
    constexpr double pi = 3.14159265358979323846, half_circle = 180, whole = 100;
    const double v = *s.threshold;
    const std::string given = "-threshold " + s.threshold_text + " with " + method + ": ";
    const std::string share = v > 1 && v < whole
                                  ? "For a share of the scores write the sign: " + s.threshold_text + "%."
                                  : std::string();
    if (s.approach == Approach::sff) { // mtmf: any
        if (v < 0) throw UsageError(given + "scores are never below 0");
        if (v > 1 && s.score == detect::FitScore::fit)
            throw UsageError(given + "scores lie between 0 and 1", share);
    }
    if (!s.has_detector()) return;
    switch (s.method) {
    case Method::ace:
        if (v > 1 || v < -1) throw UsageError(given + "scores lie between -1 and 1", share);
        break;
    case Method::sam:
        if (v >= 0 && v <= pi) break;
        throw UsageError(given + "scores are angles in radians, from 0 to 3.14159",
                         v > 0 && v <= half_circle
                             ? s.threshold_text + " degrees are " + number(v * pi / half_circle) + " radians."
                             : std::string());
    case Method::sid:
    case Method::rx:
        if (v < 0) throw UsageError(given + "scores are never below 0");
        break;
    case Method::mf:
    case Method::cem:
        break;
    }
}

void check_threshold(const tool::Call& call, const Settings& s, const std::string& method) {
    check_reach(s, method);
    const char* const name = call.given("threshold") ? "-threshold" : "-false-alarms";
    if (s.any_threshold() && s.map.empty())
        throw UsageError(std::string(name) + " is that of -map, and there is none",
                         "Name the map with -map FILE.");
    if (!s.has_target() && !s.map.empty() && !s.any_threshold())
        throw UsageError("-map with -method rx needs a threshold",
                         "Give one with -threshold or -false-alarms.");
    if (!s.false_alarms) return;
    if (!(*s.false_alarms > 0 && *s.false_alarms < 1))
        throw UsageError("-false-alarms " + number(*s.false_alarms) +
                         ": a rate is more than 0 and less than 1");
    if (!s.normal_scores() && s.background.empty())
        throw UsageError("-false-alarms with " +
                             (s.local()             ? "-window"
                              : s.grouped()         ? "-background-by"
                              : s.exclude_share > 0 ? "-exclude-share"
                                                    : method) +
                             " needs a -background: no distribution of its scores is known",
                         "Give -background FILE, whose scores then decide, or a -threshold.");
}

/// Options that look at the scene for its background.
constexpr const char* backgrounds_of_scene[] = {"window", "background", "background-by", "exclude-share"};

/// -statistics takes the place of the pass over the background, and of no other one.
void check_statistics(const tool::Call& call, const Settings& s, const std::string& method) {
    if (s.statistics.empty()) return;
    if (!s.has_background())
        throw UsageError("-statistics has no meaning with " + method,
                         "It goes with mf, cem, ace and rx, which compare with a background.");
    for (const char* const option : backgrounds_of_scene)
        if (call.given(option))
            throw UsageError(std::string("-statistics does not go with -") + option +
                                 ", which takes the background from the scene",
                             "Leave one of them out; gdal_hsi_statistics has -mask and -mask-exclude.");
    if (s.shrink_best || s.ledoit_wolf)
        throw UsageError("-statistics does not go with -shrinkage " + s.shrinkage_text +
                             ", which looks at the pixels behind them",
                         "Give the share itself: -shrinkage 0.1.");
}

/// A scene that is still being written is looked at once, line by line.
void check_follow(const tool::Call& call, const Settings& s, const tool::CommonOptions& options,
                  const std::string& method) {
    if (!options.source.follow) return;
    for (const char* const option : backgrounds_of_scene)
        if (call.given(option) && s.has_background())
            throw UsageError(std::string("-follow does not go with -") + option +
                                 ", which takes the background from the scene",
                             "It is not there yet: give -statistics FILE, of earlier lines.");
    if (s.has_background() && s.statistics.empty())
        throw UsageError("-follow with " + method +
                             " needs -statistics FILE: its background is not there yet",
                         "Make the statistics of earlier lines with gdal_hsi_statistics.");
    if (s.approach == Approach::mtmf)
        throw UsageError("-follow does not go with " + method + ", whose background is the scene",
                         "Take -method mf with -statistics FILE.");
    if (call.given("target-pixel"))
        throw UsageError("-follow does not go with -target-pixel: the pixel may not be there yet",
                         "Write its spectrum into a library (gdal_hsi_spectra), and give that as -target.");
    if (s.ranks() || !s.background.empty())
        throw UsageError("-follow does not go with a threshold that is found among all scores",
                         "Give the score itself: -threshold V; or -false-alarms without -background.");
}

/// What belongs to -method sff, and what does not.
void check_features(const tool::Call& call, Settings& s, const tool::CommonOptions& options,
                    const std::string& method) {
    if (s.approach != Approach::sff) {
        for (const char* const name : {"range", "features", "score", "depth"})
            if (call.given(name))
                throw UsageError(std::string("-") + name +
                                     " is that of -method sff, and has no meaning with " + method,
                                 "Leave it out, or give -method sff.");
        return;
    }
    s.ranges = tool::parse_ranges(s.range_texts, "-range");
    if (s.library.empty())
        throw UsageError(method + " needs -target LIBRARY" +
                             (s.pixels.empty() ? "" : ", and does not go with -target-pixel"),
                         "Features are those of spectra with names.");
    if (raster::RasterSink::is_virtual(options.destination))
        throw UsageError(method + " does not go with a dst that is computed when it is read",
                         "Write another format.");
}

/// What belongs to -method mtmf, and what does not.
void check_tuned(const tool::Call& call, Settings& s, const tool::CommonOptions& options,
                 const std::string& method) {
    if (s.approach != Approach::mtmf) {
        for (const char* const name : {"mnf-model", "any-wavelengths", "max-infeasibility"})
            if (call.given(name))
                throw UsageError(std::string("-") + name +
                                     " is that of -method mtmf, and has no meaning with " + method,
                                 "Leave it out, or give -method mtmf.");
        return;
    }
    if (s.any_wavelengths && s.mnf_model.empty())
        throw UsageError("-any-wavelengths is about the bands of -mnf-model, and there is none",
                         "Leave it out, or name the model.");
    if (call.given("max-infeasibility") && s.map.empty())
        throw UsageError("-max-infeasibility is that of -map, and there is none",
                         "Name the map with -map FILE; dst has the infeasibility in any case.");
    for (const char* const name :
         {"background", "background-by", "exclude-share", "shrinkage", "false-alarms"})
        if (call.given(name))
            throw UsageError(std::string("-") + name + " does not go with " + method +
                                 ", whose background is the scene",
                             "Leave it out, or take -method mf.");
    if (s.percent)
        throw UsageError("-threshold " + s.threshold_text + " does not go with " + method +
                             ": a share of scores says nothing where some are infeasible",
                         "Give a score: a share of the target in the pixel, 0 to 1.");
    if (call.given("nc")) {
        const auto value = tool::parse_number(s.components_text);
        if (!(value && *value >= 1 && *value <= 65535 && *value == std::floor(*value)))
            throw UsageError("-nc: '" + s.components_text + "' is no whole number from 1 on",
                             "Without it " + method + " takes the components with as much signal as noise.");
        s.tuned_components = static_cast<int>(*value);
    }
    if (raster::RasterSink::is_virtual(options.destination))
        throw UsageError(method + " does not go with a dst that is computed when it is read",
                         "Write another format.");
}

} // namespace

void check_settings(const tool::Call& call, Settings& s, const tool::CommonOptions& options) {
    const bool has_target = !s.library.empty() || !s.pixels.empty();
    if (!call.given("method")) s.approach = has_target ? Approach::ace : Approach::rx;
    if (s.has_detector()) s.method = static_cast<Method>(s.approach);
    const std::string method = "-method " + s.method_name();
    if (call.given("threshold")) parse_threshold(s);
    check_features(call, s, options, method);
    check_tuned(call, s, options, method);
    if (s.has_target() && !has_target)
        throw UsageError(method + " needs a target",
                         "Name spectra with -target LIBRARY, or pixels with -target-pixel LINE SAMPLE.");
    if (!s.has_target() && has_target)
        throw UsageError(method + " has no target: it finds what is unlike the background",
                         "Leave the target out, or use another method.");
    if (call.given("window")) {
        const auto [inner, outer] = s.window;
        const std::string given = "-window " + std::to_string(inner) + " " + std::to_string(outer);
        if (s.has_target()) throw UsageError(given + " goes with -method rx alone");
        if (inner < 1 || inner >= outer || outer > detect::largest_window || inner % 2 == 0 || outer % 2 == 0)
            throw UsageError(given + " is no ring around a pixel",
                             "Give two odd numbers, the smaller one first, from 1 to " +
                                 std::to_string(detect::largest_window) + ".");
    }
    if (!s.background.empty() && !s.has_background() && !s.false_alarms)
        throw UsageError("-background has no meaning with " + method,
                         "It goes with mf, cem, ace and rx, which compare with a background.");
    if (call.given("spectrum") && s.library.empty())
        throw UsageError("-spectrum chooses from the library of -target, and there is none");
    if (call.given("library-scale") && s.library.empty())
        throw UsageError("-library-scale multiplies the library of -target, and there is none");
    if (call.given("resample") && s.library.empty())
        throw UsageError("-resample is about the library of -target, and there is none");
    check_groups(call, s, method);
    check_threshold(call, s, method);
    parse_conditioning(call, s, method);
    check_follow(call, s, options, method);
    check_statistics(call, s, method);
}

void declare_features(tool::Builder& args, Settings& s) {
    const char* const group = "Absorption features";
    args.option(
            "range", s.range_texts,
            "With sff: the features of all targets without lines in -features, between two wavelengths, ends "
            "included: -range 2100-2300nm, 2.1-2.3um")
        .shown_as("RANGE")
        .under(group);
    args.input("features", s.features, Content::text,
               "With sff: a table with a line a feature: name (of the spectrum), from_nm, to_nm, and as you "
               "like "
               "weight, fit_min and depth_min")
        .under(group);
    args.choice<detect::FitScore>(
            "score", s.score, "With sff: what dst holds",
            {{"fit", detect::FitScore::fit,
              "the correlation of pixel and target, averaged over the features"},
             {"depth", detect::FitScore::depth, "the depth of the features in the pixel"},
             {"fd", detect::FitScore::fd, "both, multiplied feature by feature"}})
        .under(group);
    args.output("depth", s.depth, Content::raster,
                "With sff: also write the depth of the targets' features in every pixel to FILE")
        .under(group);
}

void declare_mixtures(tool::Builder& args, Settings& s) {
    const char* const tuned = "Mixture-tuned matched filter";
    args.input("mnf-model", s.mnf_model, Content::model,
               "With mtmf: the components of this model of gdal_hsi_mnf instead of the scene's own")
        .under(tuned);
    tool::add_any_wavelengths(args, s.any_wavelengths, "With -mnf-model: ");
    args.option(
            "max-infeasibility", s.most_infeasible,
            "With mtmf and -map: what is more infeasible is no detection; background and true mixtures have "
            "about 1")
        .above(0)
        .under(tuned);
}

} // namespace hsi::detect_tool
