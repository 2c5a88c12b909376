// SPDX-License-Identifier: MIT
// gdal_hsi_synth: makes a scene with known truth. One pass writes the cube and its labels, tile by tile.
#include "core/error.h"
#include "core/json.h"
#include "math/elementary.h"
#include "raster/raster_sink.h"
#include "raster/vector_sink.h"
#include "synth/synth.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace synth_tool {

using tool::Content;

/// Stored value that represents reflectance 1 in integer files.
constexpr double integer_scale = 10000;
/// Pixel size of a typical spaceborne imager.
constexpr double metres_per_pixel = 30, degrees_per_pixel = 0.0003;

struct Settings {
    synth::Options scene;
    std::array<int64_t, 3> size{};
    std::array<int64_t, 2> stripe{};
    std::string interleave, labels, truth, values, plots, geometry, flat;
    int epsg = 32633;
    double rotation = 0;
    std::array<double, 2> corner{0, 0}, light{1, 0}, sun{40, 150};
    bool flown = false; ///< true with -corner or -light: the scene is a flight line over the landscape
};

// Types and formats
// ----------------------------------------------------------------------------------------------------------

/// Returns the default nodata value: -9999 if the type holds it, else the type's largest value.
double default_nodata(const std::string& type) {
    if (type == "Byte") return 255;
    if (type == "Int8") return -128;
    if (type == "UInt16") return 65535;
    if (type == "UInt32") return 4294967295.0;
    if (type == "UInt64") return 65535; // much larger than scaled reflectance, and exact in single precision
    return -9999;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return text;
}

std::string extension_of(const std::string& path) {
    return lower(std::filesystem::path(path).extension().string());
}

/// Chooses the format. Several extensions mean ENVI, and -interleave applies only to ENVI.
void choose_format(raster::OutputOptions& out, std::string interleave) {
    const std::string extension = extension_of(out.path);
    for (const char* name : {"bsq", "bil", "bip"})
        if (out.format.empty() && extension == std::string(".") + name) {
            out.format = "ENVI";
            if (interleave.empty()) interleave = name;
        }
    if (out.format.empty() && (extension == ".dat" || extension == ".raw" || extension == ".envi"))
        out.format = "ENVI";
    const bool tiff =
        lower(out.format) == "gtiff" || (out.format.empty() && (extension == ".tif" || extension == ".tiff"));
    if (interleave.empty()) return;
    if (out.format.empty() && !tiff) out.format = "ENVI";
    for (const auto& option : out.creation_options)
        if (lower(option).rfind("interleave=", 0) == 0)
            throw UsageError("-interleave and -co " + option + " contradict each other",
                             "Leave one of them out.");
    if (lower(out.format) == "envi") {
        out.creation_options.push_back("INTERLEAVE=" + interleave);
    } else if (tiff && interleave != "bil") {
        out.creation_options.emplace_back(interleave == "bsq" ? "INTERLEAVE=BAND" : "INTERLEAVE=PIXEL");
    } else {
        throw UsageError("-interleave " + interleave + " is not possible in format " +
                             (tiff ? "GTiff" : out.format),
                         "ENVI supports bsq, bil and bip; GTiff supports bsq and bip.");
    }
}

// Description of the outputs
// ----------------------------------------------------------------------------------------------------------

