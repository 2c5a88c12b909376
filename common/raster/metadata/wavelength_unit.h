// SPDX-License-Identifier: MIT
// Units of wavelengths: recognises the unit that a text states, chooses a unit otherwise, and converts
// numbers to nanometres. All formats of scenes and of spectral libraries use these functions.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// A length is number * factor nanometres. Wavenumbers, frequencies and energies are inverse: factor / number
/// nanometres.
struct WavelengthUnit {
    const char* symbol; ///< as text_unit() reads it: "nm", "cm-1", "THz"
    const char* name;   ///< as an ENVI header spells it: "Nanometers", "Wavenumber"
    double factor;
    bool inverse;
    double nanometres(double value) const { return inverse ? factor / value : factor * value; }
};

/// Returns the unit of a header's field that states only a unit: "Micrometers", "[nm]", "m", "1/cm". Null for
/// other texts.
const WavelengthUnit* field_unit(const std::string& text);
/// Returns the unit that a longer text states, such as the name of a column: "Wavelength (um)", "wl_nm",
/// "Wavenumbers (cm-1)". A single letter counts only in brackets. Null for texts without a unit, and for
/// Raman shifts.
const WavelengthUnit* text_unit(const std::string& text);
/// Returns the symbol of text_unit(), or the text itself if is_other_axis(), else an empty text.
std::string stated_unit(const std::string& text);
/// Returns true for a quantity that states the position in the spectrum but cannot be converted to
/// wavelengths: a Raman shift, or a frequency or an energy without its unit.
bool is_other_axis(const std::string& text);
/// Returns true for an empty text and for words that state no unit: "Unknown", "None", "-" ...
bool is_blank_unit(const std::string& text);

/// A wavelength that is written with its unit: "450 nm", "0.45um", "22222 inverse cm".
struct WrittenWavelength {
    std::string number; ///< its digits in the text
    const WavelengthUnit* unit = nullptr;
};
/// Returns nullopt for numbers without a unit and for other texts.
std::optional<WrittenWavelength> written_wavelength(const std::string& text);

/// The assumed unit of numbers, and the note about it.
struct UnitChoice {
    const WavelengthUnit* unit = nullptr; ///< null: the wavelengths are unknown
    std::string note;                     ///< empty if the unit is as stated
};
/// Returns the unit of wavelengths from `least` to `largest` (of those above 0) that a field states. For a
/// blank field, the size of the numbers decides: metres below 0.001, micrometres below 100, else nanometres.
UnitChoice chosen_unit(const std::string& field, double least, double largest);

/// Returns a warning for wavelengths outside of 100 nm to 100 um, which no imaging spectrometer measures;
/// empty if there are none. numbers: numbers of the bands, empty for 1, 2, 3 ...
std::string doubtful_wavelengths(const std::vector<double>& wavelengths_nm,
                                 const std::vector<int>& numbers = {});

/// Returns the words of a name in lower case. "cm-1" and similar spellings are one word ("wavenumber");
/// digits are also words.
std::vector<std::string> words_of(const std::string& name);
bool one_of(const std::string& word, std::initializer_list<const char*> list);
/// Removes "cm-1" or a similar spelling, which contains a digit and signs, from a text. Returns true if there
/// was one, at `place`.
bool take_wavenumber_unit(std::string& text, size_t* place = nullptr);
/// Returns the unit of a word of words_of(); null for other words.
const WavelengthUnit* word_unit(const std::string& word);

} // namespace hsi::raster
