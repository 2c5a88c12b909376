// SPDX-License-Identifier: MIT
// gdal_hsi_detect: computes scores of targets or anomalies. One pass computes the moments of the background
// if the method needs them, and one pass computes the scores. Local RX takes one pass, and reads the
// background from a halo around each tile. Groups of columns also take one pass. If a map defines the groups,
// one pass computes the moments of all groups.
#include "core/error.h"
#include "gdal_hsi_detect/approaches.h"
#include "gdal_hsi_detect/options.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"
#include "shared/scene_statistics.h"
#include "shared/spectral_bands.h"
#include "tool/definition.h"
#include "tool/scene.h"

#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace hsi {
namespace detect_tool {
namespace {

using tool::Content;

void run_detect(tool::Run& run, const Settings& s) {
    auto opened = tools::open_scene_or_library(run);
    if (opened.library) return detect_in_library(run, s, *opened.library);
    auto source = std::move(opened.scene);
    std::optional<tools::GivenStatistics> given;
    const auto* const one = std::get_if<OneBackground>(&s.how);
    if (one != nullptr && !one->statistics.empty()) {
        given = tools::read_statistics(run, one->statistics, source);
        source = given->source;
        tools::check_values(run, *given);
    }
    if (s.target.given()) source = tools::scaled_for_library(run, source, s.target.any_scale);
    if (given && source->facts().scaled)
        throw Error("-statistics " + one->statistics + " are in stored values of " + source->path() +
                        ", but -target is compared with scaled values",
                    "Use -any-scale, and -library-scale to convert the library to stored values.");
    tool::check_spectrum(*source, "detection");
    DetectTargets targets(run, s.target, source);
    const auto mask = read_background(run, s, *source);
    run.report()["detection"] = {{"method", s.method}, {"targets", targets.names()}};
    struct Dispatch {
        tool::Run& run;
        const Settings& s;
        const std::shared_ptr<raster::RasterSource>& source;
        DetectTargets& targets;
        const detect::PixelMask* mask;
        const tools::GivenStatistics* given;
        void operator()(const Alone& how) const { detect_alone(run, s, how, source, targets, mask); }
        void operator()(const OneBackground& how) const {
            detect_by_background(run, s, how, source, targets, mask, given);
        }
        void operator()(const Rings& how) const { detect_in_rings(run, s, how, source, targets, mask); }
        void operator()(const Groups& how) const { detect_by_groups(run, s, how, source, targets, mask); }
        void operator()(const Features& how) const { detect_by_features(run, s, how, source, targets, mask); }
        void operator()(const Mixtures& how) const { detect_among_components(run, s, how, source, targets); }
    };
    std::visit(Dispatch{run, s, source, targets, mask.get(), given ? &*given : nullptr}, s.how);
}

/// Holds the options of a call, and the settings made from them.
struct Declared {
    Options options;
    Settings settings;
};

void declare(tool::Builder& args) {
    auto& declared = args.settings<Declared>();
    auto& o = declared.options;
    args.add_source();
    args.add_follow();
    args.add_mask("the background", true);
    args.add_destination(
        "The scores, one band per target (of a library: a table); it appears when it is complete");
    args.computes_dst();
    args.input("target", o.target.library, Content::spectra,
               "Library with the targets' spectra (.sli, .csv, USGS, ECOSTRESS, .asd, .sig, .sed, .mat, "
               "GeoJSON ...)");
    tools::add_spectrum_option(args, o.target.spectra, "the library of -target");
    args.option("target-pixel", o.target.pixels,
                "Use the spectrum of this pixel of src as a target; counted from 0, within -srcwin")
        .shown_as("LINE SAMPLE")
        .from(0);
    args.exclusive("target", "target-pixel");
    args.choice<Approach>(
            "method", o.approach, "Method of detection",
            {{"sam", Approach::sam, "spectral angle, in radians"},
             {"sid", Approach::sid, "spectral information divergence"},
             {"mf", Approach::mf, "matched filter"},
             {"cem", Approach::cem, "constrained energy minimisation"},
             {"ace", Approach::ace, "adaptive coherence estimator, with its sign"},
             {"rx", Approach::rx, "anomalies by Reed and Xiaoli, without a target"},
             {"sff", Approach::sff, "fit of continuum-removed absorption features in ranges of wavelengths"},
             {"mtmf", Approach::mtmf,
              "matched filter on MNF components, with the infeasibility of each pixel"}})
        .defaults_to("ace; rx without a target");
    args.input("background", o.background, Content::labels,
               "Background: pixels where the raster FILE is not 0, or inside the features of the vector "
               "FILE");
    args.input("background-by", o.background_by, Content::labels,
               "Use a separate background for each column (detector of a pushbroom scanner) or class of "
               "the map FILE")
        .shown_as("columns|FILE")
        .defaults_to("one background for all");
    tools::add_statistics_option(args, o.statistics);
    args.option("columns-per-group", o.columns_per_group,
                "With -background-by columns: number of neighbouring columns in a group")
        .from(1);
    args.option("exclude-share", o.exclusion.share,
                "Compute the background again without this share of its pixels with the greatest scores, "
                "0 to below 0.5")
        .shown_as("P");
    args.option("exclude-iterations", o.exclusion.iterations,
                "With -exclude-share: number of repetitions, each from all pixels")
        .from(1);
    args.flag("target-is-absorption", o.target.absorption,
              "The library contains the absorption of one unit of a gas; scores of mf are in this unit "
              "(mf, ace)");
    args.option("window", o.window,
                "Local background (rx): the square of OUTER pixels around a pixel, without the inner square "
                "of INNER")
        .shown_as("INNER OUTER")
        .in_unit("pixels, odd")
        .defaults_to("the whole scene is the background");
    args.output("map", o.map.path, Content::raster,
                "Also write the number of the best target of every pixel (0: no target) to FILE");
    args.option("threshold", o.map.threshold_text,
                "With -map: worst score of a target; 99%: the score that 99 % of the pixels do not reach")
        .shown_as("V|P%");
    args.option(
            "false-alarms", o.map.false_alarms,
            "With -map: threshold that this share of -background reaches (without: of a normal background)")
        .shown_as("RATE");
    args.exclusive("threshold", "false-alarms");
    args.option(
            "nc", o.components_text,
            "Use the first N principal components of the background (mtmf: MNF); auto: one per ten pixels")
        .shown_as("N|auto")
        .defaults_to("all bands");
    args.option("shrinkage", o.shrinkage.text,
                "Shrink the covariance by the share A (0 to 1), towards the mean variance, or with bands:"
                " the diagonal")
        .shown_as("none|A|bands:A|auto|ledoit-wolf")
        .defaults_to("none; ledoit-wolf with -background-by; 0.01 with -window");
    declare_features(args, o);
    declare_mixtures(args, o);
    args.option("library-scale", o.target.library_scale,
                "Multiply the library by this: 10000 for reflectance 0..1 and a scene in 0..10000")
        .above(0);
    tools::add_any_scale_option(args, o.target.any_scale);
    tools::add_resample_option(args, o.target.fit);
    args.add_compute();
    args.check([&declared](const tool::Call& call) {
        declared.settings = settings_of(call, declared.options, call.options());
    });
    args.body([&declared](tool::Run& run) { run_detect(run, declared.settings); });
}

} // namespace
} // namespace detect_tool

