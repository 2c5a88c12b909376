// SPDX-License-Identifier: MIT
// Distinguishes wavelengths and band numbers from spectra in a table, by the names of columns and the numbers
// below them.
#pragma once

#include "raster/metadata/wavelength_unit.h"

#include <string>
#include <vector>

namespace hsi::raster {

using Column = std::vector<double>; ///< NaN: not a number

/// Returns true for wl, wvl, wave, lambda, wavelength ...
bool is_wavelength_word(const std::string& word);

/// How clearly a name states that a column contains the positions of the bands in the spectrum. `of_one`: the
/// name begins so and continues with other words: wl_grass, as in tables in which each spectrum has its own
/// wavelengths.
enum class Said { nothing, of_one, perhaps, plainly };
Said says_wavelengths(const std::string& name);
/// Returns true for band, channel, index, id, # ..., and a name without words.
bool says_number(const std::string& name);
/// Returns true if band, channel or a similar word is among its words.
bool says_band(const std::string& name);

/// Returns true for words at the beginning of sample names: sample, plot, id, date ...
bool is_word_for_sample(const std::string& word);
/// Returns true for names of columns that identify samples or measurements: Sample, "sample no.", Point, Scan
/// ID.
bool says_sample(const std::string& name);

/// Returns true for names of statistics of other columns, such as Std, N, Count and Max. N is a statistic if
/// it contains whole numbers, otherwise a refractive index.
bool says_statistic(const std::string& name, const Column& values = {});
/// Marks the names of statistics: all of their words are words for statistics, or their other words are the
/// name of a spectrum ("soil Std", "sd_soil" next to "soil" or "soil mean"). If all names would be marked,
/// none is marked. `values`: one per name.
std::vector<bool> statistics_among(const std::vector<std::string>& names, const std::vector<Column>& values);

/// Returns whether a unit means per cent: "%", "[%]", "percent".
bool is_percent(const std::string& unit);

/// Returns 1 if the numbers rise from text line to text line, -1 if they fall, else 0.
int direction(const Column& column);
/// Returns whether numbers rise or fall from text line to text line. Repeated numbers must not outnumber the
/// steps.
bool never_turns(const Column& column);
/// Returns true for 0, 1, 2 ... or 1, 2, 3 ...: row numbers, which other programs write as the first column.
bool counts_lines(const Column& column);
bool are_whole(const Column& column);
/// Returns whether numbers can be wavelengths: rising or falling nanometres or micrometres of a sensor. Of
/// many numbers, some may repeat; of many nanometres, a few may turn, because spectrometers overlap. Whole
/// numbers below 200 are counts.
bool are_possible_wavelengths(const Column& column);
/// Returns whether the steps from one number to the next are similar, as those of a sensor's bands are. A few
/// numbers do not show this.
bool have_even_steps(const Column& column);
/// Returns whether a column is more likely wavelengths than a spectrum that happens to rise: by its steps, or
/// because the spectra next to it (all their numbers) have another magnitude.
bool are_likely_wavelengths(const Column& column, const Column& spectra);
/// Returns the fraction of numbers in two lists in nanometres that agree except for rounding (0.5 nm, or a
/// thousandth): 0 to
/// 1. Missing numbers are not compared; 0 if no numbers are compared.
double share_of_same(const Column& a, const Column& b);

} // namespace hsi::raster
