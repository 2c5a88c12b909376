// SPDX-License-Identifier: MIT
// Spectral libraries as text tables with one spectrum per text line, in which the column names state the
// bands.
#include "raster/libraries/library_rows.h"

#include "core/error.h"
#include "raster/libraries/table_axis.h"
#include "raster/metadata/scene_metadata.h"

#include <cpl_string.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace hsi::raster {
namespace {

/// A column name that denotes a band by its wavelength (450, X450.5 (R), wl_450, 450nm, Band_450nm, spc.450,
/// 450_ref, 0.45 um) or by its number (b12, "Band 12").
struct BandName {
    double value = no_library_value;
    std::string unit;
    bool number = false; ///< true: `value` is a band number, not a wavelength
    bool marked = false; ///< a word or a unit in the name states that `value` is a wavelength
    /// The name contains words that do not denote a band. Other columns of the run must then have the same
    /// words.
    bool loose = false;
    std::string words; ///< the words of the name, without the number

    /// Returns whether both names may denote bands of the same spectra.
    bool fits(const BandName& other) const {
        return std::isfinite(value) && std::isfinite(other.value) && number == other.number &&
               loose == other.loose && (!loose || words == other.words);
    }
};

/// Returns the symbol of the wavelength unit that a word denotes; empty for m, cm and mm, which spectrometers
/// do not use.
std::string band_unit(const std::string& word) {
    const WavelengthUnit* const unit = word_unit(word);
    const std::string symbol = unit == nullptr ? "" : unit->symbol;
    return one_of(symbol, {"m", "cm", "mm"}) ? std::string() : symbol;
}

/// A number within a column name, with the words before and after the number.
struct NumberIn {
    double value = no_library_value;
    std::vector<std::string> before, after;
    std::string unit() const {
        if (std::string unit = after.empty() ? "" : band_unit(after.front()); !unit.empty()) return unit;
        return before.empty() ? std::string() : band_unit(before.back());
    }
};

/// Returns the number in a column name that denotes a wavelength or a band. This is the first number with a
/// unit, else a number at the beginning of the name, else the last number ("B1_450").
NumberIn number_in_name(const std::string& head) {
    constexpr const char* digits = "0123456789";
    NumberIn found;
    for (size_t at = head.find_first_of(digits); at != std::string::npos;) {
        size_t end = std::min(head.find_first_not_of("0123456789.,", at), head.size());
        const size_t next = head.find_first_of(digits, end);
        while (end > at && (head[end - 1] == '.' || head[end - 1] == ','))
            --end;
        NumberIn one{cell_number(head.substr(at, end - at)), words_of(head.substr(0, at)),
                     words_of(head.substr(end))};
        const bool unit = !one.unit().empty();
        if (unit || at == 0 || next == std::string::npos) return one;
        at = next;
    }
    return found;
}

bool is_word_of_bands(const std::string& word) {
    return is_wavelength_word(word) || !band_unit(word).empty() ||
           one_of(word, {"x",          "w",           "wn",       "v",     "r",
                         "refl",       "reflectance", "rfl",      "ref",   "spc",
                         "spec",       "spectra",     "rho",      "rrs",   "abs",
                         "absorbance", "rad",         "radiance", "trans", "transmittance",
                         "scan",       "visnir",      "vis",      "nir",   "vnir",
                         "swir",       "mir",         "mean",     "avg",   "pcnt",
                         "pct",        "percent",     "corr",     "raw"});
}

bool is_word_for_band(const std::string& word) {
    return one_of(word, {"b", "band", "bands", "ch", "channel"});
}

BandName band_name(std::string head) {
    BandName name;
    const bool wavenumber = take_wavenumber_unit(head);
    if (wavenumber) name.unit = "cm-1";
    name.value = cell_number(head);
    name.marked = wavenumber;
    if (std::isfinite(name.value)) return name;
    const NumberIn number = number_in_name(head);
    if (!std::isfinite(number.value)) return name;
    if (!wavenumber) name.unit = number.unit();
    const auto& [value, before, after] = number;
    name.marked = !name.unit.empty() ||
                  (!before.empty() && std::any_of(before.begin(), before.end(), is_wavelength_word));
    name.number =
        name.unit.empty() && before.size() == 1 && after.empty() && is_word_for_band(before.front());
    const auto speaks_of_bands = [](const std::string& word) {
        return is_word_of_bands(word) || is_word_for_band(word) ||
               word.find_first_not_of("0123456789") == std::string::npos;
    };
    name.loose = !std::all_of(before.begin(), before.end(), speaks_of_bands) ||
                 !std::all_of(after.begin(), after.end(), is_word_of_bands);
    for (const auto* const words : {&before, &after})
        for (const std::string& word : *words)
            name.words += word + " ";
    const bool sample = !before.empty() && is_word_for_sample(before.front());
    if ((sample && name.unit.empty()) || says_statistic(name.words)) return name;
    name.value = value;
    return name;
}

/// Indices of the columns whose names denote the bands, ascending; empty if no names denote bands.
using Run = std::vector<size_t>;

bool is_in(const Run& run, size_t c) { return std::find(run.begin(), run.end(), c) != run.end(); }

/// Returns whether the names in [begin, end) are wavelengths in any order without duplicates. Unless `any` is
/// true, each name must be marked as a wavelength.
bool are_places(const std::vector<BandName>& names, size_t begin, size_t end, bool any) {
    std::set<double> seen;
    for (size_t c = begin; c < end; ++c)
        if ((!any && !names[c].marked) || !seen.insert(names[c].value).second) return false;
    return true;
}

/// Returns whether the names in [begin, end), which fit each other, denote bands. The numbers must rise or
/// fall like the wavelengths of a sensor, or be consecutive band numbers. One step in ten may have the other
/// direction, because the ranges of spectrometers overlap. Any order is accepted if a word or a unit marks
/// all names as wavelengths, or if spectra are text lines (`in_lines`: each line begins with a text).
/// `corner`: another column name states that the names are wavelengths.
bool are_bands(const std::vector<BandName>& names, size_t begin, size_t end, bool in_lines, bool corner) {
    size_t up = 0, down = 0, next = 0;
    double low = names[begin].value, high = low;
    bool whole = true;
    for (size_t c = begin; c < end; ++c) {
        const double step = c == begin ? 0 : names[c].value - names[c - 1].value;
        up += step > 0;
        down += step < 0;
        next += step == 1;
        low = std::min(low, names[c].value);
        high = std::max(high, names[c].value);
        whole &= names[c].value == std::floor(names[c].value);
    }
    const size_t steps = end - begin - 1;
    if (names[begin].number) return next == steps;
    // Consecutive numbers from 0 or 1 on are band numbers, which are accepted only if spectra are text lines.
    if (whole && next == steps && low <= 1) return in_lines && !names[begin].loose;
    const bool marked = names[begin].marked;
    const bool placed = low >= 100 || (low >= 0.1 && high < 250 && (marked || !whole)) ||
                        !names[begin].unit.empty() || (corner && in_lines && low > 0);
    // The minimum number of columns that are accepted if no word in their names denotes bands.
    constexpr size_t enough = 5;
    if (names[begin].loose && !marked)
        return begin > 0 && placed && steps + 1 >= enough && (up == steps || down == steps);
    return placed && (10 * std::max(up, down) >= 9 * steps || are_places(names, begin, end, in_lines));
}

/// Extends the run by columns beyond its ends, across unrelated columns, if their names fit the run and
/// continue to rise or fall.
void go_on(const std::vector<BandName>& names, Run& run) {
    const double rise = names[run.back()].value - names[run.front()].value;
    const auto follows = [&](size_t c, size_t before) {
        return names[c].fits(names[before]) && names[c].unit == names[before].unit &&
               (names[c].value - names[before].value) * rise > 0;
    };
    for (size_t c = run.back() + 1; c < names.size(); ++c)
        if (follows(c, run.back())) run.push_back(c);
    for (size_t c = run.front(); c-- > 0;)
        if (names[c].fits(names[run.front()]) && follows(run.front(), c)) run.insert(run.begin(), c);
}

/// Returns the longest run of column names that denote bands.
Run longest_run(const TextTable& table, const std::vector<BandName>& names, bool in_lines) {
    const bool corner = std::any_of(table.head.begin(), table.head.end(), [](const std::string& head) {
        return says_wavelengths(head) == Said::plainly;
    });

    Run best;
    for (size_t begin = 0; begin < names.size();) {
        size_t end = begin;
        while (end < names.size() && names[end].fits(names[begin]))
            ++end;
        if (end - begin > std::max<size_t>(best.size(), 1) &&
            are_bands(names, begin, end, in_lines, corner)) {
            best.resize(end - begin);
            std::iota(best.begin(), best.end(), begin);
        }
        begin = std::max(end, begin + 1);
    }
    if (!best.empty()) go_on(names, best);
    return best;
}

/// Returns all numbers of the table in the columns from `begin` on.
Column numbers_behind(const TextTable& table, size_t begin) {
    Column all;
    for (const auto& row : table.rows)
        for (size_t c = begin; c < row.size(); ++c)
            all.push_back(cell_number(row[c]));
    return all;
}

bool is_text_column(const TextTable& table, size_t c) {
    return std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
        return !is_empty_cell(row[c]) && !std::isfinite(cell_number(row[c]));
    });
}

