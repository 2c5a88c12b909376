// SPDX-License-Identifier: MIT
// The rasters of gdal_hsi_synth and the record of its truth.
#pragma once

#include "core/json.h"
#include "raster/sink/raster_sink.h"
#include "synth/synth.h"

#include <array>
#include <cstdint>
#include <string>

namespace hsi::tools {

inline constexpr double integer_scale = 10000; ///< reflectance 1 in integer files

struct SynthSettings {
    synth::Options scene;
    std::array<int64_t, 3> size{};
    std::array<int64_t, 2> stripe{};
    std::string interleave, labels, truth;
    int epsg = 32633;
    double rotation = 0;
};

/// Nine digits, in which a float is exact.
std::string synth_number(double v);

bool is_integer(const std::string& type);

/// The nodata value when the user names none: -9999 where the type holds it, else the type's largest value.
double default_nodata(const std::string& type);

/// ENVI files go by many extensions; and -interleave is a word of ENVI's.
void choose_format(raster::OutputOptions& out, std::string interleave);

/// Georeference, wavelengths, widths and bad bands of the cube.
raster::OutputSpec cube_spec(const SynthSettings& s, const synth::Scene& scene);

/// Class 0 is "Unclassified"; the materials follow in their order.
raster::OutputSpec label_spec(const SynthSettings& s, const synth::Scene& scene);

/// -truth: what is known of the scene.
Json synth_truth(const SynthSettings& s, const synth::Scene& scene);

} // namespace hsi::tools
