// SPDX-License-Identifier: MIT
// Spectra with names and wavelengths: ENVI spectral libraries (.sli with a .hdr) and CSV tables, and other
// formats: tables of text, USGS splib07, ECOSTRESS, files of field spectrometers, the profiles of EnMAP-Box
// (library_formats.h).
//
// CSV: the first line names the columns: band (its number in the scene, from 1 on), wavelength (nm) and then
// one column per spectrum; one line per band. Reading takes any order of columns; band, wavelength and the
// line of names may be missing.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hsi::raster {

struct SpectralLibrary {
    std::vector<std::string> names;
    std::vector<std::vector<double>> spectra; ///< of one length; NaN: missing value
    std::vector<std::string> classes;   ///< one a spectrum where the file has a field "class", empty: unknown
    std::vector<double> wavelengths_nm; ///< one a band; NaN where unknown; empty when no band has one
    std::vector<double> fwhm_nm;        ///< also by band
    /// The bands' numbers in the scene of the spectra, from 1 on and each once; empty: unknown.
    std::vector<int> band_numbers;
    /// False for numbers of a table that are 1, 2, 3 ...: they may be line numbers.
    bool numbers_told = false;
    bool other_axis = false;        ///< the file places the bands, on an axis that does not convert
    std::vector<std::string> notes; ///< notes for the user about the file
    size_t missing = 0;             ///< NaN values: missing in the file, or an undeclared fill value
    bool twofold = false; ///< write it in double precision: .csv with 17 digits instead of 9, .sli as Float64
    bool widths_in_table = false; ///< write fwhm_nm into a .csv, too, as a column fwhm
    size_t bands() const { return spectra.empty() ? 0 : spectra.front().size(); }
};

/// The format is decided by the content, and by the extension .csv; a header next to the file makes it
/// ENVI's. Missing values are NaN: channels that the file marks, empty cells, and undeclared fill values
/// (USGS's -1.23e34 and its remains after convolution, 1e20 and beyond, -9999 and the like if no other value
/// is near). A note counts the undeclared ones. `scene_bands` distinguishes bands from spectra in a MATLAB
/// file, which does not state them; 0: not known. Throws Error naming the file and the fault, also if no
/// spectrum has a value.
SpectralLibrary read_spectral_library(const std::string& path, size_t scene_bands = 0);

/// Which spectra hold infinite values: the tools refuse them.
std::vector<size_t> infinite_spectra(const SpectralLibrary& library);

/// The bands of a spectrometer, as a file lists them.
struct BandList {
    std::vector<double> wavelengths_nm;
    std::vector<double> fwhm_nm;    ///< one a band, NaN where unknown; empty when no band has one
    std::vector<std::string> notes; ///< notes for the user about the file
};
/// The bands of a library in any format, or of a table with columns of wavelengths and usually widths (fwhm);
/// columns of names are left out. \throws Error as read_spectral_library(), and when there are no
/// wavelengths.
BandList read_band_list(const std::string& path);

/// A table about the spectra of a library: a line a spectrum, which a column calls by its name.
struct SpectrumTable {
    std::vector<std::vector<std::string>> rows; ///< the requested cells, in that order; empty: missing
    std::vector<std::string> further;           ///< columns that were not requested
};
/// Reads the columns `needed`, then `optional`, in any case and order. A cell that marks a missing value (NA,
/// nan, - ...) is empty; in a column of `optional`, nan is a computed value and stays. \throws Error naming
/// the file if it is not a table with column names, or if a needed column is missing.
SpectrumTable read_spectrum_table(const std::string& path, const std::vector<std::string>& needed,
                                  const std::vector<std::string>& optional = {});
/// The number in a cell, with a decimal point or comma; NaN if it is not a number.
double table_number(const std::string& cell);

/// Whether the file has the form of a library, so that the reason against reading it as one helps a user:
/// text, ENVI data whose header says so, or a binary format that holds libraries.
bool may_be_library(const std::string& path);

/// The content of `path` if it is certainly a library: ENVI's, by its header, or any whose spectra have
/// wavelengths, numbered bands or another axis. nullopt for pipes, unreadable files, and files that may be
/// another table of numbers. Throws Error for a damaged one whose header says that it is a spectral library.
std::optional<SpectralLibrary> plain_library(const std::string& path);

/// The existing files next to `path` that are read with it as a library: the header or the data of an ENVI
/// library, the wavelengths of a USGS text.
std::vector<std::string> files_of_library(const std::string& path);

/// Indices of the names that `wanted` selects, in its order, each once: a name (in any case), a pattern with
/// * and ?, or #N, counted from 1. \throws Error naming `role` and an item without a match, with similar
/// names.
std::vector<size_t> chosen_names(const std::vector<std::string>& names,
                                 const std::vector<std::string>& wanted, const std::string& role);
/// Indices of the names of standard deviations: "X deviation" next to "X", as gdal_hsi_spectra writes them.
std::set<size_t> deviations_in(const std::vector<std::string>& names);
/// True when every one of `wanted` means single spectra: no pattern is among them.
bool are_exact(const std::vector<std::string>& wanted);

/// The spectra at these indices, in their order, with all facts about the bands.
SpectralLibrary selected(const SpectralLibrary& library, const std::vector<size_t>& indices);

/// The library's spectra at other wavelengths (nm), by linear interpolation between neighbouring bands. NaN
/// if a wavelength is outside the library's range or unknown, or if a neighbouring band is missing.
SpectralLibrary resampled(const SpectralLibrary& library, const std::vector<double>& wavelengths_nm);

} // namespace hsi::raster