/// Returns the ratio of the largest number to the smallest. This ratio is larger for a sensor's wavelengths
/// than for consecutive sample numbers.
double spread(const Column& numbers) {
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    return *low > 0 ? *high / *low : 1;
}

/// Returns true if the numeric column `c` contains wavelengths or band numbers, so that the other columns are
/// spectra. The test is needed because the names of these columns, which are numbers, could also denote
/// bands; each row would then be a spectrum.
bool is_axis(const TextTable& table, size_t c, const Column& column, const std::vector<BandName>& names,
             const Run& run) {
    const std::string& head = table.head[c];
    const auto words = words_of(head);
    // gdal_hsi tools write this name.
    if (head == "band") return true;
    const bool sample = std::any_of(words.begin(), words.end(), is_word_for_sample);
    if (counts_lines(column))
        return (names[run.front()].loose && !sample) || (!words.empty() && is_word_for_band(words.front()));
    Column across;
    for (const size_t k : run)
        across.push_back(names[k].value);
    constexpr double wide = 1.1;
    if (says_wavelengths(head) == Said::plainly)
        return never_turns(column) && (spread(column) > wide || spread(column) >= spread(across));
    const bool marked = names[run.front()].marked;
    if (c != 0 || marked || sample || !are_likely_wavelengths(column, numbers_behind(table, 1))) return false;
    const bool neutral =
        one_of(lower(head), {"", "x", "index", "unnamed: 0"}) || is_word_for_band(lower(head));
    return (neutral && spread(column) > wide) || !are_whole(column) || spread(column) > spread(across);
}

