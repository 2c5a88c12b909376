// SPDX-License-Identifier: MIT
// Units of wavelengths. The functions recognise the unit that a text states, choose a unit if none is stated,
// and convert values to nanometres. All readers of scenes and of spectral libraries use these functions.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// A unit of wavelength. A value in a unit of length is value * factor nanometres. Wavenumbers, frequencies
/// and energies are inverse units: a value is factor / value nanometres.
struct WavelengthUnit {
    const char* symbol; ///< symbol that text_unit() recognises: "nm", "cm-1", "THz"
    const char* name;   ///< name in ENVI headers: "Nanometers", "Wavenumber"
    double factor;
    bool inverse;
    double nanometres(double value) const { return inverse ? factor / value : factor * value; }
};

/// Returns the unit of a text that contains only a unit: "Micrometers", "[nm]", "m", "1/cm". Null for other
/// texts.
const WavelengthUnit* field_unit(const std::string& text);
/// Returns the unit that is part of a longer text, such as the name of a column: "Wavelength (um)", "wl_nm",
/// "Wavenumbers (cm-1)". A single letter is a unit only in brackets. Null for texts without a unit and for
/// Raman shifts.
const WavelengthUnit* text_unit(const std::string& text);
/// Returns the symbol of text_unit(); the text itself if is_other_axis(text); otherwise an empty text.
std::string stated_unit(const std::string& text);
/// Returns true for a quantity that describes the position in the spectrum but cannot be converted to
/// wavelengths: a Raman shift, or a frequency or energy without a unit.
bool is_other_axis(const std::string& text);
/// Returns true for an empty text and for words that do not state a unit: "Unknown", "None", "-" ...
bool is_blank_unit(const std::string& text);

/// A wavelength with its unit in the text: "450 nm", "0.45um", "22222 inverse cm".
struct WrittenWavelength {
    std::string number; ///< the number as written in the text
    const WavelengthUnit* unit = nullptr;
};
/// Splits a text such as "450 nm"; nullopt for numbers without a unit and for other texts.
std::optional<WrittenWavelength> written_wavelength(const std::string& text);

/// The unit of wavelengths, and a note if the unit was assumed or cannot be used.
struct UnitChoice {
    const WavelengthUnit* unit = nullptr; ///< null: the wavelengths are unknown
    std::string note;                     ///< empty if the stated unit is used
};
/// Chooses the unit of wavelengths. `field` is the text that states the unit, and `least` and `largest` are
/// the range of the positive values. If `field` does not state a unit, the largest value decides: metres
/// below 0.001, micrometres below 100, otherwise nanometres.
UnitChoice chosen_unit(const std::string& field, double least, double largest);

/// Returns a warning about wavelengths outside 100 nm to 100 um, which no imaging spectrometer measures;
/// empty if all wavelengths are in this range. `numbers` are the band numbers; empty for 1, 2, 3 ...
std::string doubtful_wavelengths(const std::vector<double>& wavelengths_nm,
                                 const std::vector<int>& numbers = {});

/// Splits a name into words in lower case. Runs of digits are also words. "cm-1" and similar spellings become
/// the word "wavenumber".
std::vector<std::string> words_of(const std::string& name);
bool one_of(const std::string& word, std::initializer_list<const char*> list);
/// Removes "cm-1", or another spelling of this unit, from the text. Returns true if the text contained such a
/// spelling, and sets `place` to its position.
bool take_wavenumber_unit(std::string& text, size_t* place = nullptr);
/// Returns the unit that a word of words_of() denotes; null for other words.
const WavelengthUnit* word_unit(const std::string& word);

} // namespace hsi::raster
