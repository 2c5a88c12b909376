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

    std::string absorption;            ///< path of -absorption
    std::vector<std::string> spectrum; ///< name of the spectrum in the library of -absorption
    double library_scale = 1;
    tools::BandFit fit = tools::BandFit::automatic;
    std::string save; ///< path of -save-absorption
    std::string lut;  ///< path of -lut
    raster::TableConditions conditions;
    std::vector<std::string> conditions_given; ///< names of the conditions that the user gave

    std::string columns_text = "1";
    std::optional<int64_t> columns; ///< columns per group; empty: all columns are one group
    std::string shrinkage_text = "none";
    std::string output_text = "enhancement";
    bool no_albedo = false, no_sparsity = false;
    gas::FilterOptions filter;
    std::string noise;           ///< path of -noise
    std::optional<double> flare; ///< value of -flare-threshold
    PlumeSettings plumes;

    double molar_mass() const { return gas == Gas::ch4 ? 0.01604 : 0.04401; } ///< molar mass in kg/mol
    const char* name() const { return gas == Gas::ch4 ? "CH4" : "CO2"; }
    bool writes(gas::Output output) const {
        for (const auto one : filter.outputs)
            if (one == output) return true;
        return false;
    }
};

/// Returns a number as text for a message: the shortest text that restores the number.
std::string number(double v);

/// Removes bands outside of the ranges and bands without a unit absorption from the scene. \return the unit
/// absorption k of the remaining bands, in 1/(ppm m). \throws Error.
std::vector<double> unit_absorption(tool::Run& run, const Settings& s,
                                    std::shared_ptr<raster::RasterSource>& scene);

/// Reads -noise at the bands of the scene.
std::vector<gas::NoiseBand> read_noise(tool::Run& run, const Settings& s, const raster::RasterSource& scene);

} // namespace hsi::gas_tool
