// SPDX-License-Identifier: MIT
// gdal_hsi_synth: makes a scene with known truth, in one pass that writes the cube and its labels tile by
// tile.
#include "core/error.h"
#include "synth/synth.h"
#include "synth_outputs.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace hsi {
namespace {
namespace synth_tool {

using tool::Content;
using Settings = tools::SynthSettings;

void make_scene(tool::Run& run, Settings s) {
    const auto& options = run.options();
    raster::OutputOptions cube_options = options.destination;
    tools::choose_format(cube_options, s.interleave);
    const std::string type = cube_options.type.empty() ? "Float32" : cube_options.type;
    if (tools::is_integer(type)) {
        s.scene.scale = type == "Byte" || type == "Int8" ? 100 : tools::integer_scale;
        if (s.scene.nan_pixels > 0)
            throw UsageError("-nan-pixels: type " + type + " holds no NaN",
                             "Use -ot Float32, or -nodata-stripe.");
    }
    s.scene.nodata = cube_options.nodata.value_or(tools::default_nodata(type));
    if (cube_options.nodata && type != "Float32" && !std::isnan(s.scene.nodata) &&
        double{static_cast<float>(s.scene.nodata)} != s.scene.nodata)
        throw UsageError("-dstnodata " + tools::synth_number(s.scene.nodata) +
                             " is not exact in single precision, in which scenes are made",
                         "Use another value, for example -9999.");
    if (s.scene.stripe_width == 0 && cube_options.nodata)
        throw UsageError("-dstnodata means nothing without -nodata-stripe",
                         "Leave it out, or give -nodata-stripe.");

    const auto scene = std::make_shared<const synth::Scene>(s.scene);
    const raster::OutputSpec cube = tools::cube_spec(s, *scene);
    raster::RasterSink::check(cube_options, cube);
    const bool labels = !s.labels.empty();
    raster::OutputOptions label_options;
    raster::OutputSpec classes;
    if (labels) {
        label_options = run.side_output("-labels", s.labels);
        label_options.nodata.reset();
        label_options.creation_options.clear();
        if (label_options.format.empty()) tools::choose_format(label_options, "");
        classes = tools::label_spec(s, *scene);
        raster::RasterSink::check(label_options, classes);
    }
    const auto truth_output = run.text_output("-truth", s.truth, options.destination.overwrite);
    raster::check_text_output(truth_output);
    const auto painter = synth::make_painter(scene, labels);
    const synth::Canvas canvas(scene->shape());
    run.report()["device"] = tool::describe_devices(run, {}, synth::simd_target());
    if (options.dry_run) return tool::print_plan(run, canvas, *painter, run.pass("paint", 1));

    std::vector<std::unique_ptr<raster::RasterSink>> made;
    made.push_back(raster::RasterSink::create(cube_options, cube, nullptr));
    if (labels) made.push_back(raster::RasterSink::create(label_options, classes, nullptr));
    std::vector<stream::CubeSink*> sinks;
    for (const auto& sink : made) {
        run.reserve_cache(sink->cache_bytes());
        sinks.push_back(sink.get());
    }
    auto pass = run.pass("paint", 1);
    pass.output_layout = made.front()->layout();
    run.add_pass(stream::run_pass(canvas, *painter, sinks, pass));
    for (const auto& sink : made)
        sink->commit();
    if (!s.truth.empty())
        raster::write_text_output(truth_output, tools::synth_truth(s, *scene).dump(1) + "\n");
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.option("size", s.size, "Size of the scene: samples, lines and bands")
        .shown_as("XSIZE YSIZE BANDS")
        .required = true;
    call.option("seed", s.scene.seed, "Seed: another number, another scene").from(0);
    call.choice<synth::Pattern>(
        "pattern", s.scene.pattern, "What the ground looks like",
        {{"land", synth::Pattern::land,
          "strips of crops, woods, a river, roads, settlements, rock; hills and shadows"},
         {"fields", synth::Pattern::fields,
          "polygons of any material, a river and a grid of roads, evenly lit"}});
    call.option("endmembers", s.scene.endmembers, "Materials in the scene, 2 to 24");
    call.option("snr", s.scene.snr, "Signal-to-noise ratio of every band; inf: no noise")
        .in_unit("decibels")
        .or_infinite();
    call.option("targets", s.scene.targets,
                "Pure pixels to plant at random places, of one material after the other");
    call.output("labels", s.labels, Content::raster,
                "Also write the dominant material of every pixel to FILE, with class names and colours; 0 "
                "where a pixel has no "
                "value");
    call.output("truth", s.truth, Content::text,
                "Also write the endmembers' spectra, targets, noise, bad bands and holes to FILE")
        .shown_as("FILE.json");
    call.choice<std::string>("interleave", s.interleave,
                             "Order of the values; it means ENVI unless dst or -of says GTiff",
                             {{"bsq", "bsq", "band by band"},
                              {"bil", "bil", "line by line, ENVI only"},
                              {"bip", "bip", "pixel by pixel"}})
        .defaults_to("bsq, or what the extension of dst says");
    call.option("epsg", s.epsg,
                "EPSG code of the coordinate reference system; pixels are 30 m wide, or 0.0003 degrees in a "
                "geographic one")
        .shown_as("CODE");
    call.option("rotate", s.rotation, "Turn the georeference counter-clockwise about the upper left corner")
        .in_unit("degrees")
        .shown_as("DEGREES");
    call.option("nodata-stripe", s.stripe,
                "Samples XOFF to XOFF+WIDTH-1 of every line hold nodata: -dstnodata, else -9999 or what the "
                "type has "
                "for it")
        .shown_as("XOFF WIDTH");
    call.option("nan-pixels", s.scene.nan_pixels,
                "So many scattered pixels with NaN: every other one in all bands, the rest in one band");
    call.option("bad-bands", s.scene.bad_bands,
                "So many bands, the nearest to 1400 and 1900 nm, hold noise alone and are marked in the "
                "bad-band list");
    call.add_destination();
    call.add_compute(false);
    call.check([&s](const tool::CommonOptions&) {
        if (!std::isfinite(s.rotation)) throw UsageError("-rotate must be a number of degrees");
        if (s.size[2] < 1 || s.size[2] > 65535)
            throw UsageError("-size: " + std::to_string(s.size[2]) + " bands are outside 1..65535");
        s.scene.samples = s.size[0];
        s.scene.lines = s.size[1];
        s.scene.bands = static_cast<int>(s.size[2]);
        s.scene.stripe_first = s.stripe[0];
        s.scene.stripe_width = s.stripe[1];
    });
    call.body([&s](tool::Run& run) { make_scene(run, s); });
}

} // namespace synth_tool
} // namespace

namespace tools {

extern const tool::Definition synth{
    "synth",
    "Synthetic scenes with known truth",
    "Makes a hyperspectral scene with known truth: a landscape of library materials, "
    "mixed pixels, shading and noise, georeferenced, with wavelengths. The same options give the "
    "same values on every machine.",
    {{"gdal_hsi_synth -size 614 512 224 -targets 8 -truth truth.json -labels labels.tif scene.tif",
      "A scene like an AVIRIS one, with eight targets and what is true of it"},
     {"gdal_hsi_synth -size 1000 100000 200 -interleave bil -ot Int16 flightline.dat",
      "40 GB by lines, as a scanner delivers them"},
     {"gdal_hsi_synth -size 300 300 100 -nodata-stripe 40 5 -nan-pixels 20 -bad-bands 6 awkward.tif",
      "What makes scenes awkward"}},
    "",
    synth_tool::declare};

} // namespace tools
} // namespace hsi
