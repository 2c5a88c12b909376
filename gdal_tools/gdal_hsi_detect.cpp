// SPDX-License-Identifier: MIT
// gdal_hsi_detect: scores of targets or anomalies. One pass for the moments of the background where the
// method wants them, and one for the scores; local RX takes its background from a halo in a single pass.
#include "core/error.h"
#include "detect_computing.h"
#include "detect_inputs.h"
#include "detect_outputs.h"
#include "stream/band_statistics.h"
#include "tool/definition.h"
#include "tool/scene.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace hsi {
namespace {
namespace detect_tool {

using detect::Method;
using tool::Content;
using tools::DetectComputing;
using Settings = tools::DetectSettings;

/// The last pass. False when no pixel is valid.
bool write_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                  const stream::CubeSource& cube, raster::OutputSet outputs, detect::Detection& operation,
                  stream::PassOptions pass) {
    outputs.create(&scene);
    run.reserve_cache(outputs.cache_bytes());
    pass.output_layout = outputs.layout();
    run.add_pass(stream::run_pass(cube, operation, outputs.sinks(), pass));
    if (operation.valid() == 0) return false;
    tools::tell_counts(run, operation, s);
    outputs.commit();
    return true;
}

/// mf, cem, ace, rx: the background of the scene, then the scores.
void detect_by_background(tool::Run& run, const Settings& s, DetectComputing& computing,
                          const std::shared_ptr<raster::RasterSource>& source, tools::DetectTargets& targets,
                          const detect::PixelMask* mask) {
    tool::Scene scene(run, source, "detection");
    auto outputs = tools::detect_outputs(run, s, scene.shape(), targets.names());
    const auto make_scan = [&] {
        return std::make_unique<detect::BackgroundScan>(scene.shape().bands, mask);
    };
    const detect::Decision decision{!s.map.empty(), s.threshold};
    if (run.options().dry_run) {
        tool::print_plan(run, *source, *make_scan(), tools::beside(mask, run.pass("background", 0.5)));
        const auto any = tools::any_detector(s.method, scene.shape().bands, targets.names().size());
        return tool::print_plan(run, *source, *computing->make_detection(any, decision),
                                tools::beside(mask, computing.pass("detection", 0.5)));
    }
    scene.set_fate(nullptr);
    const auto background = scene.scan(make_scan, [&](bool again) {
        return tools::beside(mask, run.pass("background", again ? 0.0 : 0.5));
    });
    const auto spectra = targets.at(*scene.raster());
    if (!spectra) throw targets.missing();
    const auto detector = detect::make_detector(s.method, *spectra, background.moments);
    tools::tell_background(run, detector, *scene.raster());
    targets.compare_levels(run, *source);
    if (tools::write_virtual_scores(run, s, *scene.raster(), targets.names(), detector, *spectra)) return;
    const auto operation = computing->make_detection(detector, decision);
    if (!write_scores(run, s, *scene.raster(), scene.cube(), std::move(outputs), *operation,
                      tools::beside(mask, computing.pass("detection", 0.5))))
        throw tool::no_valid_pixel(*scene.raster());
}

/// Leaves out bands without a single value, which spoil every pixel; false when there is none.
bool leave_out_empty(tool::Run& run, std::shared_ptr<raster::RasterSource>& source) {
    stream::BandStatisticsScan scan(source->shape().bands);
    run.add_pass(stream::run_pass(*source, scan, {}, run.pass("statistics", 0)));
    return run.leave_out_empty_bands(source, scan.result().empty_bands());
}

/// sam, sid and local RX: the scores alone.
void detect_at_once(tool::Run& run, const Settings& s, DetectComputing& computing,
                    std::shared_ptr<raster::RasterSource> source, tools::DetectTargets& targets,
                    const detect::PixelMask* mask) {
    const detect::Decision decision{!s.map.empty(), s.threshold};
    if (raster::RasterSink::is_virtual(run.options().destination)) tool::leave_out_unseen_bands(run, source);
    for (bool again = false;; again = true) {
        auto outputs = tools::detect_outputs(run, s, source->shape(), targets.names());
        auto spectra = targets.at(*source);
        if (!spectra) {
            if (again || !leave_out_empty(run, source)) throw targets.missing();
            continue;
        }
        const auto operation =
            s.local() ? computing->make_local_detection(source->shape().bands,
                                                        {s.window[0], s.window[1], mask}, decision)
                      : computing->make_detection(detect::make_detector(s.method, *spectra), decision);
        const auto pass = tools::beside(mask, computing.pass("detection", again ? 0 : 1));
        if (run.options().dry_run) return tool::print_plan(run, *source, *operation, pass);
        if (!again) targets.compare_levels(run, *source);
        if (!s.local() && tools::write_virtual_scores(run, s, *source, targets.names(),
                                                      detect::make_detector(s.method, *spectra), *spectra))
            return;
        if (write_scores(run, s, *source, *source, std::move(outputs), *operation, pass)) return;
        if (again || !leave_out_empty(run, source)) break;
    }
    if (s.method == Method::sid)
        throw Error(source->path() + ": no pixel is valid and has a positive value",
                    "Check the nodata value (-srcnodata), or use another method.");
    throw tool::no_valid_pixel(*source);
}

void run_detect(tool::Run& run, const Settings& s) {
    auto source = run.open_source();
    tool::check_spectrum(*source, "detection");
    tools::DetectTargets targets(run, s, source);
    const auto mask = tools::read_background(run, s.background, *source);
    run.report()["detection"] = {{"method", detect::name_of(s.method)}, {"targets", targets.names()}};
    auto computing = tools::detect_computing(run, s, source->shape(), targets.names().size());
    if (detect::has_background(s.method) && !s.local())
        detect_by_background(run, s, computing, source, targets, mask.get());
    else
        detect_at_once(run, s, computing, source, targets, mask.get());
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
}

void check_settings(const tool::Call& call, Settings& s) {
    const bool has_target = !s.library.empty() || !s.pixels.empty();
    if (!call.given("method")) s.method = has_target ? Method::ace : Method::rx;
    const std::string method = std::string("-method ") + detect::name_of(s.method);
    if (detect::has_target(s.method) && !has_target)
        throw UsageError(method + " needs a target",
                         "Name spectra with -target LIBRARY, or pixels with -target-pixel LINE SAMPLE.");
    if (!detect::has_target(s.method) && has_target)
        throw UsageError(method + " has no target: it finds what is unlike the background",
                         "Leave the target out, or use another method.");
    if (call.given("window")) {
        const auto [inner, outer] = s.window;
        const std::string given = "-window " + std::to_string(inner) + " " + std::to_string(outer);
        if (s.method != Method::rx) throw UsageError(given + " goes with -method rx alone");
        if (inner < 1 || inner >= outer || outer > detect::largest_window || inner % 2 == 0 || outer % 2 == 0)
            throw UsageError(given + " is no ring around a pixel",
                             "Give two odd numbers, the smaller one first, from 1 to " +
                                 std::to_string(detect::largest_window) + ".");
    }
    if (!s.background.empty() && !detect::has_background(s.method))
        throw UsageError("-background has no meaning with " + method,
                         "It goes with mf, cem, ace and rx, which compare with a background.");
    if (call.given("spectrum") && s.library.empty())
        throw UsageError("-spectrum chooses from the library of -target, and there is none");
    if (call.given("library-scale") && s.library.empty())
        throw UsageError("-library-scale multiplies the library of -target, and there is none");
    if (s.threshold && s.map.empty())
        throw UsageError("-threshold is that of -map, and there is none", "Name the map with -map FILE.");
    if (s.method == Method::rx && !s.map.empty() && !s.threshold)
        throw UsageError("-map with -method rx needs a threshold", "Give one with -threshold V.");
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_destination("The scores, a band a target; it appears when it is complete");
    call.input("target", s.library, Content::spectra,
               "The targets' spectra: the library FILE (.sli, .csv, USGS, ECOSTRESS, GeoJSON, GeoPackage)");
    tools::add_spectrum_option(call, s.spectra, "the library of -target");
    call.option("target-pixel", s.pixels,
                "The spectrum of this pixel of src is a target; counted from 0, within -srcwin")
        .shown_as("LINE SAMPLE")
        .from(0);
    call.exclusive("target", "target-pixel");
    call.choice<Method>("method", s.method, "What is computed",
                        {{"sam", Method::sam, "spectral angle, in radians"},
                         {"sid", Method::sid, "spectral information divergence"},
                         {"mf", Method::mf, "matched filter"},
                         {"cem", Method::cem, "constrained energy minimisation"},
                         {"ace", Method::ace, "adaptive coherence estimator, with its sign"},
                         {"rx", Method::rx, "anomalies by Reed and Xiaoli, without a target"}})
        .defaults_to("ace; rx without a target");
    call.input("background", s.background, Content::labels,
               "The background is where the raster FILE is not 0, or inside the features of the vector FILE");
    call.option("window", s.window,
                "With rx: the background of a pixel is the square of OUTER around it less that of INNER")
        .shown_as("INNER OUTER")
        .in_unit("pixels, odd")
        .defaults_to("the whole scene is the background");
    call.output("map", s.map, Content::raster,
                "Also write the best target of every pixel to FILE: 1 to the number of targets, 0 none");
    call.option("threshold", s.threshold,
                "With -map: a best score worse than this is none (sam and sid: greater, others: smaller)")
        .or_infinite();
    call.option("library-scale", s.library_scale,
                "Multiply the library by this: 10000 for reflectance in 0..1 beside a scene in 0..10000")
        .above(0);
    call.add_compute();
    call.check([&s, &call](const tool::CommonOptions&) { check_settings(call, s); });
    call.body([&s](tool::Run& run) { run_detect(run, s); });
}

} // namespace detect_tool
} // namespace

namespace tools {

extern const tool::Definition detect{
    "detect",
    "Detection of targets and anomalies (SAM, SID, MF, CEM, ACE, RX)",
    "Detection: how much every pixel is like known spectra (spectral angle, information divergence, matched "
    "filter, "
    "constrained energy minimisation, adaptive coherence), or unlike a background, of the scene or of the "
    "pixels "
    "around (RX).",
    {{"gdal_hsi_detect -target minerals.sli scene.img ace.tif", "Adaptive coherence of every spectrum"},
     {"gdal_hsi_detect -method sam -target minerals.csv -map minerals.tif -threshold 0.1 scene.img "
      "angles.tif",
      "Angles, and a map of what is nearer than 0.1 radians"},
     {"gdal_hsi_detect -method mf -target-pixel 120 64 -background soil.gpkg scene.img like_it.tif",
      "What is like a pixel, before a background"},
     {"gdal_hsi_detect -window 15 31 -map anomalies.tif -threshold 500 scene.img rx.tif",
      "What is unlike its neighbourhood"},
     {"gdal_hsi_detect -window 15 31 -device cuda scene.img rx.tif", "The same on a GPU"}},
    "",
    detect_tool::declare};

} // namespace tools
} // namespace hsi
