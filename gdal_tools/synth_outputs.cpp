// SPDX-License-Identifier: MIT
#include "synth_outputs.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

namespace hsi::tools {
namespace {

constexpr double metres_per_pixel = 30, degrees_per_pixel = 0.0003; // those of a spaceborne imager

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return text;
}

std::string extension_of(const std::string& path) {
    return lower(std::filesystem::path(path).extension().string());
}

template <class T>
std::string envi_list(const std::vector<T>& values) {
    std::string text = "{";
    for (size_t i = 0; i < values.size(); ++i)
        text += (i ? ", " : "") + synth_number(static_cast<double>(values[i]));
    return text + "}";
}

raster::OutputSpec frame(const SynthSettings& s, int bands) {
    raster::OutputSpec spec;
    spec.shape = {s.scene.samples, s.scene.lines, bands};
    spec.srs = "EPSG:" + std::to_string(s.epsg);
    const bool degrees = raster::is_geographic(spec.srs);
    const double pixel = degrees ? degrees_per_pixel : metres_per_pixel;
    const double angle = s.rotation * 3.14159265358979323846 / 180;
    // Counter-clockwise about the upper left corner.
    spec.geotransform =
        std::array<double, 6>{degrees ? 15.0 : 500000.0,  pixel * std::cos(angle), pixel * std::sin(angle),
                              degrees ? 52.0 : 5800000.0, pixel * std::sin(angle), -pixel * std::cos(angle)};
    if (s.rotation == 0) (*spec.geotransform)[2] = (*spec.geotransform)[4] = 0;
    return spec;
}

} // namespace

std::string synth_number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

bool is_integer(const std::string& type) {
    return type.find("Int") != std::string::npos || type == "Byte" || type == "Int8";
}

double default_nodata(const std::string& type) {
    if (type == "Byte") return 255;
    if (type == "Int8") return -128;
    if (type == "UInt16") return 65535;
    if (type == "UInt32") return 4294967295.0;
    if (type == "UInt64") return 65535; // far above any scaled reflectance, and exact in single precision
    return -9999;
}

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
            throw UsageError("-interleave and -co " + option + " contradict one another",
                             "Give one of them.");
    if (lower(out.format) == "envi") {
        out.creation_options.push_back("INTERLEAVE=" + interleave);
    } else if (tiff && interleave != "bil") {
        out.creation_options.emplace_back(interleave == "bsq" ? "INTERLEAVE=BAND" : "INTERLEAVE=PIXEL");
    } else {
        throw UsageError("-interleave " + interleave + " is not possible in format " +
                             (tiff ? "GTiff" : out.format),
                         "ENVI has bsq, bil and bip; GTiff has bsq and bip.");
    }
}

raster::OutputSpec cube_spec(const SynthSettings& s, const synth::Scene& scene) {
    raster::OutputSpec spec = frame(s, s.scene.bands);
    const auto bands = static_cast<size_t>(s.scene.bands);
    std::vector<int> good(bands, 1);
    for (int b : scene.bad_bands())
        good[static_cast<size_t>(b)] = 0;
    for (size_t b = 0; b < bands; ++b) {
        raster::BandSpec band;
        band.description = "Band " + std::to_string(b + 1);
        band.metadata["wavelength"] = synth_number(scene.wavelengths()[b]);
        band.metadata["wavelength_units"] = "Nanometers";
        band.metadata["fwhm"] = synth_number(scene.fwhm()[b]);
        if (!scene.bad_bands().empty()) band.metadata["bbl"] = std::to_string(good[b]);
        spec.bands.push_back(std::move(band));
    }
    spec.envi["wavelength units"] = "Nanometers";
    spec.envi["wavelength"] = envi_list(scene.wavelengths());
    spec.envi["fwhm"] = envi_list(scene.fwhm());
    if (!scene.bad_bands().empty()) spec.envi["bbl"] = envi_list(good);
    spec.envi["default bands"] = envi_list(scene.default_bands());
    if (s.scene.scale != 1) spec.envi["reflectance scale factor"] = synth_number(s.scene.scale);
    spec.keep_nan = true; // NaN pixels stay NaN beside a nodata value
    if (s.scene.stripe_width > 0) spec.nodata = s.scene.nodata;
    spec.metadata["HSI_SYNTH_SEED"] = std::to_string(s.scene.seed);
    spec.metadata["HSI_SYNTH_SNR"] = synth_number(s.scene.snr);
    return spec;
}

raster::OutputSpec label_spec(const SynthSettings& s, const synth::Scene& scene) {
    raster::OutputSpec spec = frame(s, 1);
    spec.type = "Byte";
    spec.bands = {{"Dominant material", {}}};
    spec.categories = scene.names();
    spec.categories.insert(spec.categories.begin(), "Unclassified");
    spec.colours = scene.colours();
    spec.colours.insert(spec.colours.begin(), {0, 0, 0, 0});
    return spec;
}

Json synth_truth(const SynthSettings& s, const synth::Scene& scene) {
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

} // namespace hsi::tools