/// Returns whether spectra are stored in columns although the column names could denote bands. The spectra
/// then have numbers as names, and one of the first two columns contains wavelengths or band numbers.
bool has_axis_in_front(const TextTable& table, const std::vector<BandName>& names, const Run& run) {
    for (size_t c = 0; c < std::min<size_t>(2, run.front()); ++c) {
        Column column;
        for (const auto& row : table.rows)
            column.push_back(cell_number(row[c]));
        if (std::all_of(column.begin(), column.end(), [](double v) { return std::isfinite(v); }) &&
            is_axis(table, c, column, names, run))
            return true;
    }
    return false;
}

/// Returns the column that contains the names of the spectra: a column whose name says so, else the first
/// column that contains text. Returns the number of columns if there is no such column.
size_t column_of_names(const TextTable& table, const Run& run) {
    for (const char* word : {"name", "names", "spectrum", "spectra", "sample", "label", "title", "id"})
        for (size_t c = 0; c < table.columns(); ++c) {
            const auto words = words_of(table.head[c]);
            if (!is_in(run, c) && std::find(words.begin(), words.end(), word) != words.end() &&
                is_text_column(table, c))
                return c;
        }
    for (size_t c = 0; c < table.columns(); ++c)
        if (!is_in(run, c) && is_text_column(table, c) && stated_unit_of_column(table, c).empty()) return c;
    return is_in(run, 0) ? table.columns() : 0;
}

/// Returns the index of the column `class` if it is not the column of names (`called`); otherwise the number
/// of columns.
size_t column_of_classes(const TextTable& table, const Run& run, size_t called) {
    for (size_t c = 0; c < table.columns(); ++c)
        if (c != called && !is_in(run, c) && EQUAL(table.head[c].c_str(), "class")) return c;
    return table.columns();
}

/// Handles a text line that is not a spectrum but repeats the wavelengths, or contains the FWHM or the bad
/// band list. Returns false if the line is a spectrum. \throws Error if the line contradicts the wavelengths.
bool take_line_beside(const std::string& path, const std::string& name, const Column& values,
                      SpectralLibrary& library, Column& marks, const std::string& unit) {
    const TableColumn kind = table_column(name);
    const Said said = says_wavelengths(name);
    if (kind == TableColumn::marks) {
        marks = values;
    } else if (kind == TableColumn::widths) {
        library.fwhm_nm = values;
        const std::string own = stated_unit(name);
        widths_to_nm(library, path, !own.empty() ? own : unit);
    } else if (said == Said::plainly || said == Said::perhaps) {
        Column nm = values;
        library_to_nm(nm, stated_unit(name));
        const double same = share_of_same(library.wavelengths_nm, nm);
        constexpr double most = 0.5;
        if (same < most && !are_possible_wavelengths(values)) return false;
        if (same < 1)
            throw Error("'" + path + "': the line '" + name +
                            "' contradicts the wavelengths in the column names",
                        "Remove the wrong wavelengths.");
        note(library, path, "the line '" + name + "' repeats the wavelengths; it is ignored");
    } else {
        return false;
    }
    return true;
}

