// SPDX-License-Identifier: MIT
#include "raster/metadata/wavelength_unit.h"

#include "core/counted.h"
#include "raster/metadata/scene_metadata.h"

#include <cpl_conv.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <utility>

namespace hsi::raster {
namespace {

constexpr double light = 299792458e9;             // speed of light, nm / s
constexpr double electronvolt = 1239.84198433200; // h c / e, nm eV

constexpr std::array known_units = {
    WavelengthUnit{"nm", "Nanometers", 1, false},
    WavelengthUnit{"um", "Micrometers", 1e3, false},
    WavelengthUnit{"mm", "Millimeters", 1e6, false},
    WavelengthUnit{"cm", "Centimeters", 1e7, false},
    WavelengthUnit{"m", "Meters", 1e9, false},
    WavelengthUnit{"angstrom", "Angstroms", 0.1, false},
    WavelengthUnit{"10 nm", "10 nm", 10, false},
    WavelengthUnit{"100 nm", "100 nm", 100, false},
    WavelengthUnit{"10 um", "10 um", 1e4, false},
    WavelengthUnit{"cm-1", "Wavenumber", 1e7, true},
    WavelengthUnit{"nm-1", "1/nm", 1, true},
    WavelengthUnit{"um-1", "1/um", 1e3, true},
    WavelengthUnit{"mm-1", "1/mm", 1e6, true},
    WavelengthUnit{"m-1", "1/m", 1e9, true},
    WavelengthUnit{"Hz", "Hz", light, true},
    WavelengthUnit{"kHz", "kHz", light / 1e3, true},
    WavelengthUnit{"MHz", "MHz", light / 1e6, true},
    WavelengthUnit{"GHz", "GHz", light / 1e9, true},
    WavelengthUnit{"THz", "THz", light / 1e12, true},
    WavelengthUnit{"PHz", "PHz", light / 1e15, true},
    WavelengthUnit{"meV", "meV", electronvolt * 1e3, true},
    WavelengthUnit{"eV", "eV", electronvolt, true},
    WavelengthUnit{"keV", "keV", electronvolt / 1e3, true},
    WavelengthUnit{"MeV", "MeV", electronvolt / 1e6, true},
};

const WavelengthUnit* unit_called(const std::string& symbol) {
    const auto* const at = std::find_if(known_units.begin(), known_units.end(),
                                        [&](const WavelengthUnit& unit) { return symbol == unit.symbol; });
    return at == known_units.end() ? nullptr : at;
}

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Returns the text without leading and trailing blanks, quotes and brackets.
std::string bare(const std::string& text) {
    const char* const around = " \t\r\n\"'{}[]()<>";
    const size_t begin = text.find_first_not_of(around);
    if (begin == std::string::npos) return {};
    return text.substr(begin, text.find_last_not_of(around) + 1 - begin);
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

/// Returns the symbol of a unit of length from its name in one of several languages; null for other words.
const char* length_symbol(const std::string& word) {
    const auto begins = [&](const char* beginning) { return starts_with(word, beginning); };
    if (one_of(word, {"nm", "nms", "nano"}) || begins("nanom") || begins("nan\xc3\xb3")) return "nm";
    if (one_of(word, {"um", "ums", "mum", "\xc2\xb5", "\xce\xbc", "micro"}) || begins("microm") ||
        begins("micron") || begins("micra") || begins("micr\xc3\xb3") || begins("mikrom") ||
        begins("mikron") || ends_with(word, "\xc2\xb5m") || ends_with(word, "\xce\xbcm"))
        return "um";
    if (word == "mm" || begins("millim")) return "mm";
    if (word == "cm" || begins("centim")) return "cm";
    if (begins("meter") || begins("metre")) return "m";
    for (const char* letter : {"\xc3\xa5", "\xc3\x85", "\xe2\x84\xab", "a\xcc\x8a"})
        if (word == letter || begins((letter + std::string("ngstr")).c_str())) return "angstrom";
    return begins("angstr") ? "angstrom" : nullptr;
}

/// Returns the symbol of a frequency: "THz" for "thz" and "terahertz". Null for other words.
const char* frequency_symbol(const std::string& word) {
    constexpr std::pair<const char*, const char*> prefixes[] = {{"", "Hz"},   {"k", "kHz"}, {"m", "MHz"},
                                                                {"g", "GHz"}, {"t", "THz"}, {"p", "PHz"}};
    for (const auto& [letter, symbol] : prefixes)
        if (word == std::string(letter) + "hz" ||
            (ends_with(word, "hertz") && (*letter == '\0' ? word.size() == 5 : starts_with(word, letter))))
            return symbol;
    return nullptr;
}

const char* energy_symbol(const std::string& word) {
    if (word == "ev" || starts_with(word, "electronvolt")) return "eV";
    if (word == "kev" || starts_with(word, "kiloelectronvolt")) return "keV";
    return word == "mev" ? "meV" : nullptr;
}

/// Returns the unit of a text that contains only an inverse length, such as "1/m", "nm-1" and "um^-1"; null
/// for other texts.
const WavelengthUnit* inverse_length(std::string text) {
    replace_all(text, "\xe2\x81\xbb\xc2\xb9", "-1"); // superscript minus and one
    replace_all(text, "\xe2\x88\x92", "-");          // minus sign
    std::erase_if(text, [](char c) { return std::string(" ^*(){}").find(c) != std::string::npos; });
    std::string length;
    if (starts_with(text, "1/"))
        length = text.substr(2);
    else if (ends_with(text, "-1"))
        length = text.substr(0, text.size() - 2);
    if (length.empty()) return nullptr;
    const char* const symbol = length == "m" ? "m" : length_symbol(length);
    return symbol == nullptr ? nullptr : unit_called(std::string(symbol) + "-1");
}

/// Returns the unit that equals a number times another unit: nanometres for "1e-9 m" and "10^-9 m". Null if
/// the product is not a known unit.
const WavelengthUnit* multiple_unit(const std::string& text) {
    char* end = nullptr;
    double factor = CPLStrtod(text.c_str(), &end);
    if (end == text.c_str()) return nullptr;
    for (const char* sign : {"^", "**"})
        if (starts_with(end, sign)) {
            const char* const power = end + std::string(sign).size();
            if (*power == '\0' || std::string("+-0123456789").find(*power) == std::string::npos)
                return nullptr;
            factor = std::pow(factor, CPLStrtod(power, &end));
        }
    while (*end == ' ' || *end == '*')
        ++end;
    const bool letter = std::isalpha(static_cast<unsigned char>(*end)) != 0;
    const WavelengthUnit* const unit = letter ? field_unit(end) : nullptr;
    if (unit == nullptr || !(factor > 0)) return nullptr;
    const double one = unit->inverse ? unit->factor / factor : unit->factor * factor;
    const auto* const at =
        std::find_if(known_units.begin(), known_units.end(), [&](const WavelengthUnit& known) {
            constexpr double rounding = 1e-9;
            return known.inverse == unit->inverse && std::abs(known.factor - one) <= rounding * one;
        });
    return at == known_units.end() ? nullptr : at;
}

/// Returns the text within the last brackets; empty if there are no brackets.
std::string in_brackets(const std::string& text) {
    const size_t begin = text.find_last_of("([{<"), end = text.find_last_of(")]}>");
    if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
    return text.substr(begin + 1, end - begin - 1);
}

bool has_word(const std::vector<std::string>& words, std::initializer_list<const char*> list) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return one_of(word, list); });
}

