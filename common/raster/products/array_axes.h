// SPDX-License-Identifier: MIT
// Cubes in netCDF and HDF5 files whose axes GDAL's two-dimensional readers take in the wrong order.
#pragma once

#include <initializer_list>
#include <string>

class GDALDataset;

namespace hsi::raster {

/// The meaning of an axis of a cube, by its name: "wavelength", "downtrack", "pixels_per_line", "lon", "x".
enum class Axis { unknown, bands, lines, samples };
Axis axis_called(const std::string& name);
/// Returns true for names that readers of HDF5 make up, because HDF5 has no names of axes.
bool is_made_up(const std::string& name);
/// Names of wavelengths in lower case without other characters. Names that contain "wavelen" also count.
inline constexpr std::initializer_list<const char*> wavelength_names = {
    "wavl",        "wavlength",  "wavlengths",  "wl",         "wls",     "wvl",    "wvls",
    "wlen",        "lambda",     "lambdas",     "lam",        "bandsnm", "wave",   "waves",
    "bandcenters", "bandcenter", "bandcentres", "bandcentre", "centers", "centres"};
/// Returns true for names of lists of wavelengths or wavenumbers: "wl", "band_centers", "lambda_um".
bool lists_wavelengths(const std::string& name);
/// Returns true for such names that contain the full word.
bool says_wavelength_in_full(const std::string& name);

/// Checks the axes of a cube. GDAL's readers take the last axis of an array for columns, the one before for
/// lines and the first for bands. EMIT stores (downtrack, crosstrack, bands) and PRISMA (line, band, sample),
/// so every "spectrum" would be a column of the scene; (band, x, y) exchanges lines and samples. \throws
/// Error for such a cube, with the command that transposes its axes. Axes are identified by their names, by
/// lists of wavelengths in the file with the same length or, without names, by more than four times as many
/// bands as columns. Datasets of other drivers pass. `name`: the user's name of the dataset.
void check_axes(GDALDataset& dataset, const std::string& name);

} // namespace hsi::raster
