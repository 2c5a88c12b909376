// SPDX-License-Identifier: MIT
// Detects cubes in netCDF and HDF5 files whose axes GDAL's two-dimensional readers use in the wrong order.
#pragma once

#include <initializer_list>
#include <string>

class GDALDataset;

namespace hsi::raster {

/// The meaning of an axis of a cube. axis_called() derives it from the name of the axis, such as
/// "wavelength", "downtrack", "pixels_per_line", "lon" and "x".
enum class Axis { unknown, bands, lines, samples };
Axis axis_called(const std::string& name);
/// Returns true for names that readers of HDF5 files give to axes without names.
bool is_made_up(const std::string& name);
/// Names that denote lists of wavelengths, in lower case and without the characters between their words. Any
/// name that contains "wavelen" also denotes such a list.
inline constexpr std::initializer_list<const char*> wavelength_names = {
    "wavl",        "wavlength",  "wavlengths",  "wl",         "wls",     "wvl",    "wvls",
    "wlen",        "lambda",     "lambdas",     "lam",        "bandsnm", "wave",   "waves",
    "bandcenters", "bandcenter", "bandcentres", "bandcentre", "centers", "centres"};
/// Returns true for names of lists of wavelengths or wavenumbers, such as "wl", "band_centers" and
/// "lambda_um".
bool lists_wavelengths(const std::string& name);
/// Returns true for names that certainly denote wavelengths: they contain "wavelen", "wvl" or PRISMA's
/// "list_cw".
bool says_wavelength_in_full(const std::string& name);

/// Throws Error for a cube whose axes GDAL reads in the wrong order; the advice of the error states a command
/// that transposes the axes. GDAL uses the last axis of an array as columns, the axis before it as lines, and
/// the first axis as bands. EMIT stores (downtrack, crosstrack, bands) and PRISMA stores (line, band,
/// sample), so GDAL would return a column of the scene as a spectrum. For (band, x, y), GDAL exchanges lines
/// and samples. The band axis is identified by its name, or by its length, which equals the length of a list
/// of wavelengths. Without names, a first axis that is more than four times as long as the last axis is not
/// accepted as the bands. Datasets of other drivers than netCDF and HDF5 are not checked. `name` is the
/// user's name of the dataset.
void check_axes(GDALDataset& dataset, const std::string& name);

} // namespace hsi::raster
