// SPDX-License-Identifier: MIT
#include "raster/libraries/table_axis.h"

#include "raster/libraries/library_formats.h"
#include "raster/metadata/scene_metadata.h"

#include <algorithm>
#include <cmath>

namespace hsi::raster {
namespace {

/// What stands in the last brackets of a name, where it is a unit that is none elsewhere: "Wavelength (A)",
/// "wl [m]". `begin`: where the bracket opens.
std::string unit_in_brackets(const std::string& name, size_t& begin) {
    begin = name.find_last_of("([");
    const size_t end = name.find_last_of(")]");
    if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
    std::string inside = name.substr(begin + 1, end - begin - 1);
    std::erase(inside, ' ');
    if (inside == "A" || lower(inside) == "ang") return "angstrom";
    if (inside == "m" || inside == "cm") return inside;
    return {};
}

double middle(Column values) {
    std::erase_if(values, [](double v) { return !std::isfinite(v); });
    if (values.empty()) return no_library_value;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

/// Whether all steps but few go one way: spectrometers overlap where they meet.
bool overlaps(const Column& column) {
    size_t up = 0, down = 0;
    for (size_t k = 1; k < column.size(); ++k) {
        up += column[k] > column[k - 1];
        down += column[k] < column[k - 1];
    }
    constexpr size_t enough = 20;
    return column.size() >= enough && 10 * std::max(up, down) >= 9 * (column.size() - 1);
}

} // namespace

bool take_wavenumber_unit(std::string& text, size_t* place) {
    for (const char* spelling : {"cm-1", "cm^-1", "cm^(-1)", "1/cm", "cm\xe2\x81\xbb\xc2\xb9"})
        if (const size_t at = lower(text).find(spelling); at != std::string::npos) {
            text.erase(at, std::string(spelling).size());
            if (place != nullptr) *place = at;
            return true;
        }
    return false;
}

std::vector<std::string> words_of(const std::string& name) {
    std::string text = lower(name);
    if (size_t at = 0; take_wavenumber_unit(text, &at)) text.insert(at, " wavenumber ");
    std::vector<std::string> words;
    int kind = 0; // of the last sign: 1 a letter, 2 a digit
    for (const char c : text) {
        const bool digit = c >= '0' && c <= '9';
        const int now = digit ? 2 : (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80 ? 1 : 0;
        if (now != 0 && now != kind) words.emplace_back();
        if (now != 0) words.back() += c;
        kind = now;
    }
    return words;
}

bool one_of(const std::string& word, std::initializer_list<const char*> list) {
    return std::any_of(list.begin(), list.end(), [&](const char* other) { return word == other; });
}

std::string unit_of(const std::string& word) {
    if (word == "nm" || starts_with(word, "nanom")) return "nm";
    if (one_of(word, {"um", "\xc2\xb5m", "\xce\xbcm", "micron", "microns", "mikrometer"}) ||
        starts_with(word, "microm"))
        return "um";
    if (starts_with(word, "wavenumber") || word == "wellenzahl") return "cm-1";
    if (word == "mm" || starts_with(word, "millim")) return "mm";
    if (starts_with(word, "meter") || starts_with(word, "metre")) return "m";
    if (starts_with(word, "angstrom") || word == "\xc3\xa5" || word == "\xc3\x85") return "angstrom";
    return {};
}

std::string unit_in(const std::string& name) {
    size_t at = 0;
    if (auto unit = unit_in_brackets(name, at); !unit.empty()) return unit;
    for (const auto& word : words_of(name))
        if (auto unit = unit_of(word); !unit.empty()) return unit;
    return {};
}

bool is_wavelength_word(const std::string& word) {
    return starts_with(word, "wavelen") || starts_with(word, "wavenumber") || starts_with(word, "wellenl") ||
           one_of(word, {"wl", "wls", "wvl", "wvls", "wave", "waves", "wav", "cwl", "lambda", "lam",
                         "\xce\xbb", "wellenzahl"});
}

Said says_wavelengths(const std::string& name) {
    size_t at = 0;
    const bool bracketed = !unit_in_brackets(name, at).empty();
    const auto words = words_of(bracketed ? name.substr(0, at) : name);
    if (words.empty()) return Said::nothing;
    if (starts_with(words.front(), "wavelen")) return Said::plainly;
    const Said otherwise = is_wavelength_word(words.front()) ? Said::of_one : Said::nothing;
    bool wavelength = false, unit = false, centre = false;
    for (const auto& word : words) {
        const bool is_unit = !unit_of(word).empty();
        const bool is_centre = one_of(word, {"center", "centers", "centre", "centres", "central"});
        const bool beside = one_of(word, {"band", "bands", "channel", "spectral", "mean", "peak", "effective",
                                          "x", "axis", "value", "values", "in", "of", "m", "air", "vacuum"});
        if (!is_unit && !is_centre && !beside && !is_wavelength_word(word)) return otherwise;
        wavelength |= is_wavelength_word(word);
        unit |= is_unit;
        centre |= is_centre;
    }
    if (wavelength) return Said::plainly;
    return unit || centre ? Said::perhaps : Said::nothing;
}

bool says_number(const std::string& name) {
    const auto words = words_of(name);
    return std::all_of(words.begin(), words.end(), [](const std::string& word) {
        return one_of(word, {"band", "bands", "channel", "channels", "chan", "ch", "index", "idx", "no", "nr",
                             "num", "number", "id", "fid", "row", "line", "n", "unnamed", "0"});
    });
}

bool says_band(const std::string& name) {
    const auto words = words_of(name);
    return std::any_of(words.begin(), words.end(), [](const std::string& word) {
        return one_of(word, {"band", "bands", "channel", "channels", "chan", "ch"});
    });
}

int direction(const Column& column) {
    bool rises = column.size() > 1, falls = rises;
    for (size_t k = 1; k < column.size(); ++k) {
        rises &= column[k] > column[k - 1];
        falls &= column[k] < column[k - 1];
    }
    return rises ? 1 : falls ? -1 : 0;
}

bool counts_lines(const Column& column) {
    for (size_t k = 0; k < column.size(); ++k)
        if (column[k] != column.front() + static_cast<double>(k)) return false;
    return column.size() > 1 && (column.front() == 0 || column.front() == 1);
}

bool are_whole(const Column& column) {
    return std::all_of(column.begin(), column.end(), [](double v) { return v == std::floor(v); });
}

bool are_possible_wavelengths(const Column& column) {
    const bool overlap = direction(column) == 0;
    if (overlap && !overlaps(column)) return false;
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    return (*low >= 200 && *high <= 1e5) || (*low >= 0.2 && *high < 100 && !are_whole(column) && !overlap);
}

bool have_even_steps(const Column& column) {
    if (column.size() <= 8) return false;
    Column steps;
    for (size_t k = 1; k < column.size(); ++k)
        steps.push_back(std::fabs(column[k] - column[k - 1]));
    std::sort(steps.begin(), steps.end());
    const size_t tenth = steps.size() / 10;
    return steps[steps.size() - 1 - tenth] <= 3 * steps[tenth];
}

bool are_likely_wavelengths(const Column& column, const Column& spectra) {
    if (!are_possible_wavelengths(column)) return false;
    if (have_even_steps(column)) return true;
    const double here = middle(column), there = std::fabs(middle(spectra));
    return here > 10 * there || there > 10 * here;
}

double share_of_same(const Column& a, const Column& b) {
    size_t compared = 0, same = 0;
    for (size_t k = 0; k < a.size() && k < b.size(); ++k) {
        if (std::isnan(a[k]) || std::isnan(b[k])) continue;
        ++compared;
        same += std::fabs(a[k] - b[k]) <= std::max(0.5, 1e-3 * std::fabs(a[k]));
    }
    return compared == 0 ? 0 : static_cast<double>(same) / static_cast<double>(compared);
}

} // namespace hsi::raster
