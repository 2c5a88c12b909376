// SPDX-License-Identifier: MIT
// Spectra with names and wavelengths: ENVI spectral libraries (.sli beside a .hdr) and CSV tables, and what
// others deliver: tables of text, USGS splib07, ECOSTRESS, files of field spectrometers, the profiles of
// EnMAP-Box (library_formats.h).
//
// CSV: the first line names the columns: band (its number in the scene, from 1 on), wavelength (nm) and then
// one column a spectrum; a line a band. Reading takes any order of columns; band, wavelength and the line of
// names may be missing.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hsi::raster {

struct SpectralLibrary {
    std::vector<std::string> names;
    std::vector<std::vector<double>> spectra; ///< of one length; NaN: there is no value
    std::vector<std::string> classes;   ///< one a spectrum where the file has a field "class", empty: unknown
    std::vector<double> wavelengths_nm; ///< one a band; NaN where unknown; empty when no band has one
    std::vector<double> fwhm_nm;        ///< likewise
    /// The bands' numbers in the scene that the spectra are of, from 1 on and none twice; empty: unknown.
    std::vector<int> band_numbers;
    /// False for numbers of a table that are 1, 2, 3 ...: they may be those of its lines.
    bool numbers_told = false;
    bool other_axis = false;        ///< the file places the bands, on an axis that does not convert
    std::vector<std::string> notes; ///< what a user should know of the file
    size_t missing = 0;   ///< values that are NaN since the file has none, or a fill that it does not declare
    bool twofold = false; ///< write it in double precision: .csv with 17 digits instead of 9, .sli as Float64
    bool widths_in_table = false; ///< write fwhm_nm into a .csv, too, as a column fwhm
    size_t bands() const { return spectra.empty() ? 0 : spectra.front().size(); }
};

/// The content decides, and the extension .csv; a header beside the file makes it ENVI's. What stands for no
/// value is NaN: channels that the file marks, empty cells, and fills that nobody declares (USGS's -1.23e34
/// and what convolution leaves of it, 1e20 and beyond, -9999 and its like where no other value is near). A
/// note counts the latter. `scene_bands` tells bands from spectra in a file of MATLAB's, which does not say;
/// 0: not known. Throws Error naming the file and what is wrong with it, also when no spectrum has a value.
SpectralLibrary read_spectral_library(const std::string& path, size_t scene_bands = 0);

/// Which spectra hold infinite values: the tools refuse them.
std::vector<size_t> infinite_spectra(const SpectralLibrary& library);

/// The bands of a spectrometer, as a file lists them.
struct BandList {
    std::vector<double> wavelengths_nm;
    std::vector<double> fwhm_nm;    ///< one a band, NaN where unknown; empty when no band has one
    std::vector<std::string> notes; ///< what a user should know of the file
};
/// Those of a library of any form, or of a table whose columns are wavelengths and, mostly, widths (fwhm);
/// columns of names are left out. \throws Error as read_spectral_library(), and when there are no
/// wavelengths.
BandList read_band_list(const std::string& path);

/// A table about the spectra of a library: a line a spectrum, which a column calls by its name.
struct SpectrumTable {
    std::vector<std::vector<std::string>> rows; ///< the cells asked for, in that order; empty: no value
    std::vector<std::string> further;           ///< columns that were not asked for
};
/// The columns `needed`, then `optional`, whatever their case and order. A cell that stands for no value (NA,
/// nan, - ...) is empty; in a column of `optional` nan, which somebody computed, stays. \throws Error naming
/// the file when it is no table with names of columns, and when one that is needed is missing.
SpectrumTable read_spectrum_table(const std::string& path, const std::vector<std::string>& needed,
                                  const std::vector<std::string>& optional = {});
/// The number in a cell, with a decimal point or comma; NaN when it is none.
double table_number(const std::string& cell);

/// Whether the file has the form of a library, so that the reason against reading it as one helps a user:
/// text, ENVI data whose header says so, or a binary format that holds libraries.
bool may_be_library(const std::string& path);

/// What `path` holds where it is a library for certain: ENVI's, by its header, or any whose spectra have
/// wavelengths, numbered bands or another axis. Empty for pipes, what cannot be read, and what may be another
/// table of numbers. Throws Error for a damaged one whose header says that it is a spectral library.
std::optional<SpectralLibrary> plain_library(const std::string& path);

/// The files beside `path` that reading it as a library touches and that are there: the header or the data of
/// an ENVI library, the wavelengths of a text of USGS.
std::vector<std::string> files_of_library(const std::string& path);

/// Indices of the names that `wanted` asks for, in its order, none twice: a name (whatever the case), a
/// pattern with * and ?, or #N, counted from 1. \throws Error naming `role` and what finds nothing, with
/// names like it.
std::vector<size_t> chosen_names(const std::vector<std::string>& names,
                                 const std::vector<std::string>& wanted, const std::string& role);
/// Which names are those of standard deviations: "X deviation" beside "X", as gdal_hsi_spectra writes them.
std::set<size_t> deviations_in(const std::vector<std::string>& names);
/// True when every one of `wanted` means single spectra: no pattern is among them.
bool are_exact(const std::vector<std::string>& wanted);

/// The spectra at these indices, in their order, and all that belongs to the bands.
SpectralLibrary selected(const SpectralLibrary& library, const std::vector<size_t>& indices);

/// The library's spectra at other wavelengths (nm), by linear interpolation between neighbouring bands; NaN
/// where a wavelength lies outside the library's range or is unknown, and beside a band without a value.
SpectralLibrary resampled(const SpectralLibrary& library, const std::vector<double>& wavelengths_nm);

} // namespace hsi::raster
