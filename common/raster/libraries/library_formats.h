// SPDX-License-Identifier: MIT
// The readers behind read_spectral_library(), one per format. Values that a file does not have are NaN; those
// that it marks itself (data ignore value, bbl) are not counted in SpectralLibrary::missing.
#pragma once

#include "raster/spectral_library.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

inline constexpr double no_library_value = std::numeric_limits<double>::quiet_NaN();

/// The data and the header of an ENVI library; `path` is one of them. nullopt without a header. The header
/// has the extension .hdr, in any case of letters, after the data's name or in place of its extension. If the
/// header is named, the data are next to it; `data` is empty if they do not exist.
struct EnviPair {
    std::string data, header;
};
std::optional<EnviPair> envi_pair(const std::string& path);
SpectralLibrary read_envi_library(const EnviPair& files);

/// Columns between commas, semicolons, tabs or blanks; a column a spectrum or a line a spectrum, with or
/// without a line of names. A comma in a number is a decimal one. `bands_alone`: columns of text are left
/// out, and there may be no spectrum.
SpectralLibrary read_library_table(const std::string& path, const std::string& text,
                                   bool bands_alone = false);
/// ENVI's text file of a plot: one line per column, then lines of numbers. Colours behind names are dropped.
bool is_envi_plot(const std::string& text);
SpectralLibrary read_envi_plot(const std::string& path, const std::string& text);
/// The meaning of a column by its name, at any place: fwhm, bbl, or a spectrum like any other.
enum class TableColumn { spectrum, widths, marks };
TableColumn table_column(const std::string& name);

/// USGS Spectral Library 7 as text: a title line with "Record=", then one value per line; the wavelengths are
/// a file of the same kind next to it or in a folder above.
bool is_usgs_text(const std::string& text);
SpectralLibrary read_usgs_text(const std::string& path, const std::string& text);
/// The file of its wavelengths; empty if there is none.
std::string usgs_wavelength_file(const std::string& path, const std::string& text);

/// USGS splib06 and before as text: lines about the archive, a title, and wavelength (micrometres),
/// reflectance and its deviation a line.
bool is_old_usgs_text(const std::string& text);
SpectralLibrary read_old_usgs_text(const std::string& path, const std::string& text);

/// ECOSTRESS (and ASTER) as text: "Name: ..." and further lines of a header, then wavelength and value a
/// line. Percent become fractions.
bool is_ecostress_text(const std::string& text);
SpectralLibrary read_ecostress_text(const std::string& path, const std::string& text);

/// Files of field spectrometers with one spectrum each: ASD's binary files (ASD File Format, version 8,
/// revision B, 2017), SVC's .sig and Spectral Evolution's .sed. Reflectance is a fraction.
bool is_asd_file(const std::string& bytes);
SpectralLibrary read_asd_file(const std::string& path, const std::string& bytes);
bool is_svc_text(const std::string& text);
SpectralLibrary read_svc_text(const std::string& path, const std::string& text);
bool is_sed_text(const std::string& text);
SpectralLibrary read_sed_text(const std::string& path, const std::string& text);

/// Profiles in the form of EnMAP-Box and QGIS: features whose field holds {"x": [...], "y": [...], "xUnit":
/// ...}, in GeoJSON or a GeoPackage.
bool holds_features(const std::string& text); ///< GeoJSON, by its beginning
/// `text`: the file's, where it has been read already (a pipe gives it but once).
SpectralLibrary read_feature_spectra(const std::string& path, const std::string* text = nullptr);

/// MATLAB files: an array (band, spectrum), or the other way round if the scene's bands, wavelengths or names
/// show so; `scene_bands`: 0 without a scene.
bool is_matlab(const std::string& path);
SpectralLibrary read_matlab_library(const std::string& name, size_t scene_bands);

/// An array of netCDF, HDF5 or Zarr: (spectrum, band) or the other way round, by the names and coordinates of
/// its axes, else by the scene's bands.
SpectralLibrary read_array_library(const std::string& path, size_t scene_bands);

/// Throws Error with the file and the known formats.
[[noreturn]] void refuse_library(const std::string& path, const std::string& what);
/// 1.5, 1.5e-3, 1.5D-03; NaN if it is not a number.
double library_number(const std::string& text);
/// The same where a comma is the decimal sign, as well.
double number_with_comma(const std::string& text);
/// In nanometres; empty if all are unknown.
void library_to_nm(std::vector<double>& values, const std::string& units);
/// Does the same for the library's wavelengths, in the unit that chosen_unit() takes `units` for, with its
/// note. Returns the unit's symbol; empty without wavelengths.
std::string wavelengths_to_nm(SpectralLibrary& library, const std::string& path, const std::string& units);
/// The same of the library's widths, with a note where one is negative or infinite.
void widths_to_nm(SpectralLibrary& library, const std::string& path, const std::string& units);
/// The file's bytes. \throws Error.
std::string library_text(const std::string& path);
/// Puts band numbers into the library if they are possible ones: whole, from 1 on, each once. `told`:
/// SpectralLibrary::numbers_told for 1, 2, 3 ...
void take_band_numbers(SpectralLibrary& library, const std::vector<double>& numbers, bool told);
/// Adds "'a.csv': what" to the library's notes.
void note(SpectralLibrary& library, const std::string& path, const std::string& what);

} // namespace hsi::raster
