// SPDX-License-Identifier: MIT
// gdal_hsi_compare: how far two scenes of one size are apart. One pass over both for the spectral metrics and
// ssim, up to three more before it for ranges, thresholds and flat zones when ssim or sr are asked for.
#include "compare/measurement.h"
#include "compare_findings.h"
#include "compare_settings.h"
#include "compared_scenes.h"
#include "core/error.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace compare_tool {

using compare::Metric;
using tool::Content;
using Settings = tools::CompareSettings;
using Opened = tools::ComparedScene;

/// The two scenes that are named; bands of -band, else all.
std::pair<Opened, Opened> open_both(tool::Run& run, const Settings& s) {
    const auto& options = run.options();
    Opened a;
    if (s.first_bands.empty()) {
        const auto file = run.open_source(tool::Precision::full);
        a = {file, file, file->bands(), {}};
    } else {
        a = tools::open_one(options.source, s.first_bands);
        run.watch_source(a.file, tool::Precision::full);
        run.reserve_cache(a.file->cache_bytes());
    }
    raster::OpenOptions other = options.source;
    other.path = s.other;
    other.open_options.clear(); // -oo and -if are about the first scene's driver
    other.drivers.clear();
    Opened b = tools::open_one(other, s.second_bands);
    run.watch_source(b.file, tool::Precision::full);
    run.reserve_cache(b.file->cache_bytes());
    // Bands that are named by number are compared as they are named.
    if (s.first_bands.empty() && options.source.bands.empty() && !s.any_wavelengths)
        tools::match_by_wavelength(run, a, b);
    tools::check_alike(run, a, b);
    return {std::move(a), std::move(b)};
}

/// One band is no spectrum.
void check_bands(const std::vector<Metric>& metrics, int bands) {
    if (bands > 1) return;
    for (Metric m : metrics)
        if (m == Metric::nrmse || m == Metric::sad)
            throw UsageError(std::string("-metric ") + compare::metric_name(m) +
                                 ": one band is no spectrum, at least 2 are needed",
                             "For single bands there are maxsde, rmse, maxabs, ssim and sr.");
}

