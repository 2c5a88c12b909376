// SPDX-License-Identifier: MIT
// Spectral libraries as tables of text: what the columns, or the lines, of a table are.
#include "core/counted.h"
#include "raster/libraries/library_formats.h"
#include "raster/libraries/text_table.h"
#include "raster/metadata/metadata_items.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace hsi::raster {
namespace {

using Column = std::vector<double>;

/// The words of a name in small letters; "cm-1" and its like are one, digits are words, too.
std::vector<std::string> words_of(const std::string& name) {
    std::string text = lower(name);
    for (const char* spelling : {"cm-1", "cm^-1", "cm^(-1)", "1/cm", "cm\xe2\x81\xbb\xc2\xb9"})
        if (const size_t at = text.find(spelling); at != std::string::npos)
            text.replace(at, std::string(spelling).size(), " wavenumber ");
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

/// The unit that a word is: "nm", "um", "angstrom", "cm-1", or nothing.
std::string unit_of(const std::string& word) {
    if (word == "nm" || starts_with(word, "nanom")) return "nm";
    if (one_of(word, {"um", "\xc2\xb5m", "\xce\xbcm", "micron", "microns", "mikrometer"}) ||
        starts_with(word, "microm"))
        return "um";
    if (starts_with(word, "wavenumber") || word == "wellenzahl") return "cm-1";
    if (starts_with(word, "angstrom") || word == "\xc3\xa5" || word == "\xc3\x85") return "angstrom";
    return {};
}

std::string unit_in(const std::string& name) {
    for (const auto& word : words_of(name))
        if (auto unit = unit_of(word); !unit.empty()) return unit;
    return {};
}

bool is_wavelength_word(const std::string& word) {
    return starts_with(word, "wavelen") || starts_with(word, "wavenumber") || starts_with(word, "wellenl") ||
           one_of(word, {"wl", "wls", "wvl", "wvls", "wave", "waves", "wav", "cwl", "lambda", "lam",
                         "\xce\xbb", "wellenzahl"});
}

/// How far a name says that a column holds the places of the bands on the spectrum.
enum class Said { nothing, perhaps, plainly };

Said says_wavelengths(const std::string& name) {
    const auto words = words_of(name);
    if (words.empty()) return Said::nothing;
    if (starts_with(words.front(), "wavelen")) return Said::plainly;
    bool wavelength = false, unit = false, centre = false;
    for (const auto& word : words) {
        const bool is_unit = !unit_of(word).empty();
        const bool is_centre = one_of(word, {"center", "centers", "centre", "centres", "central"});
        const bool beside = one_of(word, {"band", "bands", "channel", "spectral", "mean", "peak", "effective",
                                          "x", "axis", "value", "values", "in", "of", "m"});
        if (!is_unit && !is_centre && !beside && !is_wavelength_word(word)) return Said::nothing;
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

/// 1: rises from line to line, -1: falls, 0: neither.
int direction(const Column& column) {
    bool rises = column.size() > 1, falls = rises;
    for (size_t k = 1; k < column.size(); ++k) {
        rises &= column[k] > column[k - 1];
        falls &= column[k] < column[k - 1];
    }
    return rises ? 1 : falls ? -1 : 0;
}

/// 0, 1, 2 ... or 1, 2, 3 ...: the numbers of the lines, which tables of other programs have in front.
bool counts_lines(const Column& column) {
    for (size_t k = 0; k < column.size(); ++k)
        if (column[k] != column.front() + static_cast<double>(k)) return false;
    return column.size() > 1 && (column.front() == 0 || column.front() == 1);
}

double middle(Column values) {
    std::erase_if(values, [](double v) { return !std::isfinite(v); });
    if (values.empty()) return no_library_value;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

bool are_whole(const Column& column) {
    return std::all_of(column.begin(), column.end(), [](double v) { return v == std::floor(v); });
}

/// Numbers of bands are whole; 450, 550, 650 are wavelengths whatever the column is called.
bool are_numbers_of_bands(const Column& column) {
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    const bool spaced = *low >= 300 && *high - *low >= 2 * static_cast<double>(column.size() - 1);
    return are_whole(column) && !(spaced && direction(column) != 0);
}

/// Whether numbers that rise or fall can be wavelengths: nanometres or micrometres of a sensor.
bool are_possible_wavelengths(const Column& column) {
    if (direction(column) == 0) return false;
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    return (*low >= 200 && *high <= 1e5) || (*low >= 0.2 && *high < 100 && !are_whole(column));
}

/// Whether the steps from one number to the next are alike, as those of a sensor's bands are; of few numbers
/// that says nothing.
bool have_even_steps(const Column& column) {
    if (column.size() <= 8) return false;
    Column steps;
    for (size_t k = 1; k < column.size(); ++k)
        steps.push_back(std::fabs(column[k] - column[k - 1]));
    std::sort(steps.begin(), steps.end());
    const size_t tenth = steps.size() / 10;
    return steps[steps.size() - 1 - tenth] <= 3 * steps[tenth];
}

/// Whether possible wavelengths are likelier to be some than a spectrum that happens to rise: by their steps,
/// or since the spectra beside them (all numbers of these) are of another size.
bool are_likely_wavelengths(const Column& column, const Column& spectra) {
    if (!are_possible_wavelengths(column)) return false;
    if (have_even_steps(column)) return true;
    const double here = middle(column), there = std::fabs(middle(spectra));
    return here > 10 * there || there > 10 * here;
}

/// A table whose columns are being told apart.
struct Columns {
    const std::string& path;
    const TextTable& table;
    std::vector<Column> values;
    SpectralLibrary library;
    std::vector<bool> used;
    std::string unit; ///< of the wavelengths

    const std::string& head(size_t c) const { return table.head[c]; }
    std::string named(size_t c) const {
        return table.head.empty() || head(c).empty() ? "which has no name" : "'" + head(c) + "'";
    }
    /// A cell that is neither a number nor empty; null when there is none.
    const std::string* text_in(size_t c) const {
        for (size_t r = 0; r < table.rows.size(); ++r)
            if (std::isnan(values[c][r]) && !is_empty_cell(table.rows[r][c])) return &table.rows[r][c];
        return nullptr;
    }
    bool all_numbers(size_t c) const {
        return std::all_of(values[c].begin(), values[c].end(), [](double v) { return std::isfinite(v); });
    }
};

/// Where such a table is the metadata of a library, or lies on its side without wavelengths.
[[noreturn]] void refuse_text(const Columns& t, size_t c) {
    std::string what = "the column " + (t.table.head.empty() ? std::to_string(c + 1) : t.head(c)) +
                       " holds something that is no number ('" + *t.text_in(c) + "')";
    VSIStatBufL status;
    if (const std::string sli = CPLResetExtension(t.path.c_str(), "sli");
        sli != t.path && VSIStatL(sli.c_str(), &status) == 0)
        what += "; the spectra are in " + sli;
    else if (c == 0)
        what += "; a table with a line a spectrum needs wavelengths for the names of its columns";
    refuse_library(t.path, what);
}

void take_wavelengths(Columns& t, size_t c, const std::string& unit) {
    t.used[c] = true;
    t.library.wavelengths_nm = t.values[c];
    double largest = 0;
    for (const double v : t.values[c])
        if (v > largest) largest = v;
    t.unit = !unit.empty() ? unit : largest < 100 ? "um" : "nm";
    library_to_nm(t.library.wavelengths_nm, t.unit);
}

void take_numbers(Columns& t, size_t c) {
    t.used[c] = true;
    if (!t.table.head.empty() && EQUAL(t.head(c).c_str(), "band")) // as the suite writes it
        return take_band_numbers(t.library, t.values[c], false);
    note(t.library, t.path,
         "the first column" +
             (t.table.head.empty() || t.head(c).empty() ? " has no name and" : ", " + t.named(c) + ",") +
             (counts_lines(t.values[c]) ? " counts the lines; it is left out"
                                        : " holds numbers of bands; it is left out"));
}

/// A first column whose name does not say what it is.
void judge_first(Columns& t, size_t c, bool placed) {
    const Column& column = t.values[c];
    if (!t.all_numbers(c)) return;
    const bool named = !t.table.head.empty() && !t.head(c).empty();
    const bool number = !named || says_number(t.head(c));
    if (placed && !number) return;
    constexpr size_t enough = 3; // of fewer numbers it says nothing that they rise
    if (counts_lines(column) ||
        (number && column.size() >= enough && direction(column) != 0 && are_numbers_of_bands(column)))
        return take_numbers(t, c);
    if (placed || !are_possible_wavelengths(column)) return;
    Column others;
    for (size_t k = c + 1; k < t.values.size(); ++k)
        others.insert(others.end(), t.values[k].begin(), t.values[k].end());
    if (number || are_likely_wavelengths(column, others)) {
        take_wavelengths(t, c, {});
        if (named)
            note(t.library, t.path,
                 "the first column, " + t.named(c) + ", " + (direction(column) > 0 ? "rises" : "falls") +
                     " as wavelengths do and is taken for them, in " + t.unit);
    } else {
        note(t.library, t.path,
             "the first column, " + t.named(c) +
                 ", rises or falls from line to line and is taken for a spectrum; call it wavelength if it "
                 "holds the wavelengths");
    }
}

/// Finds the columns that are no spectra.
void find_axis(Columns& t) {
    const size_t count = t.values.size();
    const auto& head = t.table.head;
    size_t first = 0; // the first column that may be the wavelengths
    if (!head.empty())
        for (size_t c = 0; c < std::min<size_t>(2, count); ++c)
            if (EQUAL(head[c].c_str(), "band") && t.all_numbers(c) &&
                (are_numbers_of_bands(t.values[c]) ||
                 (are_whole(t.values[c]) && c + 1 < count && EQUAL(head[c + 1].c_str(), "wavelength")))) {
                take_numbers(t, c);
                first = c + 1;
                break;
            }
    bool placed = !t.library.wavelengths_nm.empty();
    for (size_t c = 0; c < count && !head.empty() && !placed; ++c) {
        const Said said = says_wavelengths(head[c]);
        if (t.used[c] || said == Said::nothing) continue;
        // A word that may be a spectrum's name, too, must stand in front and rise or fall.
        if (said == Said::perhaps && (c > first || !t.all_numbers(c) || direction(t.values[c]) == 0))
            continue;
        if (t.text_in(c)) refuse_text(t, c);
        take_wavelengths(t, c, unit_in(head[c]));
        placed = true;
    }
    for (size_t c = 0; c < std::min<size_t>(2, count) && count > 1 && first == 0; ++c) {
        if (t.used[c]) break;
        judge_first(t, c, placed);
        placed |= !t.library.wavelengths_nm.empty();
        if (!t.used[c] || placed) break;
    }
}

/// Widths, and bands that are marked as bad: the first column of each kind.
void find_columns_beside(Columns& t, std::vector<bool>& bad) {
    bool widths = false, marks = false;
    for (size_t c = 0; c < t.table.head.size(); ++c) {
        if (t.used[c]) continue;
        const TableColumn kind = table_column(t.head(c));
        if (kind == TableColumn::widths && !widths) {
            if (t.text_in(c)) refuse_text(t, c);
            widths = t.used[c] = true;
            std::string unit = unit_in(t.head(c));
            if (unit.empty()) unit = t.unit.empty() ? "nm" : t.unit;
            t.library.fwhm_nm = t.values[c];
            if (unit == "cm-1")
                t.library.fwhm_nm.clear(); // no width in nanometres
            else
                library_to_nm(t.library.fwhm_nm, unit);
        } else if (kind == TableColumn::marks && !marks) {
            marks = t.used[c] = true;
            for (size_t r = 0; r < bad.size(); ++r)
                bad[r] = t.values[c][r] == 0 || EQUAL(t.table.rows[r][c].c_str(), "false");
        }
    }
}

SpectralLibrary library_of_columns(const std::string& path, const TextTable& table) {
    Columns t{path, table, {}, {}, std::vector<bool>(table.columns()), {}};
    t.values.resize(table.columns());
    for (const auto& row : table.rows)
        for (size_t c = 0; c < row.size(); ++c)
            t.values[c].push_back(cell_number(row[c]));
    find_axis(t);
    std::vector<bool> bad(table.rows.size());
    find_columns_beside(t, bad);
    SpectralLibrary library = std::move(t.library);
    for (size_t c = 0; c < t.values.size(); ++c) {
        if (t.used[c]) continue;
        if (t.text_in(c)) refuse_text(t, c);
        auto& spectrum = library.spectra.emplace_back(std::move(t.values[c]));
        library.names.push_back(table.head.empty() ? "Spectrum " + std::to_string(library.spectra.size())
                                                   : table.head[c]);
        for (size_t b = 0; b < spectrum.size(); ++b) {
            library.missing += std::isnan(spectrum[b]);
            if (bad[b]) spectrum[b] = no_library_value;
        }
    }
    if (library.spectra.empty()) refuse_library(path, "holds no spectrum");
    // Numbers of bands are in the file's order.
    for (size_t c = 0; c < std::min<size_t>(2, table.head.size()); ++c)
        if (t.used[c] && EQUAL(table.head[c].c_str(), "band") && library.wavelengths_nm.empty() &&
            table.rows.size() > 1 && direction(t.values[c]) != 1)
            refuse_library(path, "its lines are not in the order of the column band");
    return library;
}

/// A name of a column as a band: 450, X450.5 (R), wl_450, 450nm, 0.45 um; or b12, "Band 12".
struct BandName {
    double value = no_library_value;
    std::string unit;
    bool number = false; ///< of a band
};

BandName band_name(const std::string& head) {
    BandName name;
    name.value = cell_number(head);
    if (std::isfinite(name.value)) return name;
    const size_t digit = head.find_first_of("0123456789");
    if (digit == std::string::npos) return name;
    const size_t end = head.find_first_not_of("0123456789.,", digit);
    name.value = cell_number(head.substr(digit, std::min(end, head.size()) - digit));
    if (!std::isfinite(name.value)) return name;
    std::string before = lower(head.substr(0, digit));
    while (!before.empty() && std::string(" _-.([").find(before.back()) != std::string::npos)
        before.pop_back();
    std::string after = end == std::string::npos ? std::string() : lower(head.substr(end));
    std::erase_if(after, [](char c) { return std::string(" _-.()[]").find(c) != std::string::npos; });
    name.unit = unit_of(after);
    name.number = after.empty() && one_of(before, {"b", "band", "ch", "channel"});
    const bool wavelength = before.empty() || is_wavelength_word(before) || !unit_of(before).empty() ||
                            one_of(before, {"x", "w", "r", "refl", "reflectance"});
    if ((!after.empty() && name.unit.empty()) || (!wavelength && !name.number)) name.value = no_library_value;
    return name;
}

/// Columns from `begin` to before `end` that are called by their bands.
struct Run {
    size_t begin = 0, end = 0;
    size_t size() const { return end - begin; }
};

/// The longest run of names that rise or fall as wavelengths of a sensor do (spectrometers overlap: one step
/// of ten may go back), or count bands.
Run longest_run(const std::vector<BandName>& names) {
    Run best;
    for (size_t begin = 0; begin < names.size();) {
        size_t end = begin;
        while (end < names.size() && std::isfinite(names[end].value) &&
               names[end].number == names[begin].number)
            ++end;
        if (end - begin > std::max<size_t>(best.size(), 1)) {
            size_t up = 0, down = 0, next = 0;
            double low = names[begin].value, high = low;
            for (size_t c = begin + 1; c < end; ++c) {
                const double step = names[c].value - names[c - 1].value;
                up += step > 0;
                down += step < 0;
                next += step == 1;
                low = std::min(low, names[c].value);
                high = std::max(high, names[c].value);
            }
            const size_t steps = end - begin - 1;
            const bool placed = low >= 100 || (low >= 0.1 && high < 250);
            if (names[begin].number ? next == steps : placed && 10 * std::max(up, down) >= 9 * steps)
                best = {begin, end};
        }
        begin = std::max(end, begin + 1);
    }
    return best;
}

/// All numbers in the columns from `begin` on.
Column numbers_behind(const TextTable& table, size_t begin) {
    Column all;
    for (const auto& row : table.rows)
        for (size_t c = begin; c < row.size(); ++c)
            all.push_back(cell_number(row[c]));
    return all;
}

/// Whether a table with such names of columns is one of columns all the same: the spectra are called by
/// numbers, and wavelengths or numbers of bands stand in front.
bool has_axis_in_front(const TextTable& table) {
    for (size_t c = 0; c < std::min<size_t>(2, table.columns()); ++c) {
        Column column;
        for (const auto& row : table.rows)
            column.push_back(cell_number(row[c]));
        const bool whole =
            std::all_of(column.begin(), column.end(), [](double v) { return std::isfinite(v); });
        if (EQUAL(table.head[c].c_str(), "band") && whole) return true;
        const auto words = words_of(table.head[c]);
        if (!whole) continue;
        if (counts_lines(column)) {
            if (!words.empty() &&
                one_of(words.front(), {"band", "bands", "channel", "channels", "chan", "ch"}))
                return true;
            continue;
        }
        if (says_wavelengths(table.head[c]) == Said::plainly && direction(column) != 0) return true;
        if (c == 0 && are_likely_wavelengths(column, numbers_behind(table, 1))) return true;
    }
    return false;
}

/// The column that names the lines: one that is called so, else the first that holds a text.
size_t column_of_names(const TextTable& table, const Run& run) {
    const auto is_text = [&](size_t c) {
        return std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
            return !is_empty_cell(row[c]) && !std::isfinite(cell_number(row[c]));
        });
    };
    const auto outside = [&](size_t c) { return c < run.begin || c >= run.end; };
    for (const char* word : {"name", "names", "spectrum", "spectra", "sample", "label", "title", "id"})
        for (size_t c = 0; c < table.columns(); ++c) {
            const auto words = words_of(table.head[c]);
            if (outside(c) && std::find(words.begin(), words.end(), word) != words.end() && is_text(c))
                return c;
        }
    for (size_t c = 0; c < table.columns(); ++c)
        if (outside(c) && is_text(c)) return c;
    return outside(0) ? 0 : table.columns();
}

/// A line a spectrum; nothing when the table is none of these. known: the head is one of wavelengths.
std::optional<SpectralLibrary> library_of_rows(const TextTable& table, bool known) {
    if (table.head.empty()) return std::nullopt;
    std::vector<BandName> names;
    for (const auto& head : table.head)
        names.push_back(band_name(head));
    const Run run = longest_run(names);
    if (run.size() < 2 || (!known && has_axis_in_front(table))) return std::nullopt;
    SpectralLibrary library;
    const size_t called = column_of_names(table, run);
    for (const auto& row : table.rows) {
        std::string name = called < row.size() ? row[called] : std::string();
        if (name.empty()) name = "Spectrum " + std::to_string(library.names.size() + 1);
        auto& spectrum = library.spectra.emplace_back();
        for (size_t c = run.begin; c < run.end; ++c) {
            spectrum.push_back(cell_number(row[c]));
            if (std::isnan(spectrum.back()) && !is_empty_cell(row[c])) return std::nullopt;
            library.missing += std::isnan(spectrum.back());
        }
        library.names.push_back(std::move(name));
    }
    if (names[run.begin].number) return library;
    std::string unit = names[run.begin].unit;
    if (unit.empty() && run.begin > 0) unit = unit_in(table.head[run.begin - 1]);
    for (size_t c = run.begin; c < run.end; ++c)
        library.wavelengths_nm.push_back(names[c].value);
    library_to_nm(library.wavelengths_nm, unit);
    return library;
}

/// A table of numbers alone may have the wavelengths in its first line: then that is the head.
bool find_head_of_numbers(TextTable& table) {
    if (!table.head.empty() || table.rows.size() < 2 || table.columns() < 3) return false;
    Column first, across;
    for (const auto& row : table.rows)
        first.push_back(cell_number(row.front()));
    for (const auto& cell : table.rows.front())
        across.push_back(cell_number(cell));
    Column others;
    for (size_t r = 1; r < table.rows.size(); ++r)
        for (const auto& cell : table.rows[r])
            others.push_back(cell_number(cell));
    if (are_possible_wavelengths(first) || counts_lines(first) || !are_likely_wavelengths(across, others))
        return false;
    table.head = table.rows.front();
    table.rows.erase(table.rows.begin());
    return true;
}

} // namespace

TableColumn table_column(const std::string& name) {
    const auto words = words_of(name);
    bool width = false, full = false;
    for (const auto& word : words) {
        if (one_of(word, {"fwhm", "bandwidth", "bandwidths", "bandpass"})) {
            width = true;
        } else if (one_of(word, {"width", "widths"})) {
            full = true;
        } else if (unit_of(word).empty() &&
                   !one_of(word, {"full", "at", "half", "max", "maximum", "band", "spectral", "in"})) {
            return words.size() == 1 && one_of(word, {"bbl"}) ? TableColumn::marks : TableColumn::spectrum;
        }
    }
    return width || full ? TableColumn::widths : TableColumn::spectrum;
}

SpectralLibrary read_library_table(const std::string& path, const std::string& text) {
    TextTable table = read_text_table(path, text);
    const bool known = find_head_of_numbers(table);
    if (auto library = library_of_rows(table, known)) return std::move(*library);
    return library_of_columns(path, table);
}

} // namespace hsi::raster
