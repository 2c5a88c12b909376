// SPDX-License-Identifier: MIT
// Distinguishes wavelengths and band numbers from spectra in a table, by the column names and the numbers in
// the columns.
#pragma once

#include "raster/metadata/wavelength_unit.h"

#include <string>
#include <vector>

namespace hsi::raster {

using Column = std::vector<double>; ///< NaN: the cell is not a number

/// Returns true for wl, wvl, wave, lambda, wavelength ...
bool is_wavelength_word(const std::string& word);

/// How clearly a column name states that the column contains the wavelengths of the bands: not at all,
/// perhaps, or plainly. `of_one` means a name that begins with a word for wavelengths and continues with
/// other words, such as wl_grass. Such names occur in tables in which each spectrum has its own wavelengths.
enum class Said { nothing, of_one, perhaps, plainly };
Said says_wavelengths(const std::string& name);
/// Returns true for names of columns of numbers that identify bands: band, channel, index, id, # ..., and a
/// name without words.
bool says_number(const std::string& name);
/// Returns true if one of the words of the name is band, channel or a similar word.
bool says_band(const std::string& name);

/// Returns true for words that begin the names of samples, such as sample, plot, id and date.
bool is_word_for_sample(const std::string& word);
/// Returns true for names of columns that identify samples or measurements: Sample, "sample no.", Point, Scan
/// ID.
bool says_sample(const std::string& name);

/// Returns true for names of statistics, such as Std, N, Count and Max. A column N is a statistic if its
/// values are whole numbers; otherwise it is a refractive index.
bool says_statistic(const std::string& name, const Column& values = {});
/// Returns true for each name that denotes a statistic. All words of such a name are words for statistics, or
/// its other words are the name of a spectrum ("soil Std" or "sd_soil", if "soil" or "soil mean" exists). If
/// all names denote statistics, the function returns false for all names. `values` has one column per name.
std::vector<bool> statistics_among(const std::vector<std::string>& names, const std::vector<Column>& values);

/// Returns whether a unit means per cent: "%", "[%]", "percent".
bool is_percent(const std::string& unit);

/// Returns 1 if every number in the column is larger than the number before it, -1 if every number is
/// smaller, otherwise 0.
int direction(const Column& column);
/// Returns whether the numbers in the column never fall, or never rise. Returns false if more than half of
/// the numbers repeat the number before them.
bool never_turns(const Column& column);
/// Returns true for 0, 1, 2 ... or 1, 2, 3 ...: row numbers, which other programs write as the first column.
bool counts_lines(const Column& column);
bool are_whole(const Column& column);
/// Returns whether the numbers can be wavelengths of a sensor: rising or falling numbers in nanometres (from
/// 200 on) or micrometres. Whole numbers below 200 are considered counts. From 20 numbers on, some numbers
/// may repeat, and in nanometres one step in ten may go back, because the ranges of spectrometers overlap.
bool are_possible_wavelengths(const Column& column);
/// Returns whether the steps from one number to the next are similar, as they are between the bands of a
/// sensor. Returns false for up to 8 numbers, which are too few for this test.
bool have_even_steps(const Column& column);
/// Returns whether a column contains wavelengths rather than a spectrum that happens to rise. The column has
/// even steps, or its median differs by a factor of 10 from the median of `spectra`, which are all numbers in
/// the columns next to it.
bool are_likely_wavelengths(const Column& column, const Column& spectra);
/// Returns the fraction (0 to 1) of the numbers in two lists in nanometres that agree within 0.5 nm or one
/// thousandth. Missing numbers (NaN) are not compared. Returns 0 if no numbers can be compared.
double share_of_same(const Column& a, const Column& b);

} // namespace hsi::raster