const WavelengthUnit* unit_among_words(const std::string& text) {
    const auto words = words_of(text);
    for (size_t k = 0; k < words.size(); ++k) {
        // The text states an inverse length in words, such as "inverse cm" or "per centimetre".
        if (k > 0 && one_of(words[k - 1], {"inverse", "reciprocal", "per", "inv"}))
            if (const char* const length = length_symbol(words[k])) {
                if (const auto* const unit = unit_called(std::string(length) + "-1")) return unit;
            }
        // A question mark shows that the letter mu was lost when the text was converted.
        const bool lost = text.find("?m") != std::string::npos;
        if (k > 0 && k + 1 == words.size() && words[k] == "m" && !lost &&
            (words[k - 1] == "in" || starts_with(words[k - 1], "wavelength")))
            return unit_called("m");
        if (words[k] == "mev" && text.find("MeV") != std::string::npos) return unit_called("MeV");
        if (const auto* const unit = word_unit(words[k])) return unit;
    }
    return nullptr;
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

} // namespace

bool take_wavenumber_unit(std::string& text, size_t* place) {
    for (const char* spelling :
         {"cm-1", "cm^-1", "cm^(-1)", "cm^{-1}", "cm**-1", "cm -1", "1/cm", "cm\xe2\x81\xbb\xc2\xb9",
          "cm\xe2\x88\x92\x31", "cm\xe2\x80\x93\x31", "cm^\xe2\x88\x92\x31", "cm.1."}) {
        const std::string sign = spelling;
        const size_t at = lower(text).find(sign);
        if (at == std::string::npos) continue;
        const auto is_digit = [&](size_t k) { return k < text.size() && text[k] >= '0' && text[k] <= '9'; };
        if (is_digit(at + sign.size()) || (sign.front() == '1' && at > 0 && is_digit(at - 1))) continue;
        text.erase(at, sign.size());
        if (place != nullptr) *place = at;
        return true;
    }
    return false;
}