/// Returns whether each text line begins with a text, which is then the name of a spectrum.
bool are_lines_with_names(const TextTable& table) {
    return std::all_of(table.rows.begin(), table.rows.end(), [](const auto& row) {
        return !row.empty() && !is_empty_cell(row.front()) && !std::isfinite(cell_number(row.front()));
    });
}

/// Returns whether the column names are band numbers: b1, b2 ..., or 1, 2 ...
bool counts_bands(const std::vector<BandName>& names, const Run& run) {
    Column numbers;
    for (const size_t c : run)
        numbers.push_back(names[c].value);
    return names[run.front()].number || (counts_lines(numbers) && names[run.front()].unit.empty());
}

/// Returns the unit of the wavelengths. It is stated in the column names of the bands, in the column names
/// before them, in a column of units, or in text lines above the table.
std::string unit_of_names(const TextTable& table, const std::vector<BandName>& names, const Run& run) {
    if (const std::string& unit = names[run.front()].unit; !unit.empty()) return unit;
    for (size_t c = run.front(); c-- > 0;) {
        const auto words = words_of(table.head[c]);
        if (says_wavelengths(table.head[c]) == Said::nothing &&
            std::none_of(words.begin(), words.end(), is_wavelength_word))
            continue;
        if (std::string unit = stated_unit(table.head[c]); !unit.empty()) return unit;
    }
    for (size_t c = 0; c < table.columns(); ++c)
        if (!is_in(run, c))
            if (std::string unit = stated_unit_of_column(table, c); !unit.empty()) return unit;
    return table.unit;
}

std::vector<std::string> cells_in(const std::vector<std::string>& row, const Run& run) {
    std::vector<std::string> cells;
    for (const size_t c : run)
        cells.push_back(row[c]);
    return cells;
}

} // namespace

std::string stated_unit_of_column(const TextTable& table, size_t c) {
    const auto words = words_of(table.head.empty() ? std::string() : table.head[c]);
    if (std::none_of(words.begin(), words.end(), [](const std::string& word) {
            return one_of(word, {"unit", "units", "xunit"});
        }))
        return {};
    std::string unit;
    for (const auto& row : table.rows) {
        if (is_empty_cell(row[c])) continue;
        const WavelengthUnit* const one = field_unit(row[c]);
        if (one == nullptr || (!unit.empty() && unit != one->symbol)) return {};
        unit = one->symbol;
    }
    return unit;
}

std::optional<SpectralLibrary> library_of_rows(const std::string& path, const TextTable& table, bool known) {
    if (table.head.empty()) return std::nullopt;
    std::vector<BandName> names;
    for (const auto& head : table.head)
        names.push_back(band_name(head));
    const Run run = longest_run(table, names, are_lines_with_names(table));
    if (run.size() < 2 || (!known && has_axis_in_front(table, names, run))) return std::nullopt;
    const size_t called = column_of_names(table, run);
    const size_t classes = column_of_classes(table, run, called);
    std::vector<std::string> lines;
    std::vector<Column> spectra;
    for (size_t r = 0; r < table.rows.size(); ++r) {
        const auto cells = cells_in(table.rows[r], run);
        spectra.push_back(spectrum_numbers(path, "spectrum " + std::to_string(r + 1), cells));
        lines.push_back(called < table.columns() ? table.rows[r][called] : std::string());
        for (size_t b = 0; b < cells.size(); ++b)
            if (std::isnan(spectra[r][b]) && !is_empty_cell(cells[b])) return std::nullopt;
    }
    SpectralLibrary library;
    std::string unit;
    if (!counts_bands(names, run)) {
        for (const size_t c : run)
            library.wavelengths_nm.push_back(names[c].value);
        unit = wavelengths_to_nm(library, path, unit_of_names(table, names, run));
    }
    const auto statistics = statistics_among(lines, spectra);
    Column marks;
    for (size_t r = 0; r < lines.size(); ++r) {
        std::string& name = lines[r];
        if (!library.wavelengths_nm.empty() && take_line_beside(path, name, spectra[r], library, marks, unit))
            continue;
        if (statistics[r]) {
            note(library, path, "the line '" + name + "' is a statistic; it is ignored");
            continue;
        }
        if (name.empty()) name = "Spectrum " + std::to_string(library.names.size() + 1);
        library.missing += static_cast<size_t>(
            std::count_if(spectra[r].begin(), spectra[r].end(), [](double v) { return std::isnan(v); }));
        library.spectra.push_back(std::move(spectra[r]));
        library.names.push_back(std::move(name));
        if (classes < table.columns()) library.classes.push_back(table.rows[r][classes]);
    }
    if (library.spectra.empty()) refuse_library(path, "has no spectra");
    for (auto& spectrum : library.spectra)
        for (size_t b = 0; b < marks.size(); ++b)
            if (marks[b] == 0) spectrum[b] = no_library_value;
    return library;
}

} // namespace hsi::raster
