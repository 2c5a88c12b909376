// SPDX-License-Identifier: MIT
// Selects spectra of a library by name, and resamples them. Does not call GDAL.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/spectral_library.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace hsi::raster {
namespace {

bool is_pattern(const std::string& text) { return text.find_first_of("*?") != std::string::npos; }

/// Returns the name in lower case, without leading and trailing blanks.
std::string plain(const std::string& name) {
    const size_t begin = name.find_first_not_of(" \t");
    if (begin == std::string::npos) return {};
    std::string text = name.substr(begin, name.find_last_not_of(" \t") + 1 - begin);
    for (char& c : text)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

/// Returns whether the text matches a pattern, in which * stands for any characters and ? for one character.
bool matches(const std::string& text, const std::string& pattern) {
    size_t t = 0, p = 0, star = std::string::npos, from = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p, ++t;
        } else if (star != std::string::npos) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == std::string::npos;
}

/// Returns 12 for "#12"; 0 for other texts.
size_t number_in(const std::string& wanted) {
    if (wanted.size() < 2 || wanted.size() > 10 || wanted[0] != '#' ||
        wanted.find_first_not_of("0123456789", 1) != std::string::npos)
        return 0;
    return std::strtoul(wanted.c_str() + 1, nullptr, 10);
}

/// Returns advice for the error message: names that contain the wanted text, else names with a similar
/// spelling.
std::string advice(const std::vector<std::string>& names, const std::string& wanted) {
    constexpr size_t most = 5;
    std::vector<std::string> near;
    std::string core = plain(wanted);
    std::erase_if(core, [](char c) { return c == '*' || c == '?'; });
    size_t found = 0;
    for (const auto& name : names)
        if (!core.empty() && plain(name).find(core) != std::string::npos && ++found <= most)
            near.push_back("'" + name + "'");
    if (!near.empty())
        return "Similar spectra: " + joined(near, ", ") +
               (found > most ? " and " + counted(found - most, "other") : std::string()) +
               "; a pattern like '*" + core + "*' selects all.";
    if (const std::string one = nearest_name(wanted, names); !one.empty())
        return "Did you mean '" + one + "'?";
    for (const auto& name : names)
        if (near.size() < most) near.push_back("'" + name + "'");
    return "Its " + counted(names.size(), "spectrum", "spectra") + worded(names.size(), " is ", " are ") +
           joined(near, ", ") + (names.size() > most ? " ..." : "") + ".";
}

/// Returns the indices of the names that one item of the user's list selects. An exact name is tried first,
/// then #N, then a pattern.
std::vector<size_t> found_by(const std::string& wanted, const std::vector<std::string>& names) {
    std::vector<size_t> found;
    const std::string text = plain(wanted);
    for (size_t k = 0; k < names.size(); ++k)
        if (plain(names[k]) == text) found.push_back(k);
    if (!found.empty()) return found;
    if (const size_t number = number_in(wanted); number >= 1 && number <= names.size()) return {number - 1};
    if (is_pattern(text))
        for (size_t k = 0; k < names.size(); ++k)
            if (matches(plain(names[k]), text)) found.push_back(k);
    return found;
}

} // namespace

std::vector<size_t> chosen_names(const std::vector<std::string>& names,
                                 const std::vector<std::string>& wanted, const std::string& role) {
    std::vector<size_t> chosen;
    std::vector<bool> taken(names.size());
    for (const auto& one : wanted) {
        const auto found = found_by(one, names);
        if (found.empty())
            throw Error(role + ": no spectrum " +
                            (is_pattern(one) ? "matches '" + one + "'" : "is called '" + one + "'"),
                        advice(names, one));
        for (const size_t k : found) {
            if (!taken[k]) chosen.push_back(k);
            taken[k] = true;
        }
    }
    return chosen;
}

std::set<size_t> deviations_in(const std::vector<std::string>& names) {
    const std::set<std::string> all(names.begin(), names.end());
    const std::string tail = " deviation";
    std::set<size_t> found;
    for (size_t k = 0; k < names.size(); ++k) {
        // ENVI headers cannot store equal names, so a count is appended: "X deviation (2)" belongs to "X
        // (2)".
        const std::string& name = names[k];
        const size_t bracket = name.empty() || name.back() != ')' ? std::string::npos : name.rfind(" (");
        const std::string count = bracket == std::string::npos ? std::string() : name.substr(bracket);
        const std::string own = name.substr(0, name.size() - count.size());
        for (const auto& [text, behind] : {std::pair(name, std::string()), std::pair(own, count)})
            if (text.size() > tail.size() &&
                text.compare(text.size() - tail.size(), tail.size(), tail) == 0 &&
                all.count(text.substr(0, text.size() - tail.size()) + behind) > 0)
                found.insert(k);
    }
    return found;
}

bool are_exact(const std::vector<std::string>& wanted) {
    return std::none_of(wanted.begin(), wanted.end(), is_pattern);
}

SpectralLibrary selected(const SpectralLibrary& library, const std::vector<size_t>& indices) {
    SpectralLibrary out;
    out.wavelengths_nm = library.wavelengths_nm;
    out.fwhm_nm = library.fwhm_nm;
    out.band_numbers = library.band_numbers;
    out.numbers_told = library.numbers_told;
    out.notes = library.notes;
    for (const size_t k : indices) {
        out.names.push_back(library.names[k]);
        if (!library.classes.empty()) out.classes.push_back(library.classes[k]);
        out.spectra.push_back(library.spectra[k]);
    }
    return out;
}

SpectralLibrary resampled(const SpectralLibrary& library, const std::vector<double>& wavelengths_nm) {
    // The wavelengths are sorted because the ranges of a sensor's spectrometers overlap.
    std::vector<size_t> order;
    for (size_t b = 0; b < library.wavelengths_nm.size(); ++b)
        if (std::isfinite(library.wavelengths_nm[b])) order.push_back(b);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return library.wavelengths_nm[a] < library.wavelengths_nm[b];
    });
    SpectralLibrary out;
    out.names = library.names;
    out.classes = library.classes;
    out.wavelengths_nm = wavelengths_nm;
    for (const auto& spectrum : library.spectra) {
        std::vector<double> values;
        for (double w : wavelengths_nm) {
            const auto above = std::lower_bound(order.begin(), order.end(), w, [&](size_t b, double x) {
                return library.wavelengths_nm[b] < x;
            });
            if (!std::isfinite(w) || above == order.end() ||
                (above == order.begin() && library.wavelengths_nm[*above] != w)) {
                values.push_back(std::numeric_limits<double>::quiet_NaN());
                continue;
            }
            if (library.wavelengths_nm[*above] == w) {
                values.push_back(spectrum[*above]);
                continue;
            }
            const size_t lo = *(above - 1), hi = *above;
            const double share =
                (w - library.wavelengths_nm[lo]) / (library.wavelengths_nm[hi] - library.wavelengths_nm[lo]);
            values.push_back(spectrum[lo] + share * (spectrum[hi] - spectrum[lo]));
        }
        out.spectra.push_back(std::move(values));
    }
    return out;
}

std::vector<size_t> infinite_spectra(const SpectralLibrary& library) {
    std::vector<size_t> found;
    for (size_t k = 0; k < library.spectra.size(); ++k)
        if (std::any_of(library.spectra[k].begin(), library.spectra[k].end(),
                        [](double v) { return std::isinf(v); }))
            found.push_back(k);
    return found;
}

} // namespace hsi::raster
