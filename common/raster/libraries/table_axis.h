// SPDX-License-Identifier: MIT
// What tells wavelengths and numbers of bands from spectra in a table: names of columns, and the numbers
// below them.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace hsi::raster {

using Column = std::vector<double>; ///< NaN: no number

/// Takes "cm-1" or a like spelling, which has a digit and signs in it, out of a text: true when there was
/// one, at `place`.
bool take_wavenumber_unit(std::string& text, size_t* place = nullptr);
/// The words of a name in small letters; "cm-1" and its like are one ("wavenumber"), digits are words, too.
std::vector<std::string> words_of(const std::string& name);
bool one_of(const std::string& word, std::initializer_list<const char*> list);

/// The unit that a word is, as to_nanometres() has it: "nm", "um", "mm", "m", "angstrom", "cm-1"; empty:
/// none.
std::string unit_of(const std::string& word);
/// The unit in the name of a column of wavelengths: "wl_um", "Wavelength (A)", "wavelength [m]"; empty: none.
std::string unit_in(const std::string& name);

/// wl, wvl, wave, lambda, wavelength ...
bool is_wavelength_word(const std::string& word);

/// How far a name says that a column holds the places of the bands on the spectrum. `of_one`: the name begins
/// so and goes on with words of its own: wl_grass, as where each spectrum has its wavelengths.
enum class Said { nothing, of_one, perhaps, plainly };
Said says_wavelengths(const std::string& name);
/// band, channel, index, id, # ..., and a name without words.
bool says_number(const std::string& name);
/// band, channel and their like are among its words.
bool says_band(const std::string& name);

/// 1: rises from line to line, -1: falls, 0: neither.
int direction(const Column& column);
/// 0, 1, 2 ... or 1, 2, 3 ...: the numbers of the lines, which tables of other programs have in front.
bool counts_lines(const Column& column);
bool are_whole(const Column& column);
/// Whether numbers can be wavelengths: nanometres or micrometres of a sensor, which rise or fall (of many
/// nanometres, all but few do: spectrometers overlap). Whole numbers under 200 count something.
bool are_possible_wavelengths(const Column& column);
/// Whether the steps from one number to the next are alike, as those of a sensor's bands are; of few numbers
/// that says nothing.
bool have_even_steps(const Column& column);
/// Whether possible wavelengths are likelier to be some than a spectrum that happens to rise: by their steps,
/// or since the spectra beside them (all numbers of these) are of another size.
bool are_likely_wavelengths(const Column& column, const Column& spectra);
/// Which share of the numbers of two lists in nanometres are the same but for rounding (0.5 nm, or a
/// thousandth): 0 to 1. Where one has none, nothing is compared; 0 when nothing is.
double share_of_same(const Column& a, const Column& b);

} // namespace hsi::raster
