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
/// HDF5 has no names of axes; its readers make up names like these.
bool is_made_up(const std::string& name);
/// Names of wavelengths in lower case without other signs; names that contain "wavelen" count, too.
inline constexpr std::initializer_list<const char*> wavelength_names = {
    "wavl",        "wavlength",  "wavlengths",  "wl",         "wls",     "wvl",    "wvls",
    "wlen",        "lambda",     "lambdas",     "lam",        "bandsnm", "wave",   "waves",
    "bandcenters", "bandcenter", "bandcentres", "bandcentre", "centers", "centres"};
/// A list of such a name holds the wavelengths or wavenumbers of bands: "wl", "band_centers", "lambda_um".
bool lists_wavelengths(const std::string& name);
/// The same for names that contain the full word.
bool says_wavelength_in_full(const std::string& name);

/// These readers take the last axis of an array for columns, the one before for lines and the first for
/// bands. EMIT keeps (downtrack, crosstrack, bands) and PRISMA (line, band, sample): every "spectrum" would
/// be a column of the scene; (band, x, y) has lines for samples. \throws Error for such a cube, with the
/// command that turns its axes. The axes are identified by their names, by lists of wavelengths in the file
/// with the same length or, without names, by more than four times as many bands as columns. Datasets of
/// other drivers pass. `name`: the user's name of the dataset.
void check_axes(GDALDataset& dataset, const std::string& name);

} // namespace hsi::raster
