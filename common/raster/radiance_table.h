// SPDX-License-Identifier: MIT
// Tables of radiances that a radiative transfer program has simulated for different amounts of a gas.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The conditions that such a table is read for.
struct TableConditions {
    bool methane = true;                         ///< else carbon dioxide: which axis a table of five axes has
    std::vector<double> concentrations;          ///< of a raster's samples, ppm m; empty: mag1c's
    std::optional<double> sun_zenith;            ///< degrees
    double elevation = 0, sensor_altitude = 100; ///< km
    double water_vapour = 1.3;                   ///< cm
};

/// The kind of table: a text with columns, HDF5 with modtran_data, or a raster with a sample per
/// concentration.
enum class RadianceForm { columns, simulated, samples };

struct SimulatedRadiances {
    RadianceForm form = RadianceForm::columns;
    std::vector<double> wavelengths_nm;
    std::vector<double> concentrations;         ///< ppm m
    std::vector<std::vector<double>> radiances; ///< one spectrum per concentration
};

/// By content: an HDF5 file with modtran_data (sun zenith, height, elevation, water, concentration,
/// wavelength) and wave, interpolated in radiance along its first four axes; a text with the columns
/// wavelength and, named by their concentration, radiances; or a raster of one line with a sample per
/// concentration. \throws Error naming the file.
SimulatedRadiances read_radiance_table(const std::string& path, const TableConditions& conditions);

} // namespace hsi::raster
