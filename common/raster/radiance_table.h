// SPDX-License-Identifier: MIT
// Tables of radiances that a radiative transfer program has simulated for different amounts of a gas.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The conditions for which radiances are read from a table.
struct TableConditions {
    /// True: methane; false: carbon dioxide. The gas decides the concentrations in an HDF5 table, which does
    /// not state them.
    bool methane = true;
    /// Concentrations of the samples of a raster, ppm m; empty: the seven concentrations of mag1c (0 to
    /// 16,000 ppm m).
    std::vector<double> concentrations;
    std::optional<double> sun_zenith;            ///< degrees
    double elevation = 0, sensor_altitude = 100; ///< elevation of the ground and altitude of the sensor, km
    double water_vapour = 1.3;                   ///< water vapour column, cm
};

/// The form of a table: a text with columns, HDF5 with modtran_data, or a raster with one sample per
/// concentration.
enum class RadianceForm { columns, simulated, samples };

struct SimulatedRadiances {
    RadianceForm form = RadianceForm::columns;
    std::vector<double> wavelengths_nm;
    std::vector<double> concentrations;         ///< ppm m
    std::vector<std::vector<double>> radiances; ///< one spectrum per concentration
};

/// Reads a table. The form is recognised by the file's content. An HDF5 file has modtran_data (sun zenith,
/// height, elevation, water, concentration, wavelength) and wave; the radiances are interpolated along the
/// first four axes for the conditions. A text has the column wavelength and columns of radiances, named by
/// their concentration. A raster has one line with one sample per concentration. \throws Error that names the
/// file.
SimulatedRadiances read_radiance_table(const std::string& path, const TableConditions& conditions);

} // namespace hsi::raster
