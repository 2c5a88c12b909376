// SPDX-License-Identifier: MIT
// Units of wavelengths: which one a text states, which one is assumed otherwise, and how numbers in it become
// nanometres. All formats of scenes and of spectral libraries use these functions.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// A number in a length is number * factor nanometres. Wavenumbers, frequencies and energies are inverse: a
/// number in these is factor / number nanometres.
struct WavelengthUnit {
    const char* symbol; ///< as text_unit() reads it: "nm", "cm-1", "THz"
    const char* name;   ///< as an ENVI header spells it: "Nanometers", "Wavenumber"
    double factor;
    bool inverse;
    double nanometres(double value) const { return inverse ? factor / value : factor * value; }
};

/// The unit that a header's field states, if it states only a unit: "Micrometers", "[nm]", "m", "1/cm". Null
/// for other texts.
const WavelengthUnit* field_unit(const std::string& text);
/// The unit that a longer text states, such as the name of a column: "Wavelength (um)", "wl_nm", "Wavenumbers
/// (cm-1)". A single letter counts in brackets only. Null for texts without a unit, and for Raman shifts.
const WavelengthUnit* text_unit(const std::string& text);
/// The result of text_unit(): its symbol, the text itself if is_other_axis(), else empty.
std::string stated_unit(const std::string& text);
/// True for a quantity that states the place on the spectrum and does not convert to wavelengths: a Raman
/// shift, and a frequency or an energy without its unit.
bool is_other_axis(const std::string& text);
/// True for an empty text and for words that state no unit: "Unknown", "None", "-" ...
bool is_blank_unit(const std::string& text);

/// "450 nm", "0.45um", "22222 inverse cm": a wavelength that is written with its unit.
struct WrittenWavelength {
    std::string number; ///< its digits in the text
    const WavelengthUnit* unit = nullptr;
};
/// Nothing for numbers alone and for other texts.
std::optional<WrittenWavelength> written_wavelength(const std::string& text);

/// The unit that numbers are assumed to have, and the note about it.
struct UnitChoice {
    const WavelengthUnit* unit = nullptr; ///< null: the wavelengths are unknown
    std::string note;                     ///< empty where the unit is as stated
};
/// The unit of wavelengths from `least` to `largest` (of those above 0) that a field states. A blank field
/// leaves the choice to the size of the numbers: metres below 0.001, micrometres below 100, else nanometres.
UnitChoice chosen_unit(const std::string& field, double least, double largest);

/// A warning for wavelengths outside of 100 nm to 100 um, where no instrument of this kind measures; empty if
/// there are none. numbers: of the bands, empty for 1, 2, 3 ...
std::string doubtful_wavelengths(const std::vector<double>& wavelengths_nm,
                                 const std::vector<int>& numbers = {});

/// The words of a name in lower case; "cm-1" and the like are one word ("wavenumber"), digits are words, too.
std::vector<std::string> words_of(const std::string& name);
bool one_of(const std::string& word, std::initializer_list<const char*> list);
/// Removes "cm-1" or a similar spelling, which has a digit and signs in it, from a text: true if there was
/// one, at `place`.
bool take_wavenumber_unit(std::string& text, size_t* place = nullptr);
/// The unit that a word of words_of() is; null for other words.
const WavelengthUnit* word_unit(const std::string& word);

} // namespace hsi::raster
