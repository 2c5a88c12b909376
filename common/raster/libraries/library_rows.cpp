// SPDX-License-Identifier: MIT
// Spectral libraries as tables of text that have a line a spectrum: the columns are called by their bands.
#include "raster/libraries/library_rows.h"

#include "core/error.h"
#include "raster/libraries/table_axis.h"
#include "raster/metadata/scene_metadata.h"

#include <cpl_string.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace hsi::raster {
namespace {

/// A name of a column as a band: 450, X450.5 (R), wl_450, 450nm, 0.45 um; or b12, "Band 12".
struct BandName {
    double value = no_library_value;
    std::string unit;
    bool number = false; ///< of a band
    bool marked = false; ///< as a wavelength, by a word or a unit
};

BandName band_name(std::string head) {
    BandName name;
    const bool wavenumber = take_wavenumber_unit(head);
    name.marked = wavenumber;
    if (wavenumber) name.unit = "cm-1";
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
    if (!wavenumber) name.unit = before == "wn" ? "cm-1" : unit_of(after);
    name.marked = !name.unit.empty() || is_wavelength_word(before);
    name.number = after.empty() && one_of(before, {"b", "band", "ch", "channel"});
    const bool wavelength = before.empty() || is_wavelength_word(before) || !unit_of(before).empty() ||
                            one_of(before, {"x", "w", "wn", "r", "refl", "reflectance"});
    if ((!after.empty() && unit_of(after).empty()) || (!wavelength && !name.number))
        name.value = no_library_value;
    return name;
}

/// Columns from `begin` to before `end` that are called by their bands.
struct Run {
    size_t begin = 0, end = 0;
    size_t size() const { return end - begin; }
};

/// Whether names from `begin` to before `end` are wavelengths in any order, none twice.
bool are_places(const std::vector<BandName>& names, size_t begin, size_t end, bool any) {
    std::set<double> seen;
    for (size_t c = begin; c < end; ++c)
        if ((!any && !names[c].marked) || !seen.insert(names[c].value).second) return false;
    return true;
}

/// The longest run of names that rise or fall as wavelengths of a sensor do (spectrometers overlap: one step
/// of ten may go back), or count bands. In any order they may be where a word or a unit marks them all, or
/// where, `in_lines`, texts in front of the numbers tell that spectra are lines.
Run longest_run(const std::vector<BandName>& names, bool in_lines) {
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
            if (names[begin].number ? next == steps
                                    : placed && (10 * std::max(up, down) >= 9 * steps ||
                                                 are_places(names, begin, end, in_lines)))
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

/// The column `class`, where it is not that of the names, or none.
size_t column_of_classes(const TextTable& table, const Run& run, size_t called) {
    for (size_t c = 0; c < table.columns(); ++c)
        if (c != called && (c < run.begin || c >= run.end) && EQUAL(table.head[c].c_str(), "class")) return c;
    return table.columns();
}

/// What a line holds that is no spectrum: the wavelengths once more, their widths, marks of bad bands.
bool take_line_beside(const std::string& path, const std::string& name, const Column& values,
                      SpectralLibrary& library, Column& marks, const std::string& unit) {
    const TableColumn kind = table_column(name);
    const Said said = says_wavelengths(name);
    if (kind == TableColumn::marks) {
        marks = values;
    } else if (kind == TableColumn::widths) {
        library.fwhm_nm = values;
        const std::string own = unit_in(name);
        widths_to_nm(library, path, !own.empty() ? own : !unit.empty() ? unit : "nm");
    } else if (said == Said::plainly || said == Said::perhaps) {
        Column nm = values;
        library_to_nm(nm, unit_in(name));
        const double same = share_of_same(library.wavelengths_nm, nm);
        constexpr double most = 0.5;
        if (same < most && !are_possible_wavelengths(values)) return false;
        if (same < 1)
            throw Error("'" + path + "': the line '" + name +
                            "' contradicts the wavelengths that the columns are called by",
                        "Take the wrong ones out.");
        note(library, path, "the line '" + name + "' holds the wavelengths once more; it is left out");
    } else {
        return false;
    }
    return true;
}

/// Whether texts stand in front of the numbers of all lines: then they are spectra with their names.
bool are_lines_with_names(const TextTable& table) {
    return std::all_of(table.rows.begin(), table.rows.end(), [](const auto& row) {
        return !row.empty() && !is_empty_cell(row.front()) && !std::isfinite(cell_number(row.front()));
    });
}

} // namespace

std::optional<SpectralLibrary> library_of_rows(const std::string& path, const TextTable& table, bool known) {
    if (table.head.empty()) return std::nullopt;
    std::vector<BandName> names;
    for (const auto& head : table.head)
        names.push_back(band_name(head));
    const Run run = longest_run(names, are_lines_with_names(table));
    if (run.size() < 2 || (!known && has_axis_in_front(table))) return std::nullopt;
    SpectralLibrary library;
    std::string unit = names[run.begin].unit;
    if (unit.empty() && run.begin > 0) unit = unit_in(table.head[run.begin - 1]);
    if (!names[run.begin].number) {
        for (size_t c = run.begin; c < run.end; ++c)
            library.wavelengths_nm.push_back(names[c].value);
        wavelengths_to_nm(library, path, unit);
    }
    const size_t called = column_of_names(table, run);
    const size_t classes = column_of_classes(table, run, called);
    Column marks;
    for (size_t r = 0; r < table.rows.size(); ++r) {
        const auto& row = table.rows[r];
        const std::vector<std::string> cells(row.begin() + static_cast<std::ptrdiff_t>(run.begin),
                                             row.begin() + static_cast<std::ptrdiff_t>(run.end));
        Column spectrum = spectrum_numbers(path, "spectrum " + std::to_string(r + 1), cells);
        for (size_t b = 0; b < cells.size(); ++b)
            if (std::isnan(spectrum[b]) && !is_empty_cell(cells[b])) return std::nullopt;
        std::string name = called < row.size() ? row[called] : std::string();
        if (!library.wavelengths_nm.empty() && take_line_beside(path, name, spectrum, library, marks, unit))
            continue;
        if (name.empty()) name = "Spectrum " + std::to_string(library.names.size() + 1);
        library.missing += static_cast<size_t>(
            std::count_if(spectrum.begin(), spectrum.end(), [](double v) { return std::isnan(v); }));
        library.spectra.push_back(std::move(spectrum));
        library.names.push_back(std::move(name));
        if (classes < row.size()) library.classes.push_back(row[classes]);
    }
    if (library.spectra.empty()) refuse_library(path, "holds no spectrum");
    for (auto& spectrum : library.spectra)
        for (size_t b = 0; b < marks.size(); ++b)
            if (marks[b] == 0) spectrum[b] = no_library_value;
    return library;
}

} // namespace hsi::raster
