// SPDX-License-Identifier: MIT
// The settings of gdal_hsi_gas.
#pragma once

#include "gas/gas.h"
#include "gdal_hsi_gas/plumes.h"
#include "raster/radiance_table.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::gas_tool {

enum class How { mag1c, mf, lognormal, none };
enum class Gas { ch4, co2 };

struct Settings {
    How how = How::mag1c;
    Gas gas = Gas::ch4;
    std::vector<std::string> range_texts;
    std::vector<raster::BandChoice> ranges;

    std::string absorption;            ///< -absorption
    std::vector<std::string> spectrum; ///< of that library
    double library_scale = 1;
    tools::BandFit fit = tools::BandFit::automatic;
    std::string save; ///< -save-absorption
    std::string lut;  ///< -lut
    raster::TableConditions conditions;
    std::vector<std::string> conditions_given; ///< the given options among the conditions

    std::string columns_text = "1";
    std::optional<int64_t> columns; ///< empty: all columns together
    std::string shrinkage_text = "none";
    std::string output_text = "enhancement";
    bool no_albedo = false, no_sparsity = false;
    gas::FilterOptions filter;
    std::string noise;           ///< -noise
    std::optional<double> flare; ///< -flare-threshold
    PlumeSettings plumes;

    double molar_mass() const { return gas == Gas::ch4 ? 0.01604 : 0.04401; } ///< kg/mol
    const char* name() const { return gas == Gas::ch4 ? "CH4" : "CO2"; }
    bool writes(gas::Output output) const {
        for (const auto one : filter.outputs)
            if (one == output) return true;
        return false;
    }
};

/// Returns a number for a message, as the shortest text that restores it.
std::string number(double v);

/// Leaves the bands outside of the ranges, and bands without a unit absorption, out of the scene. \return k
/// at the remaining bands. \throws Error.
std::vector<double> unit_absorption(tool::Run& run, const Settings& s,
                                    std::shared_ptr<raster::RasterSource>& scene);

/// Reads -noise at the scene's bands.
std::vector<gas::NoiseBand> read_noise(tool::Run& run, const Settings& s, const raster::RasterSource& scene);

} // namespace hsi::gas_tool