namespace tools {

extern constinit const tool::Definition detect{
    "detect",
    "Targets and anomalies (SAM, SID, MF, CEM, ACE, RX, SFF, MTMF)",
    "Detection: measures how similar every pixel is to known spectra (spectral angle, "
    "information divergence, matched filter, constrained energy minimisation, adaptive "
    "coherence), or how different it is from the background or from the pixels around it "
    "(RX).",
    {{"gdal_hsi_detect -target minerals.sli scene.img ace.tif", "Adaptive coherence of every spectrum"},
     {"gdal_hsi_detect -method sam -target minerals.csv -map minerals.tif -threshold 0.1 scene.img "
      "angles.tif",
      "Angles, and a map of the pixels below 0.1 radians"},
     {"gdal_hsi_detect -method sam -target minerals.sli field.sli angles.csv",
      "Angles between the spectra of two libraries, as a table"},
     {"gdal_hsi_detect -method mf -target-pixel 120 64 -background soil.gpkg scene.img like_it.tif",
      "Pixels that are like one pixel and unlike a background"},
     {"gdal_hsi_detect -window 15 31 -map anomalies.tif -threshold 500 scene.img rx.tif",
      "Pixels that differ from their neighbourhood"},
     {"gdal_hsi_detect -map anomalies.tif -false-alarms 1e-4 scene.img rx.tif",
      "A threshold that one in 10,000 pixels of a normal background reaches"},
     {"gdal_hsi_detect -window 15 31 -device cuda scene.img rx.tif", "The same on a GPU"},
     {"gdal_hsi_detect -method sff -target minerals.sli -range 2100-2400nm -map best.tif -threshold 0.7 "
      "scene.img "
      "fit.tif",
      "Minerals by the shapes of their absorptions"},
     {"gdal_hsi_detect -method mtmf -target minerals.sli -map best.tif -threshold 0.1 -max-infeasibility 2 "
      "scene.img mtmf.tif",
      "Matched filter on MNF components, without infeasible pixels"},
     {"gdal_hsi_detect -method mf -target gas.csv -target-is-absorption -background-by columns radiance.img "
      "gas.tif",
      "A gas by its absorption, each detector of the scanner against itself"}},
    "",
    detect_tool::declare};

} // namespace tools
} // namespace hsi
