// SPDX-License-Identifier: MIT
#include "raster/libraries/table_axis.h"

#include "raster/libraries/library_formats.h"
#include "raster/metadata/scene_metadata.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace hsi::raster {
namespace {

/// Returns the name without its last brackets if the brackets contain a unit: "Wavelength (A)", "wl [m]".
std::string without_unit(const std::string& name, bool& unit) {
    const size_t begin = name.find_last_of("(["), end = name.find_last_of(")]");
    if (begin == std::string::npos || end == std::string::npos || end < begin) return name;
    const std::string inside = name.substr(begin + 1, end - begin - 1);
    unit = field_unit(inside) != nullptr;
    return unit ? name.substr(0, begin) + " " + name.substr(end + 1) : name;
}

double middle(Column values) {
    std::erase_if(values, [](double v) { return !std::isfinite(v); });
    if (values.empty()) return no_library_value;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

/// Returns whether at least nine of ten steps have the same direction. The other steps occur where the ranges
/// of two spectrometers overlap.
bool overlaps(const Column& column) {
    size_t up = 0, down = 0;
    for (size_t k = 1; k < column.size(); ++k) {
        up += column[k] > column[k - 1];
        down += column[k] < column[k - 1];
    }
    constexpr size_t enough = 20;
    return column.size() >= enough && 10 * std::max(up, down) >= 9 * (column.size() - 1);
}

/// The meaning of the words in a column name.
struct Statistic {
    bool is_one = false; ///< one of the words denotes a statistic
    std::string subject; ///< the other words, each followed by a blank: the name of the spectrum
};

/// Separates words at capital letters: "soilStd" becomes "soil Std".
std::string with_words_parted(const std::string& name) {
    std::string text;
    for (size_t k = 0; k < name.size(); ++k) {
        if (k > 0 && std::islower(static_cast<unsigned char>(name[k - 1])) != 0 &&
            std::isupper(static_cast<unsigned char>(name[k])) != 0)
            text += ' ';
        text += name[k];
    }
    return text;
}

Statistic statistic_in(const std::string& name, const Column& values) {
    Statistic told;
    const auto words = words_of(with_words_parted(name));
    const bool interval = std::any_of(words.begin(), words.end(), [](const std::string& word) {
        return one_of(word, {"ci", "confidence"});
    });
    bool number = false, other = false;
    for (const std::string& word : words) {
        const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
        number |= word == "n";
        if (one_of(word,
                   {"std",     "stdev",   "stddev",   "stdv",        "sd",         "deviation", "sem",
                    "stderr",  "var",     "variance", "error",       "err",        "se",        "sigma",
                    "rms",     "rmse",    "cv",       "uncertainty", "iqr",        "min",       "max",
                    "minimum", "maximum", "ci",       "count",       "confidence", "counts",    "variation"}))
            other = true;
        else if (word != "n" && !(interval && digits) &&
                 !one_of(word, {"standard", "dev", "of", "the", "samples", "spectra", "measurements", "value",
                                "values", "coefficient", "interval", "mean", "avg", "average", "median"}))
            told.subject += word + " ";
    }
    // "Se" is selenium, not a standard error. A column n without whole numbers is a refractive index.
    told.is_one = (other && name != "Se") || (number && are_whole(values));
    return told;
}

} // namespace

bool is_wavelength_word(const std::string& word) {
    return starts_with(word, "wavelen") || starts_with(word, "wavenumber") || starts_with(word, "wellenl") ||
           one_of(word, {"wl", "wls", "wvl", "wvls", "wave", "waves", "wav", "cwl", "lambda", "lam",
                         "\xce\xbb", "wellenzahl"});
}

Said says_wavelengths(const std::string& name) {
    bool unit = false;
    const auto words = words_of(without_unit(name, unit));
    if (words.empty()) return unit && name.size() > 3 ? Said::perhaps : Said::nothing;
    if (starts_with(words.front(), "wavelen")) return Said::plainly;
    const Said otherwise = is_wavelength_word(words.front()) ? Said::of_one : Said::nothing;
    bool wavelength = false, centre = false, shift = false, quantity = false;
    for (const auto& word : words) {
        const bool is_unit = word_unit(word) != nullptr;
        const bool is_shift = word == "shift";
        const bool is_centre = one_of(word, {"center", "centers", "centre", "centres", "central"});
        const bool is_quantity =
            one_of(word, {"frequency", "frequencies", "freq", "frequenz", "energy", "energies", "energie"});
        const bool beside =
            one_of(word, {"band",    "bands",  "channel", "spectral", "mean",    "peak",  "effective",
                          "x",       "axis",   "value",   "values",   "in",      "of",    "m",
                          "air",     "vacuum", "raman",   "relative", "rel",     "delta", "photon",
                          "optical", "e",      "f",       "nu",       "\xce\xbd"});
        if (!is_unit && !is_shift && !is_centre && !is_quantity && !beside && !is_wavelength_word(word))
            return otherwise;
        wavelength |= is_wavelength_word(word);
        unit |= is_unit;
        shift |= is_shift;
        centre |= is_centre;
        quantity |= is_quantity;
    }
    if (wavelength || (quantity && unit) || (shift && is_other_axis(name))) return Said::plainly;
    return unit || centre || quantity ? Said::perhaps : Said::nothing;
}

bool says_statistic(const std::string& name, const Column& values) {
    const Statistic told = statistic_in(name, values);
    return told.is_one && told.subject.empty();
}

std::vector<bool> statistics_among(const std::vector<std::string>& names, const std::vector<Column>& values) {
    std::vector<Statistic> told;
    for (size_t k = 0; k < names.size(); ++k)
        told.push_back(statistic_in(names[k], values[k]));
    std::vector<bool> found;
    for (const Statistic& one : told)
        found.push_back(one.is_one && (one.subject.empty() ||
                                       std::any_of(told.begin(), told.end(), [&](const Statistic& other) {
                                           return !other.is_one && other.subject == one.subject;
                                       })));
    if (std::count(found.begin(), found.end(), false) == 0) found.assign(found.size(), false);
    return found;
}

bool is_word_for_sample(const std::string& word) {
    return one_of(word, {"sample",   "samples", "spectrum",   "plot",      "site",     "point",     "pixel",
                         "id",       "ident",   "identifier", "accession", "lab",      "barcode",   "code",
                         "specimen", "tree",    "leaf",       "target",    "class",    "roi",       "no",
                         "nr",       "num",     "number",     "file",      "fid",      "oid",       "uid",
                         "row",      "line",    "n",          "date",      "year",     "month",     "day",
                         "doy",      "time",    "label",      "name",      "title",    "replicate", "rep",
                         "plant",    "lat",     "lon",        "latitude",  "longitude"});
}

bool says_sample(const std::string& name) {
    const auto words = words_of(name);
    return !words.empty() && std::all_of(words.begin(), words.end(), [](const std::string& word) {
        return is_word_for_sample(word) ||
               one_of(word, {"scan",         "scans",   "points",      "pixels",  "record", "measurement",
                             "measurements", "obs",     "observation", "reading", "step",   "seq",
                             "sequence",     "counter", "data",        "spectra", "index",  "idx",
                             "position",     "pos",     "run",         "shot"});
    });
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

bool never_turns(const Column& column) {
    size_t up = 0, down = 0;
    for (size_t k = 1; k < column.size(); ++k) {
        up += column[k] > column[k - 1];
        down += column[k] < column[k - 1];
    }
    return column.size() > 1 && std::min(up, down) == 0 && 2 * std::max(up, down) >= column.size() - 1;
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
    constexpr size_t enough = 20; // from this count on, some numbers may repeat
    const bool rises = direction(column) != 0 || (column.size() >= enough && never_turns(column));
    if (!rises && !overlaps(column)) return false;
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    return (*low >= 200 && *high <= 1e5) || (*low >= 0.2 && *high < 100 && !are_whole(column) && rises);
}

bool is_percent(const std::string& unit) {
    const std::string text = lower(unit);
    return text == "%" || text == "[%]" || text == "(%)" || text == "percent";
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