/// Returns the number as text with nine digits, which represent a float exactly.
std::string number_text(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

template <class T>
std::string envi_list(const std::vector<T>& values) {
    std::string text = "{";
    for (size_t i = 0; i < values.size(); ++i)
        text += (i ? ", " : "") + number_text(static_cast<double>(values[i]));
    return text + "}";
}

raster::OutputSpec frame(const Settings& s, int bands) {
    raster::OutputSpec spec;
    spec.shape = {s.scene.samples, s.scene.lines, bands};
    spec.srs = "EPSG:" + std::to_string(s.epsg);
    const bool degrees = raster::is_geographic(spec.srs);
    const double pixel = degrees ? degrees_per_pixel : metres_per_pixel;
    const double angle = s.rotation * 3.14159265358979323846 / 180;
    // The rotation is counter-clockwise about the upper left corner.
    spec.geotransform = std::array<double, 6>{degrees ? 15.0 : 500000.0, pixel * math::cos(angle),
                                              pixel * math::sin(angle),  degrees ? 52.0 : 5800000.0,
                                              pixel * math::sin(angle),  -pixel * math::cos(angle)};
    if (s.rotation == 0) (*spec.geotransform)[2] = (*spec.geotransform)[4] = 0;
    (*spec.geotransform)[0] += pixel * s.corner[0];
    (*spec.geotransform)[3] -= pixel * s.corner[1];
    return spec;
}

/// Describes the cube: georeference, wavelengths, FWHM and bad bands.
raster::OutputSpec cube_spec(const Settings& s, const synth::MadeScene& scene) {
    raster::OutputSpec spec = frame(s, s.scene.bands);
    const auto bands = static_cast<size_t>(s.scene.bands);
    std::vector<int> good(bands, 1);
    for (int b : scene.bad_bands())
        good[static_cast<size_t>(b)] = 0;
    for (size_t b = 0; b < bands; ++b) {
        raster::BandSpec band;
        band.description = "Band " + std::to_string(b + 1);
        band.metadata["wavelength"] = number_text(scene.wavelengths()[b]);
        band.metadata["wavelength_units"] = "Nanometers";
        band.metadata["fwhm"] = number_text(scene.fwhm()[b]);
        if (!scene.bad_bands().empty()) band.metadata["bbl"] = std::to_string(good[b]);
        spec.bands.push_back(std::move(band));
    }
    spec.envi["wavelength units"] = "Nanometers";
    spec.envi["wavelength"] = envi_list(scene.wavelengths());
    spec.envi["fwhm"] = envi_list(scene.fwhm());
    if (!scene.bad_bands().empty()) spec.envi["bbl"] = envi_list(good);
    spec.envi["default bands"] = envi_list(scene.default_bands());
    if (s.scene.scale != 1) spec.envi["reflectance scale factor"] = number_text(s.scene.scale);
    spec.keep_nan = true; // NaN pixels stay NaN, even if the file has a nodata value
    if (s.scene.stripe_width > 0) spec.nodata = s.scene.nodata;
    spec.metadata["HSI_SYNTH_SEED"] = std::to_string(s.scene.seed);
    spec.metadata["HSI_SYNTH_SNR"] = number_text(s.scene.snr);
    return spec;
}

/// Describes the label raster. Class 0 is "Unclassified"; classes 1, 2, ... are the materials.
raster::OutputSpec label_spec(const Settings& s, const synth::MadeScene& scene) {
    raster::OutputSpec spec = frame(s, 1);
    spec.type = "Byte";
    spec.bands = {{"Dominant material", {}}};
    spec.categories = scene.names();
    spec.categories.insert(spec.categories.begin(), "Unclassified");
    spec.colours = scene.colours();
    spec.colours.insert(spec.colours.begin(), {0, 0, 0, 0});
    return spec;
}

/// Describes the raster of -geometry, which has the bands of an AVIRIS OBS file.
raster::OutputSpec geometry_spec(const Settings& s) {
    raster::OutputSpec spec = frame(s, static_cast<int>(synth::geometry_names.size()));
    for (const char* const name : synth::geometry_names)
        spec.bands.push_back({name, {}});
    return spec;
}

/// Describes the raster of -values: nitrogen in plants, in percent.
raster::OutputSpec value_spec(const Settings& s) {
    raster::OutputSpec spec = frame(s, 1);
    raster::BandSpec band{"nitrogen", {}};
    band.unit = "%";
    spec.bands = {std::move(band)};
    spec.holes = true;
    return spec;
}

/// Returns the polygons of -plots: squares of 3 x 3 pixels with their values.
raster::PointLayer plot_layer(const Settings& s, const synth::MadeScene& scene) {
    constexpr int wanted = 120;
    const auto spec = frame(s, 1);
    const auto& g = *spec.geotransform;
    raster::PointLayer layer;
    layer.name = raster::layer_name(s.plots);
    layer.srs_wkt = spec.srs;
    layer.fields = {{"plot", true}, {"nitrogen"}};
    layer.polygons = true;
    for (const auto& plot : scene.plots(wanted)) {
        raster::Ring ring;
        for (const auto& [x, y] : {std::pair{0, 0}, {0, 3}, {3, 3}, {3, 0}, {0, 0}}) {
            const double sample = static_cast<double>(plot.sample + x),
                         line = static_cast<double>(plot.line + y);
            ring.push_back({g[0] + sample * g[1] + line * g[2], g[3] + sample * g[4] + line * g[5]});
        }
        raster::Point point;
        point.values = {static_cast<double>(layer.points.size() + 1), plot.value};
        point.polygons = {{std::move(ring)}};
        layer.points.push_back(std::move(point));
    }
    return layer;
}

/// Returns the document of -truth: the true composition of the scene.
Json truth_of(const Settings& s, const synth::MadeScene& scene) {
    Json endmembers = Json::array(), targets = Json::array(), holes = Json::array(), bad = Json::array();
    const auto names = scene.names();
    for (int k = 0; k < s.scene.endmembers; ++k)
        endmembers.push_back(
            {{"name", names[static_cast<size_t>(k)]}, {"label", k + 1}, {"spectrum", scene.spectrum(k)}});
    for (const auto& t : scene.targets())
        targets.push_back({{"line", t.line},
                           {"sample", t.sample},
                           {"endmember", t.endmember},
                           {"name", names[static_cast<size_t>(t.endmember)]}});
    for (const auto& [line, sample] : scene.nan_pixels())
        holes.push_back({{"line", line}, {"sample", sample}});
    for (int b : scene.bad_bands())
        bad.push_back(b + 1);
    Json root{{"size", {s.scene.samples, s.scene.lines, s.scene.bands}},
              {"seed", s.scene.seed},
              {"scale", s.scene.scale},
              {"wavelengths_nm", scene.wavelengths()},
              {"fwhm_nm", scene.fwhm()},
              {"noise_sigma", scene.noise()},
              {"bad_bands", bad},
              {"endmembers", endmembers},
              {"targets", targets},
              {"nan_pixels", holes}};
    root["snr_db"] = std::isinf(s.scene.snr) ? Json("inf") : Json(s.scene.snr);
    if (s.scene.stripe_width > 0)
        root["nodata_stripe"] = {{"first_sample", s.scene.stripe_first},
                                 {"samples", s.scene.stripe_width},
                                 {"value", s.scene.nodata}};
    return root;
}

// The run
// ----------------------------------------------------------------------------------------------------------

void make_scene(tool::Run& run, Settings s) {
    const auto& options = run.options();
    raster::OutputOptions cube_options = options.destination;
    choose_format(cube_options, s.interleave);
    const std::string type = cube_options.type.empty() ? "Float32" : cube_options.type;
    if (tool::is_integer_type(type)) {
        s.scene.scale = type == "Byte" || type == "Int8" ? 100 : integer_scale;
        if (s.scene.nan_pixels > 0)
            throw UsageError("-nan-pixels: type " + type + " cannot store NaN",
                             "Use -ot Float32, or -nodata-stripe.");
    }
    s.scene.nodata = cube_options.nodata.value_or(default_nodata(type));
    if (cube_options.nodata && type != "Float32" && !std::isnan(s.scene.nodata) &&
        double{static_cast<float>(s.scene.nodata)} != s.scene.nodata)
        throw UsageError("-dstnodata " + number_text(s.scene.nodata) +
                             " is not exact in single precision, which scenes use",
                         "Use another value, for example -9999.");
    if (s.scene.stripe_width == 0 && cube_options.nodata)
        throw UsageError(tool::option_requires("-dstnodata", "-nodata-stripe"),
                         "Leave it out, or give -nodata-stripe.");

    const auto scene = std::make_shared<const synth::MadeScene>(s.scene);
    const raster::OutputSpec cube = cube_spec(s, *scene);
    raster::OutputSet outputs;
    outputs.plan(cube_options, cube);
    const auto plan_side = [&](const char* option, const std::string& path, const raster::OutputSpec& spec) {
        if (path.empty()) return;
        auto side = run.side_output(option, path);
        side.nodata.reset();
        side.creation_options.clear();
        side.type.clear();
        if (side.format.empty()) choose_format(side, "");
        outputs.plan(side, spec);
    };
    plan_side("-labels", s.labels, label_spec(s, *scene));
    plan_side("-values", s.values, value_spec(s));
    plan_side("-geometry", s.geometry, geometry_spec(s));
    plan_side("-flat", s.flat, cube);
    outputs.check();
    raster::VectorOptions plots;
    plots.path = s.plots;
    plots.overwrite = options.destination.overwrite;
    plots.history = options.destination.history;
    plots.role = "-plots";
    plots.run = run.files();
    if (!s.plots.empty()) raster::check_vector_output(plots);
    const auto truth_output = run.text_output("-truth", s.truth, options.destination.overwrite);
    raster::check_text_output(truth_output);
    const double angle = s.rotation * 3.14159265358979323846 / 180;
    const auto painter =
        s.flown ? synth::make_line_painter(*scene,
                                           {s.corner[0], s.corner[1], std::cos(angle), std::sin(angle),
                                            s.light[0], s.light[1], !s.geometry.empty(), s.sun[0], s.sun[1]},
                                           {!s.labels.empty(), !s.geometry.empty(), !s.flat.empty()})
                : synth::make_painter(scene, !s.labels.empty(), !s.values.empty());
    const synth::Canvas canvas(scene->shape());
    run.report()["device"] = tool::describe_devices(run, {}, synth::simd_target());
    tool::write(run, canvas, *painter, outputs, nullptr, [&] { return run.pass("paint", 1); });
    outputs.commit();
    if (!s.plots.empty()) {
        const auto layer = plot_layer(s, *scene);
        if (layer.points.empty())
            run.warn("'" + s.plots + "' has no plots: no square of 3 x 3 pixels is covered by plants");
        raster::write_points(plots, layer);
    }
    if (!s.truth.empty()) raster::write_text_output(truth_output, truth_of(s, *scene).dump(1) + "\n");
}

// The options
// ----------------------------------------------------------------------------------------------------------

void check(const tool::Call& call, Settings& s) {
    s.flown = call.given("corner");
    s.scene.trait = call.given("values") || call.given("plots");
    if (!s.flown && call.given("light"))
        throw UsageError(tool::option_requires("-light", "-corner"), "Give -corner X Y, too.");
    if (!s.flown && call.given("geometry")) throw UsageError("-geometry requires -corner");
    for (const char* const name : {"flat", "sun"})
        if (call.given(name) && s.geometry.empty())
            throw UsageError("-" + std::string(name) + " requires -geometry");
    constexpr double lowest_sun = 80;
    if (!(s.sun[0] >= 0 && s.sun[0] <= lowest_sun) || !(std::fabs(s.sun[1]) <= 360))
        throw UsageError("-sun: ZENITH must be from 0 to 80 and AZIMUTH from -360 to 360 degrees");
    for (const double v : {s.corner[0], s.corner[1], s.light[0], s.light[1]})
        if (!(std::fabs(v) <= 1e6)) throw UsageError("-corner and -light must be numbers up to 1000000");
    if (!(s.light[0] > 0) || !(std::fabs(s.light[1]) < 1))
        throw UsageError("-light: FACTOR must be above 0, and SLOPE between -1 and 1");
    if (!std::isfinite(s.rotation)) throw UsageError("-rotate must be a number of degrees");
    if (s.size[2] < 1 || s.size[2] > 65535)
        throw UsageError("-size: " + std::to_string(s.size[2]) + " bands are outside 1..65535");
    s.scene.samples = s.size[0];
    s.scene.lines = s.size[1];
    s.scene.bands = static_cast<int>(s.size[2]);
    s.scene.stripe_first = s.stripe[0];
    s.scene.stripe_width = s.stripe[1];
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.option("size", s.size, "Size of the scene: samples, lines and bands")
        .shown_as("XSIZE YSIZE BANDS")
        .required = true;
    args.option("seed", s.scene.seed, "Seed: each value gives another scene").from(0);
    args.choice<synth::Pattern>(
        "pattern", s.scene.pattern, "Landscape",
        {{"land", synth::Pattern::land,
          "strips of crops, woods, a river, roads, settlements, rock; hills and shadows"},
         {"fields", synth::Pattern::fields,
          "polygons of any material, a river and a grid of roads, evenly lit"}});
    args.option("endmembers", s.scene.endmembers, "Materials in the scene, 2 to 24");
    args.option("snr", s.scene.snr, "Signal-to-noise ratio of every band; inf: no noise")
        .in_unit("decibels")
        .or_infinite();
    args.option("targets", s.scene.targets,
                "Number of pure pixels at random positions, of all materials in turn");
    args.output("labels", s.labels, Content::raster,
                "Also write the dominant material of every pixel to FILE, with class names and colours; "
                "0: nodata");
    args.output("truth", s.truth, Content::text,
                "Also write the endmembers' spectra, targets, noise, bad bands and invalid pixels to FILE")
        .shown_as("FILE.json");
    args.output(
        "values", s.values, Content::raster,
        "Also write the nitrogen content of plants (%) to FILE; nodata where plants cover less than 90 %");
    args.output(
            "plots", s.plots, Content::vector,
            "Also write up to 120 plots of 3 x 3 pixels with the mean nitrogen content of their plants to "
            "FILE")
        .shown_as("FILE.gpkg");
    args.choice<std::string>("interleave", s.interleave,
                             "Interleave; implies ENVI unless dst or -of specifies GTiff",
                             {{"bsq", "bsq", "band by band"},
                              {"bil", "bil", "line by line, ENVI only"},
                              {"bip", "bip", "pixel by pixel"}})
        .defaults_to("bsq, or as specified by the extension of dst");
    args.option("epsg", s.epsg,
                "EPSG code of the SRS; pixels are 30 m wide, or 0.0003 degrees in a geographic SRS")
        .shown_as("CODE");
    args.option("rotate", s.rotation, "Rotate the georeference counter-clockwise about the upper left corner")
        .in_unit("degrees")
        .shown_as("DEGREES");
    args.option("corner", s.corner,
                "Make a flight line over an unlimited landscape, with its upper left corner at X east and"
                " Y south")
        .shown_as("X Y")
        .in_unit("pixels")
        .defaults_to("the landscape itself");
    args.option(
            "light", s.light,
            "With -corner: multiply the brightness by FACTOR (1 + SLOPE x), where x is -1 at the left and "
            "1 at the right")
        .shown_as("FACTOR SLOPE")
        .defaults_to("1 0");
    args.output("geometry", s.geometry, Content::raster,
                "Angles over hills with BRDF (with -corner): FILE gets sensor, sun and terrain as an OBS "
                "file of AVIRIS");
    args.output("flat", s.flat, Content::raster,
                "With -geometry: also write the scene without hills and noise, seen from nadir (sun at 40"
                " degrees), to FILE");
    args.option("sun", s.sun, "With -geometry: zenith and azimuth of the sun")
        .shown_as("ZENITH AZIMUTH")
        .in_unit("degrees");
    args.option("nodata-stripe", s.stripe,
                "Nodata in the samples XOFF to XOFF+WIDTH-1 of every line (-dstnodata, else -9999 or "
                "similar)")
        .shown_as("XOFF WIDTH");
    args.option("nan-pixels", s.scene.nan_pixels,
                "Number of scattered pixels with NaN: one half in all bands, the other half in one band");
    args.option("bad-bands", s.scene.bad_bands,
                "Number of bands, nearest to 1400 and 1900 nm, that contain only noise and are marked as "
                "bad");
    args.add_destination();
    args.add_compute(false);
    args.check([&s](const tool::Call& call) { check(call, s); });
    args.body([&s](tool::Run& run) { make_scene(run, s); });
}

} // namespace synth_tool
} // namespace

namespace tools {

extern constinit const tool::Definition synth{
    "synth",
    "Synthetic scenes with known truth",
    "Makes a hyperspectral scene with known truth: a landscape of library materials, "
    "mixed pixels, shading and noise, georeferenced, with wavelengths. The same options give the "
    "same values on every machine.",
    {{"gdal_hsi_synth -size 614 512 224 -targets 8 -truth truth.json -labels labels.tif scene.tif",
      "A scene of the size of an AVIRIS scene, with eight targets and its truth"},
     {"gdal_hsi_synth -size 1000 100000 200 -interleave bil -ot Int16 flightline.dat",
      "40 GB line by line, as recorded by a scanner"},
     {"gdal_hsi_synth -size 150 400 100 -corner 200 50 -rotate 20 -light 0.8 0.1 line2.bil",
      "One of several flight lines over a landscape, with its own heading and illumination"},
     {"gdal_hsi_synth -size 300 300 100 -nodata-stripe 40 5 -nan-pixels 20 -bad-bands 6 awkward.tif",
      "A scene with nodata, NaN and bad bands"}},
    "",
    synth_tool::declare,
    false,
    false};

} // namespace tools
} // namespace hsi
