// SPDX-License-Identifier: MIT
// Distinguishes wavelengths and band numbers from spectra in a table: by names of columns, and the numbers
// below them.
#pragma once

#include "raster/metadata/wavelength_unit.h"

#include <string>
#include <vector>

namespace hsi::raster {

using Column = std::vector<double>; ///< NaN: no number

/// wl, wvl, wave, lambda, wavelength ...
bool is_wavelength_word(const std::string& word);

/// How clearly a name says that a column holds the positions of the bands in the spectrum. `of_one`: the name
/// begins so and goes on with other words: wl_grass, as in tables where each spectrum has its wavelengths.
enum class Said { nothing, of_one, perhaps, plainly };
Said says_wavelengths(const std::string& name);
/// band, channel, index, id, # ..., and a name without words.
bool says_number(const std::string& name);
/// band, channel and their like are among its words.
bool says_band(const std::string& name);

/// Words at the beginning of sample names: sample, plot, id, date ...
bool is_word_for_sample(const std::string& word);
/// Names of columns that identify samples or measurements: Sample, "sample no.", Point, Scan ID.
bool says_sample(const std::string& name);

/// True for names of statistics of other columns, such as Std, N, Count and Max; N holds whole numbers, and
/// else is a refractive index.
bool says_statistic(const std::string& name, const Column& values = {});
/// Marks the names of statistics: all of their words say so, or their other words are the name of a spectrum
/// ("soil Std", "sd_soil" next to "soil" or "soil mean"). If all names would be marked, none is. `values`:
/// one for each.
std::vector<bool> statistics_among(const std::vector<std::string>& names, const std::vector<Column>& values);

/// Whether a unit means per cent: "%", "[%]", "percent".
bool is_percent(const std::string& unit);

/// 1: rises from line to line, -1: falls, 0: neither.
int direction(const Column& column);
/// Whether numbers rise or fall from line to line, and repeat from one line to the next at most as often.
bool never_turns(const Column& column);
/// 0, 1, 2 ... or 1, 2, 3 ...: the numbers of the lines, which tables of other programs have in front.
bool counts_lines(const Column& column);
bool are_whole(const Column& column);
/// Whether numbers can be wavelengths: nanometres or micrometres of a sensor, which rise or fall (of many
/// numbers, some may repeat, and of many nanometres, all but few do: spectrometers overlap). Whole numbers
/// under 200 count something.
bool are_possible_wavelengths(const Column& column);
/// Whether the steps from one number to the next are alike, as those of a sensor's bands are; a few numbers
/// do not show that.
bool have_even_steps(const Column& column);
/// Whether a column is rather wavelengths than a spectrum that happens to rise: by its steps, or because the
/// spectra next to it (all their numbers) have another magnitude.
bool are_likely_wavelengths(const Column& column, const Column& spectra);
/// The share of numbers in two lists in nanometres that agree but for rounding (0.5 nm, or a thousandth): 0
/// to 1. Missing numbers are not compared; 0 if nothing is compared.
double share_of_same(const Column& a, const Column& b);

} // namespace hsi::raster