void compare_scenes(tool::Run& run, Settings s) {
    if (s.json) run.only_print();
    auto scenes = open_both(run, s);
    Opened &a = scenes.first, &b = scenes.second;
    tools::complete_metrics(s, a.cube->shape().bands);
    check_bands(s.metrics, a.cube->shape().bands);
    const compare::Measurement measurement(s.metrics, tools::value_parts(a, b));

    const bool mapped = !s.map.empty();
    raster::OutputOptions map_options;
    raster::OutputSpec map_spec;
    if (mapped) {
        if (measurement.local().empty())
            throw UsageError("-map: sr has one value a band and no map", "Add another -metric.");
        map_options = tools::map_output(run, s);
        map_spec = tools::map_of(a.cube->shape(), measurement.local());
        raster::RasterSink::check(map_options, map_spec);
    }
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    if (run.options().dry_run) {
        const auto both = tools::side_by_side(a, b);
        return measurement.show(both, mapped, [&](const std::string& name, const auto& operation) {
            tool::print_plan(run, both, operation, run.pass(name, 1));
        });
    }

    std::unique_ptr<raster::RasterSink> map;
    std::function<stream::CubeSink*()> open_map;
    if (mapped)
        open_map = [&] {
            map = raster::RasterSink::create(map_options, map_spec, a.file.get());
            run.reserve_cache(map->cache_bytes());
            return map.get();
        };
    compare::Findings f;
    for (;;) {
        const auto both = tools::side_by_side(a, b);
        f = measurement.run(both, open_map,
                            [&](const std::string& name, double share, stream::Operation& operation,
                                const std::vector<stream::CubeSink*>& sinks) {
                                run.add_pass(stream::run_pass(both, operation, sinks, run.pass(name, share)));
                            });
        if (f.counts.compared > 0) break;
        map.reset();
        if (!tools::leave_out_empty_bands(run, a, b)) break;
        check_bands(s.metrics, a.cube->shape().bands);
    }
    if (f.counts.compared == 0)
        throw Error("no pixel is valid in both " + a.file->path() + " (" +
                        std::to_string(f.counts.only_first) + " valid) and " + b.file->path() + " (" +
                        std::to_string(f.counts.only_second) + " valid)",
                    "Check nodata values (-srcnodata) and leave out bad bands (-b).");
    if (map) map->commit();

    const auto result = tools::to_json(f, a, b);
    run.report()["result"] = result;
    if (s.json)
        run.print(result.dump(1, ' ', false, Json::error_handler_t::replace));
    else
        tools::print_text(run, f, a, b);
    run.keep_outputs(); // the map is wanted all the more when a limit is exceeded
    tools::apply_limits(s, f);
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.input_argument("other", s.other, Content::raster, "The scene that is compared with src");
    call.option("metric", s.metric_texts, "Metrics, separated by commas")
        .shown_as("LIST")
        .defaults_to("nrmse,maxsde,sad,rmse,maxabs; one band: rmse,maxabs");
    call.option("band", s.pair_texts,
                "Pairs of bands, of src and of the other scene: 1:4, 1-10:21-30, 1:2,1:3")
        .shown_as("PAIRS")
        .defaults_to("band by band");
    call.flag("any-wavelengths", s.any_wavelengths,
              "Compare bands in their order even where both scenes tell their wavelengths");
    call.flag("json", s.json, "Print the result as JSON, and nothing else");
    tools::declare_thresholds(call, s);
    call.output(
            "map", s.map, Content::raster,
            "Also write the metrics of every pixel, a band each, to FILE; ssim is averaged over the bands")
        .under("Map");
    call.option("of", s.map_format, "Format of the map")
        .shown_as("FORMAT")
        .defaults_to("from its extension, else GTiff")
        .speaks(tool::Vocabulary::raster_drivers)
        .under("Map");
    call.option("co", s.map_creation, "Creation option of the map").shown_as("NAME=VALUE").under("Map");
    call.overwrite(s.overwrite, "Replace the map when it is there; without this that is an error")
        .under("Map");
    call.add_compute(false);
    call.check([&s, &call](const tool::CommonOptions& common) {
        tools::parse_metrics(s);
        tools::parse_pairs(s);
        const bool chosen = !common.source.bands.empty() || !common.source.choices.empty();
        if (!s.pair_texts.empty() && (chosen || !common.source.excluded.empty()))
            throw UsageError(std::string(chosen ? "-b" : "-exclude-range") +
                                 " and -band contradict one another",
                             "Use -band alone.");
        if (s.map.empty() && (call.given("of") || call.given("co") || call.given("overwrite")))
            throw UsageError("-of, -co and -overwrite are about the map", "Give -map FILE.");
    });
    call.body([&s](tool::Run& run) { compare_scenes(run, s); });
}

} // namespace compare_tool
} // namespace

namespace tools {

extern const tool::Definition compare{
    "compare",
    "How far two scenes are apart",
    "Tells how far two scenes of one size are apart: src is the reference. -b, -bbl, -srcwin and "
    "-srcnodata are about both scenes, -if and -oo about src. Exit code 0: compared and within the "
    "thresholds given; 1: beyond one of them, or not comparable.",
    {{"gdal_hsi_compare cpu.tif gpu.tif", "The five spectral metrics"},
     {"gdal_hsi_compare -metric nrmse,sad -map distance.tif -json before.img after.tif",
      "Where do they differ?"},
     {"gdal_hsi_compare -q -mean-nrmse 1e-6 -max-maxsde 5e-6 reference.tif result.tif && echo alike",
      "A test that the exit code decides"},
     {"gdal_hsi_compare -metric ssim,sr -band 1:2,1:3 profile.tif profile.tif",
      "Diffused copies of a component against the component itself"}},
    "Metrics of a pixel (mean and maximum are shown): nrmse, maxsde, sad (degrees), rmse, "
    "maxabs.\nMetrics of a band: ssim, sr (flat zones of the other scene over those of src).",
    compare_tool::declare};

} // namespace tools
} // namespace hsi
