// SPDX-License-Identifier: MIT
// The readers behind read_spectral_library(), one per format. Values that are missing in a file are NaN.
// SpectralLibrary::missing does not count values that the file itself marks as invalid (data ignore value,
// bbl).
#pragma once

#include "raster/spectral_library.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

inline constexpr double no_library_value = std::numeric_limits<double>::quiet_NaN();

/// The paths of the data file and the header of an ENVI library.
struct EnviPair {
    std::string data, header;
};
/// Finds the data file and the header of an ENVI library; `path` is one of the two. nullopt if there is no
/// header. The header has the extension .hdr, .HDR or .Hdr, which either follows the name of the data file or
/// replaces its extension. If `path` is the header and there is no data file next to it, `data` is empty.
std::optional<EnviPair> envi_pair(const std::string& path);
SpectralLibrary read_envi_library(const EnviPair& files);

/// Reads a table with commas, semicolons, tabs or blanks between columns. Each column or each text line is a
/// spectrum. Names in the first text line are optional. A comma in a number is a decimal comma. If
/// `bands_alone` is true, columns of text are ignored, and a table without spectra is accepted.
SpectralLibrary read_library_table(const std::string& path, const std::string& text,
                                   bool bands_alone = false);
/// Recognises ENVI's text export of a plot: one text line per column name, then lines of numbers.
/// read_envi_plot() ignores the colours that follow the names.
bool is_envi_plot(const std::string& text);
SpectralLibrary read_envi_plot(const std::string& path, const std::string& text);
/// The meaning of a column, which follows from its name in any position of the table: widths (fwhm), marks of
/// good and bad bands (bbl), or a spectrum.
enum class TableColumn { spectrum, widths, marks };
TableColumn table_column(const std::string& name);

/// Recognises a text file of USGS Spectral Library 7: a title line with "Record=", then one value per text
/// line. The wavelengths are in a second file of this kind, in the same folder or in a folder above.
bool is_usgs_text(const std::string& text);
SpectralLibrary read_usgs_text(const std::string& path, const std::string& text);
/// Returns the path of the file that contains the wavelengths of a USGS text; empty if the file was not
/// found.
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

/// Returns true if the text may be GeoJSON, because it begins with {.
bool holds_features(const std::string& text);
/// Reads spectral profiles as EnMAP-Box and QGIS store them: features with a field {"x": [...], "y": [...],
/// "xUnit": ...} in GeoJSON or a GeoPackage. If `path` is a pipe, which can be read only once, `text` is its
/// content; otherwise null.
SpectralLibrary read_feature_spectra(const std::string& path, const std::string* text = nullptr);

/// Recognises and reads MATLAB files: an array (band, spectrum), or (spectrum, band) if the number of bands
/// of the scene, the wavelengths or the names indicate this order. `scene_bands` is 0 if there is no scene.
bool is_matlab(const std::string& path);
SpectralLibrary read_matlab_library(const std::string& name, size_t scene_bands);

/// Reads an array of netCDF, HDF5 or Zarr with the axes (spectrum, band) or (band, spectrum). The names and
/// coordinates of the axes decide the order. If they do not, the number of bands of the scene decides.
SpectralLibrary read_array_library(const std::string& path, size_t scene_bands);

/// Throws an Error that names the file and lists the supported formats.
[[noreturn]] void refuse_library(const std::string& path, const std::string& what);
/// Reads 1.5, 1.5e-3 or 1.5D-03; NaN if the text is not a number.
double library_number(const std::string& text);
/// Reads a number like library_number(), and also accepts a decimal comma.
double number_with_comma(const std::string& text);
/// Converts the values from `units` to nanometres. If `units` states no unit, chosen_unit() decides. Values
/// that cannot be converted become NaN; if none can be converted, the list becomes empty.
void library_to_nm(std::vector<double>& values, const std::string& units);
/// Converts the library's wavelengths to nanometres. chosen_unit() determines the unit from `units` and the
/// range of the values; its note is added to the library. Returns the symbol of the unit. Returns an empty
/// text if the library has no wavelengths or the unit is unknown; the library then has no wavelengths
/// afterwards, and in the second case other_axis is set.
std::string wavelengths_to_nm(SpectralLibrary& library, const std::string& path, const std::string& units);
/// Converts the library's FWHM to nanometres, and adds a note if a value is negative or infinite. FWHM in
/// wavenumbers, frequencies or energies cannot be converted and are removed.
void widths_to_nm(SpectralLibrary& library, const std::string& path, const std::string& units);
/// Returns the file's bytes. \throws Error.
std::string library_text(const std::string& path);
/// Sets the library's band numbers if `numbers` are whole, positive and unique. SpectralLibrary::numbers_told
/// becomes true if `told` is true, or if the numbers are not 1, 2, 3 ...
void take_band_numbers(SpectralLibrary& library, const std::vector<double>& numbers, bool told);
/// Adds the note "'PATH': WHAT" to the library.
void note(SpectralLibrary& library, const std::string& path, const std::string& what);

} // namespace hsi::raster
