// SPDX-License-Identifier: MIT
// Spectra with names and wavelengths: ENVI spectral libraries (.sli with a .hdr), CSV tables, and other
// formats: tables of text, USGS splib07, ECOSTRESS, files of field spectrometers, the profiles of EnMAP-Box
// (library_formats.h).
//
// CSV tables have one row per band. The first row has the names of the columns: band (number of the band in
// the scene, counted from 1), wavelength (nm), and then one column per spectrum. In files that are read, the
// columns may have any order. The columns band and wavelength and the row of names may be missing.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hsi::raster {

struct SpectralLibrary {
    std::vector<std::string> names;
    std::vector<std::vector<double>> spectra; ///< of equal length; NaN: missing value
    std::vector<std::string> classes;   ///< one per spectrum if the file has a field "class"; empty: unknown
    std::vector<double> wavelengths_nm; ///< one per band; NaN if unknown; empty if all are unknown
    std::vector<double> fwhm_nm;        ///< one per band; empty if unknown
    /// The bands' numbers in the scene of the spectra, from 1 on and each once; empty: unknown.
    std::vector<int> band_numbers;
    /// True if the file certainly states band numbers. False if the numbers in a table are 1, 2, 3 ...,
    /// because they may be row numbers.
    bool numbers_told = false;
    bool other_axis = false;        ///< the file states the bands' positions on an axis that cannot be
                                    ///< converted
    std::vector<std::string> notes; ///< notes for the user about the file
    size_t missing = 0;             ///< NaN values: missing in the file, or an undeclared fill value
    bool twofold = false; ///< write double precision: .csv with 17 digits instead of 9, .sli as Float64
    bool widths_in_table = false; ///< also write fwhm_nm into a .csv, as a column fwhm
    size_t bands() const { return spectra.empty() ? 0 : spectra.front().size(); }
};

/// Reads a library. The content decides the format, together with the extension (.csv) and a header next to
/// the file, which shows that the file is an ENVI library. Missing values are NaN: channels that the file
/// marks, empty cells, and undeclared fill values (USGS's -1.23e34 and its remains after convolution, 1e20
/// and beyond, -9999 and the like if no other value is near). A note states the number of undeclared fill
/// values. `scene_bands` distinguishes bands from spectra in a MATLAB file, which does not state which
/// dimension is which; 0: unknown. Throws Error that names the file and the fault, also if all values are
/// missing.
SpectralLibrary read_spectral_library(const std::string& path, size_t scene_bands = 0);

/// Returns the indices of spectra with infinite values. The tools refuse such spectra.
std::vector<size_t> infinite_spectra(const SpectralLibrary& library);

/// The bands of a spectrometer, as a file lists them.
struct BandList {
    std::vector<double> wavelengths_nm;
    std::vector<double> fwhm_nm;    ///< one per band, NaN if unknown; empty if all are unknown
    std::vector<std::string> notes; ///< notes for the user about the file
};
/// Reads the bands of a library in any format, or of a table with columns of wavelengths and usually widths
/// (fwhm); ignores columns of names.
/// \throws Error as read_spectral_library(), and if there are no wavelengths.
BandList read_band_list(const std::string& path);

/// The requested columns of a table about the spectra of a library. The table has one row per spectrum, and
/// one of its columns contains the names of the spectra.
struct SpectrumTable {
    /// The requested cells, in the order of the request; empty: missing.
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> further; ///< columns that were not requested
};
/// Reads the columns `needed`, then the columns `optional`. The file may have them in any order, and their
/// names in upper or lower case. A cell that marks a missing value (NA, nan, - ...) is empty; in an
/// `optional` column, nan is a computed value and is kept. \throws Error that names the file if it is not a
/// table with column names, or if a needed column is missing.
SpectrumTable read_spectrum_table(const std::string& path, const std::vector<std::string>& needed,
                                  const std::vector<std::string>& optional = {});
/// Returns the number in a cell, with a decimal point or comma; NaN if it is not a number.
double table_number(const std::string& cell);

/// Returns true if the file may be a library: a text, ENVI data whose header states a library, or a binary
/// format of libraries. For such a file, a message may include the reason why it cannot be read as a library.
bool may_be_library(const std::string& path);

/// Returns the library in `path` if the file is certainly a library: its ENVI header states a library, or its
/// spectra have wavelengths, band numbers or positions on another axis. nullopt for pipes, unreadable files,
/// and files that may be another table of numbers. Throws Error for a damaged file whose header states that
/// it is a spectral library.
std::optional<SpectralLibrary> plain_library(const std::string& path);

/// Returns the files next to `path` that are read together with the library `path`: the header or the data of
/// an ENVI library, the wavelengths of a USGS text.
std::vector<std::string> files_of_library(const std::string& path);

/// Returns the indices of the names that `wanted` selects, in the order of `wanted`, each once. An item is a
/// name (case is ignored), a pattern with * and ?, or #N, counted from 1. \throws Error for an item without a
/// match. The message has `role`, the item and similar names.
std::vector<size_t> chosen_names(const std::vector<std::string>& names,
                                 const std::vector<std::string>& wanted, const std::string& role);
/// Returns the indices of names that denote standard deviations, as gdal_hsi_spectra writes them: "X
/// deviation", if the list also contains "X".
std::set<size_t> deviations_in(const std::vector<std::string>& names);
/// Returns true if no item of `wanted` is a pattern with * or ?.
bool are_exact(const std::vector<std::string>& wanted);

/// Returns a library of the spectra at these indices, in the order of `indices`, with wavelengths, FWHM and
/// band numbers.
SpectralLibrary selected(const SpectralLibrary& library, const std::vector<size_t>& indices);

/// Returns the library's spectra at other wavelengths (nm), by linear interpolation between neighbouring
/// bands. A value is NaN if its wavelength is outside the library's range or unknown, or if the value of a
/// neighbouring band is missing. The result has no FWHM and no band numbers.
SpectralLibrary resampled(const SpectralLibrary& library, const std::vector<double>& wavelengths_nm);

} // namespace hsi::raster