std::vector<std::string> words_of(const std::string& name) {
    std::string text = lower(name);
    if (size_t at = 0; take_wavenumber_unit(text, &at)) text.insert(at, " wavenumber ");
    std::vector<std::string> words;
    int kind = 0; // type of the previous character: 0 other, 1 letter, 2 digit
    for (const char c : text) {
        const bool digit = c >= '0' && c <= '9';
        const int now = digit ? 2 : (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80 ? 1 : 0;
        if (now != 0 && now != kind) words.emplace_back();
        if (now != 0) words.back() += c;
        kind = now;
    }
    for (size_t k = 1; k < words.size(); ++k)
        if (words[k - 1] == "wave" && starts_with(words[k], "number")) {
            words[k] = "wavenumber";
            words.erase(words.begin() + static_cast<std::ptrdiff_t>(k - 1));
        }
    return words;
}

bool one_of(const std::string& word, std::initializer_list<const char*> list) {
    return std::any_of(list.begin(), list.end(), [&](const char* other) { return word == other; });
}

const WavelengthUnit* word_unit(const std::string& word) {
    if (starts_with(word, "wavenum") || starts_with(word, "wellenzahl") || starts_with(word, "kayser") ||
        word == "wn")
        return unit_called("cm-1");
    const char* symbol = length_symbol(word);
    if (symbol == nullptr) symbol = frequency_symbol(word);
    if (symbol == nullptr) symbol = energy_symbol(word);
    return symbol == nullptr ? nullptr : unit_called(symbol);
}

bool is_other_axis(const std::string& text) {
    const auto words = words_of(text);
    if (has_word(words, {"raman"})) return true;
    const bool wavenumber = has_word(words, {"wavenumber", "wavenumbers"});
    if (wavenumber && has_word(words, {"shift", "relative", "rel", "delta", "\xce\x94", "\xce\xb4",
                                       "\xce\x94\xce\xbd", "\xce\xb4\xce\xbd"}))
        return true;
    return has_word(words,
                    {"frequency", "frequencies", "freq", "frequenz", "energy", "energies", "energie"}) &&
           unit_among_words(text) == nullptr;
}

const WavelengthUnit* text_unit(const std::string& text) {
    if (is_other_axis(text)) return nullptr;
    if (const std::string inside = in_brackets(text); !inside.empty())
        if (const auto* const unit = field_unit(inside); // "(10 nm)" is a resolution, not a unit
            unit != nullptr && std::isdigit(static_cast<unsigned char>(unit->symbol[0])) == 0)
            return unit;
    return unit_among_words(text);
}

namespace {

const WavelengthUnit* unit_of_field(const std::string& text) {
    const std::string field = bare(text);
    if (one_of(field, {"m", "M"})) return unit_called("m");
    if (field == "A" || one_of(lower(field), {"ang", "aa"})) return unit_called("angstrom");
    if (const auto* const unit = inverse_length(lower(field))) return unit;
    if (const auto* const unit = multiple_unit(field)) return unit;
    // In "W/m2/sr/um", the unit of length is part of another unit.
    const auto words = words_of(field);
    const bool alone = std::all_of(words.begin(), words.end(), [](const std::string& word) {
        return word_unit(word) != nullptr || starts_with(word, "wavelen") ||
               one_of(word, {"in", "unit", "units", "inverse", "reciprocal", "per", "inv", "air", "vacuum"});
    });
    return alone ? text_unit(field) : nullptr;
}

} // namespace

const WavelengthUnit* field_unit(const std::string& text) {
    // The last result is kept, because this function is called for every band and all bands of a scene
    // usually have the same unit.
    thread_local std::string last;
    thread_local const WavelengthUnit* unit = nullptr; // null is the result for an empty text
    if (text != last) {
        unit = unit_of_field(text);
        last = text;
    }
    return unit;
}

std::optional<WrittenWavelength> written_wavelength(const std::string& text) {
    std::string number = bare(text);
    const bool decimal_comma = number.find('.') == std::string::npos;
    if (const size_t comma = number.find(','); decimal_comma && comma != std::string::npos)
        number[comma] = '.';
    if (number.empty() || std::string("+-.0123456789").find(number[0]) == std::string::npos)
        return std::nullopt;
    char* end = nullptr;
    CPLStrtod(number.c_str(), &end);
    const auto length = static_cast<size_t>(end - number.c_str());
    const WavelengthUnit* const unit = length == 0 ? nullptr : field_unit(number.substr(length));
    if (unit == nullptr || multiple_unit(number.substr(length)) != nullptr) return std::nullopt;
    return WrittenWavelength{number.substr(0, length), unit};
}

std::string stated_unit(const std::string& text) {
    if (is_other_axis(text)) return text;
    const WavelengthUnit* const unit = text_unit(text);
    return unit == nullptr ? std::string() : unit->symbol;
}

bool is_blank_unit(const std::string& text) {
    return one_of(lower(bare(text)), {"", "unknown", "none", "null", "n/a", "na", "nan", "-", "unspecified",
                                      "undefined", "unit", "units", "?"});
}

UnitChoice chosen_unit(const std::string& field, double least, double largest) {
    const std::string range = "(" + number(least) + " to " + number(largest) + ")";
    if (is_blank_unit(field)) {
        const bool metres = largest < 1e-3, micrometres = largest < 100;
        const char* const symbol = metres ? "m" : micrometres ? "um" : "nm";
        const char* const name = metres ? "metres" : micrometres ? "micrometres" : "nanometres";
        return {unit_called(symbol),
                std::string("the unit of the wavelengths is not stated: ") + name + " are assumed " + range};
    }
    if (are_micrometres(largest, field))
        return {unit_called("um"),
                "its wavelengths are too small for nanometres, so they are read as micrometres"};
    if (const auto* const unit = field_unit(field)) return {unit, {}};
    return {nullptr, "'" + field + "' is not a unit of wavelengths: the wavelengths are unknown"};
}

std::string doubtful_wavelengths(const std::vector<double>& wavelengths_nm, const std::vector<int>& numbers) {
    constexpr double shortest = 100, longest = 1e5;
    size_t first = 0, count = 0;
    for (size_t b = wavelengths_nm.size(); b-- > 0;)
        if (wavelengths_nm[b] < shortest || wavelengths_nm[b] > longest) {
            first = b;
            ++count;
        }
    if (count == 0) return {};
    const int band = numbers.empty() ? static_cast<int>(first) + 1 : numbers[first];
    return "the wavelength of band " + std::to_string(band) + " is read as " + number(wavelengths_nm[first]) +
           " nm" + (count > 1 ? " (and " + counted(count - 1, "more such wavelength") + ")" : std::string()) +
           ", which is outside 100 nm to 100 um: check its unit";
}

} // namespace hsi::raster
