// SPDX-License-Identifier: MIT
// The readers behind read_spectral_library(), one per format. Values that a file does not have are NaN.
// Values that the file marks itself (data ignore value, bbl) are not counted in SpectralLibrary::missing.
#pragma once

#include "raster/spectral_library.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

inline constexpr double no_library_value = std::numeric_limits<double>::quiet_NaN();

/// The data and the header of an ENVI library; `path` is one of them. nullopt without a header. The header
/// has the extension .hdr (in any case), after the data's name or instead of its extension. If the header is
/// named, the data are next to it; `data` is empty if they do not exist.
struct EnviPair {
    std::string data, header;
};
std::optional<EnviPair> envi_pair(const std::string& path);
SpectralLibrary read_envi_library(const EnviPair& files);

/// Reads a table with commas, semicolons, tabs or blanks between columns. A spectrum is a column or a text
/// line; names in the first text line are optional. A comma in a number is a decimal comma. `bands_alone`:
/// ignores columns of text, and accepts a table without a spectrum.
SpectralLibrary read_library_table(const std::string& path, const std::string& text,
                                   bool bands_alone = false);
/// Recognises ENVI's text file of a plot: one text line per column, then lines of numbers. Colours after
/// names are dropped.
bool is_envi_plot(const std::string& text);
SpectralLibrary read_envi_plot(const std::string& path, const std::string& text);
/// The meaning of a column by its name, in any position: fwhm, bbl, or a spectrum.
enum class TableColumn { spectrum, widths, marks };
TableColumn table_column(const std::string& name);

/// Recognises a text file of USGS Spectral Library 7: a title line with "Record=", then one value per text
/// line. The wavelengths are in a similar file next to it or in a folder above.
bool is_usgs_text(const std::string& text);
SpectralLibrary read_usgs_text(const std::string& path, const std::string& text);
/// Returns the file of its wavelengths; empty if there is none.
std::string usgs_wavelength_file(const std::string& path, const std::string& text);

/// Recognises a text file of USGS splib06 and earlier: text lines about the archive, a title, and text lines
/// with wavelength (micrometres), reflectance and its standard deviation.
bool is_old_usgs_text(const std::string& text);
SpectralLibrary read_old_usgs_text(const std::string& path, const std::string& text);

/// Recognises a text file of ECOSTRESS (and ASTER): "Name: ..." and further header lines, then text lines
/// with wavelength and value. Per cent are converted to fractions.
bool is_ecostress_text(const std::string& text);
SpectralLibrary read_ecostress_text(const std::string& path, const std::string& text);

/// Recognise files of field spectrometers with one spectrum per file: ASD's binary files (ASD File Format,
/// version 8, revision B, 2017), SVC's .sig and Spectral Evolution's .sed. Reflectance is a fraction.
bool is_asd_file(const std::string& bytes);
SpectralLibrary read_asd_file(const std::string& path, const std::string& bytes);
bool is_svc_text(const std::string& text);
SpectralLibrary read_svc_text(const std::string& path, const std::string& text);
bool is_sed_text(const std::string& text);
SpectralLibrary read_sed_text(const std::string& path, const std::string& text);

/// Profiles in the form of EnMAP-Box and QGIS: features with a field {"x": [...], "y": [...], "xUnit": ...},
/// in GeoJSON or a GeoPackage.
bool holds_features(const std::string& text); ///< GeoJSON, by its beginning
/// `text`: the file's text if it was already read (a pipe can be read only once).
SpectralLibrary read_feature_spectra(const std::string& path, const std::string* text = nullptr);

/// Reads MATLAB files: an array (band, spectrum), or (spectrum, band) if the scene's bands, wavelengths or
/// names show it. `scene_bands`: 0 without a scene.
bool is_matlab(const std::string& path);
SpectralLibrary read_matlab_library(const std::string& name, size_t scene_bands);

/// Reads an array of netCDF, HDF5 or Zarr: (spectrum, band) or (band, spectrum), by the names and coordinates
/// of its axes, else by the scene's bands.
SpectralLibrary read_array_library(const std::string& path, size_t scene_bands);

/// Throws Error with the file and the known formats.
[[noreturn]] void refuse_library(const std::string& path, const std::string& what);
/// Reads 1.5, 1.5e-3 or 1.5D-03; NaN if the text is not a number.
double library_number(const std::string& text);
/// Also accepts a comma as the decimal sign.
double number_with_comma(const std::string& text);
/// Converts the values to nanometres; empty if all are unknown.
void library_to_nm(std::vector<double>& values, const std::string& units);
/// Converts the library's wavelengths likewise, in the unit that chosen_unit() finds for `units`, and adds
/// its note. Returns the unit's symbol; empty without wavelengths.
std::string wavelengths_to_nm(SpectralLibrary& library, const std::string& path, const std::string& units);
/// Converts the library's widths likewise, and adds a note if a width is negative or infinite.
void widths_to_nm(SpectralLibrary& library, const std::string& path, const std::string& units);
/// Returns the file's bytes. \throws Error.
std::string library_text(const std::string& path);
/// Sets the library's band numbers if they are valid: whole, from 1 on, each once. `told`:
/// SpectralLibrary::numbers_told for 1, 2, 3 ...
void take_band_numbers(SpectralLibrary& library, const std::vector<double>& numbers, bool told);
/// Adds "'a.csv': what" to the library's notes.
void note(SpectralLibrary& library, const std::string& path, const std::string& what);

} // namespace hsi::raster
