// SPDX-License-Identifier: MIT
// Spectral libraries as text tables: finds the meaning of each column.
#include "core/counted.h"
#include "core/error.h"
#include "raster/libraries/library_formats.h"
#include "raster/libraries/library_rows.h"
#include "raster/libraries/table_axis.h"
#include "raster/libraries/text_table.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <algorithm>
#include <cmath>

namespace hsi::raster {
namespace {

/// The columns of a table, while their meanings are determined.
struct Columns {
    const std::string& path;
    const TextTable& table;
    std::vector<Column> values;
    SpectralLibrary library;
    std::vector<bool> used;
    /// The unit of the wavelengths, if stated outside the column name.
    std::string stated;
    /// The unit of the wavelengths; empty if the table has no column of wavelengths.
    std::string unit;
    std::optional<size_t> axis;    ///< index of the column of wavelengths
    std::optional<size_t> numbers; ///< index of the column of band numbers
    /// True for each column in per cent; empty if no column is in per cent.
    const std::vector<bool>& percent;

    const std::string& head(size_t c) const { return table.head[c]; }
    std::string named(size_t c) const {
        return table.head.empty() || head(c).empty() ? "which has no name" : "'" + head(c) + "'";
    }
    /// Returns a cell of the column that contains a text; null if all cells are numbers or empty.
    const std::string* text_in(size_t c) const {
        for (size_t r = 0; r < table.rows.size(); ++r)
            if (std::isnan(values[c][r]) && !is_empty_cell(table.rows[r][c])) return &table.rows[r][c];
        return nullptr;
    }
    bool has_number(size_t c) const {
        return std::any_of(values[c].begin(), values[c].end(), [](double v) { return std::isfinite(v); });
    }
    /// Returns whether a gdal_hsi tool wrote the table. All columns after the second are then spectra,
    /// whatever their names are.
    bool own() const { return table.head.size() > 1 && head(0) == "band" && head(1) == "wavelength"; }
    bool all_numbers(size_t c) const {
        return std::all_of(values[c].begin(), values[c].end(), [](double v) { return std::isfinite(v); });
    }
};

/// Refuses a table with text in column `c`: it may contain only the metadata of a library, or be a transposed
/// table without wavelengths.
[[noreturn]] void refuse_text(const Columns& t, size_t c) {
    std::string what = "the column " + (t.table.head.empty() ? std::to_string(c + 1) : t.head(c)) +
                       " has a value that is not a number ('" + *t.text_in(c) + "')";
    if (const std::string sli = CPLResetExtension(t.path.c_str(), "sli"); sli != t.path && is_there(sli))
        what += "; the spectra are in " + sli;
    else if (c == 0)
        what += "; a table with one spectrum per line needs wavelengths as column names";
    refuse_library(t.path, what);
}

void take_wavelengths(Columns& t, size_t c, const std::string& unit) {
    t.used[c] = true;
    t.axis = c;
    t.library.wavelengths_nm = t.values[c];
    t.unit = wavelengths_to_nm(t.library, t.path, !unit.empty() ? unit : t.own() ? "nm" : t.stated);
}

void take_numbers(Columns& t, size_t c) {
    t.used[c] = true;
    t.numbers = c;
    if (!t.table.head.empty() && EQUAL(t.head(c).c_str(), "band")) // gdal_hsi tools write this name
        return take_band_numbers(t.library, t.values[c], false);
    note(t.library, t.path,
         "the first column" +
             (t.table.head.empty() || t.head(c).empty() ? " has no name and" : ", " + t.named(c) + ",") +
             (counts_lines(t.values[c]) ? " counts the lines; it is ignored"
                                        : " has band numbers; it is ignored"));
}

/// Returns whether the first column contains band numbers and not wavelengths. The column has no name, or a
/// name for numbers. It contains band numbers if it counts from 0 or 1. Other whole numbers may be
/// wavelengths in steps of 1 nm, or in whole micrometres. `placed`: the wavelengths are in another column.
/// \throws Error if the meaning cannot be decided.
bool holds_numbers_of_bands(const Columns& t, size_t c, bool placed) {
    const Column& column = t.values[c];
    if (counts_lines(column)) return true;
    const bool named = !t.table.head.empty() && !t.head(c).empty();
    // Fewer than three numbers may rise by chance.
    constexpr size_t enough = 3;
    if ((named && !says_number(t.head(c))) || column.size() < enough || direction(column) == 0 ||
        !are_whole(column))
        return false;
    if (placed) return true;
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    const bool band = named && says_band(t.head(c));
    const bool spaced = *high - *low >= 2 * static_cast<double>(column.size() - 1);
    const bool possible = are_possible_wavelengths(column), micrometres = *low > 1 && *high < 100;
    if ((possible && band && !spaced) || (micrometres && !named))
        throw Error("'" + t.path + "': the first column, " + t.named(c) + ", has whole numbers from " +
                        CPLSPrintf("%.9g to %.9g", *low, *high) +
                        ", which may be band numbers or wavelengths",
                    "Call the column wavelength_nm or wavelength_um, or remove it if the lines are in the "
                    "order of the scene's bands.");
    return !possible;
}

/// Decides the meaning of a first column whose name does not state the meaning.
void judge_first(Columns& t, size_t c, bool placed) {
    const Column& column = t.values[c];
    if (!t.all_numbers(c)) return;
    if (!t.stated.empty() && !placed && never_turns(column) && !counts_lines(column))
        return take_wavelengths(t, c, {});
    const bool named = !t.table.head.empty() && !t.head(c).empty();
    const bool number = !named || says_number(t.head(c));
    if (placed && !number) return;
    if (holds_numbers_of_bands(t, c, placed)) return take_numbers(t, c);
    if (placed || !are_possible_wavelengths(column)) return;
    Column others;
    for (size_t k = c + 1; k < t.values.size(); ++k)
        others.insert(others.end(), t.values[k].begin(), t.values[k].end());
    const bool called = named && says_wavelengths(t.head(c)) == Said::of_one;
    if (((number || called) && direction(column) != 0) || are_likely_wavelengths(column, others)) {
        const std::string unit = named ? stated_unit(t.head(c)) : std::string();
        const auto [low, high] = std::minmax_element(column.begin(), column.end());
        take_wavelengths(t, c, unit.empty() ? chosen_unit("", *low, *high).unit->symbol : unit);
        note(t.library, t.path,
             "the first column, " + t.named(c) + ", " + (column.front() < column.back() ? "rises" : "falls") +
                 " as wavelengths do and is read as the wavelengths" +
                 (t.unit.empty() ? "" : ", in " + t.unit));
    } else if (direction(column) != 0) {
        note(t.library, t.path,
             "the first column, " + t.named(c) +
                 ", rises or falls from line to line and is read as a spectrum; if it has the wavelengths, "
                 "call it wavelength");
    }
}

[[noreturn]] void refuse_axes(const Columns& t, size_t c) {
    throw Error("'" + t.path + "': the columns " + std::to_string(*t.axis + 1) + " (" + t.named(*t.axis) +
                    ") and " + std::to_string(c + 1) + " (" + t.named(c) + ") have different wavelengths",
                "Interpolate all spectra to the same wavelengths, write one file per spectrum, or remove the "
                "wrong column.");
}

/// Leaves out further columns of wavelengths, which are not spectra. Such columns repeat the wavelengths in
/// another unit, or before each spectrum. \throws Error if a column contradicts the first column of
/// wavelengths.
void leave_out_further_axes(Columns& t) {
    if (!t.axis) return;
    const size_t a = *t.axis;
    const auto& head = t.table.head;
    std::string others;
    for (size_t c = 0; c < t.values.size(); ++c) {
        if (t.used[c] || t.text_in(c)) continue;
        // In tables of gdal_hsi tools, spectra may have any name.
        if (t.own() && stated_unit(head[c]).empty()) continue;
        const bool named = !t.table.head.empty();
        Said said = named ? says_wavelengths(t.head(c)) : Said::nothing;
        if (said == Said::nothing && named && !t.head(c).empty() &&
            EQUAL(t.head(c).c_str(), t.head(a).c_str()))
            said = Said::of_one;
        const bool other = said == Said::plainly && is_other_axis(t.head(c));
        if (t.unit.empty() && !other) continue;
        Column nm = t.values[c], numbers = nm;
        std::erase_if(numbers, [](double v) { return !std::isfinite(v); });
        const bool possible = are_possible_wavelengths(numbers);
        library_to_nm(nm, named ? stated_unit(t.head(c)) : std::string());
        const double same = share_of_same(t.library.wavelengths_nm, nm);
        if (said == Said::nothing) {
            // A column with another name contains wavelengths only if it repeats the numbers of the
            // wavelengths, and if these numbers are too large for a spectrum.
            if (!possible || t.values[c] != t.values[a] || numbers.front() < 200) continue;
        } else if (same < 1 && !other) { // a spectrum may be called "wavelength", but its numbers differ
            constexpr double most = 0.5;
            if (possible || same >= most) refuse_axes(t, c);
            continue;
        }
        t.used[c] = true;
        others +=
            (others.empty() ? "" : ", ") + std::to_string(c + 1) + (named ? " (" + t.named(c) + ")" : "");
    }
    if (!others.empty())
        note(t.library, t.path, "has the wavelengths several times; ignored: column " + others);
}

/// Refuses tables in which every spectrum has its own column of wavelengths, judged by the numbers of every
/// other column.
void refuse_pairs(const Columns& t) {
    if (!t.axis) return;
    size_t other = 0; // index of the last column with further wavelengths
    for (size_t c = *t.axis + 1; c < t.values.size(); ++c) {
        const bool in_front = (c - *t.axis) % 2 == 0;
        if (t.used[c]) {
            if (!in_front) return;
            continue;
        }
        Column numbers = t.values[c];
        std::erase_if(numbers, [](double v) { return !std::isfinite(v); });
        const bool axis = are_possible_wavelengths(numbers) &&
                          (t.table.head.empty() || t.head(c).empty() || have_even_steps(numbers));
        if (axis != in_front) return;
        if (in_front) other = c;
    }
    if (other > 0 && (t.values.size() - *t.axis) % 2 == 0) refuse_axes(t, other);
}

/// Leaves out columns of numbers that count rows or identify samples. A column before the wavelengths may
/// have any name; after the wavelengths, its name must state this meaning.
void leave_out_numbers(Columns& t) {
    if (!t.axis) return;
    for (size_t c = 0; c < t.values.size(); ++c) {
        const Column& column = t.values[c];
        constexpr size_t enough = 3;
        if (t.used[c] || column.size() < enough || !t.all_numbers(c) || !are_whole(column)) continue;
        const bool named = !t.table.head.empty() && !t.head(c).empty(), in_front = c < *t.axis;
        const bool called = !named || says_number(t.head(c)) || says_sample(t.head(c));
        const bool counts = counts_lines(column);
        const bool one = std::count(column.begin(), column.end(), column.front()) ==
                         static_cast<std::ptrdiff_t>(column.size());
        if (counts ? !in_front && !called
                   : !in_front || !named || !called || (direction(column) == 0 && !one))
            continue;
        t.used[c] = true;
        note(t.library, t.path,
             "column " + std::to_string(c + 1) + ", " + t.named(c) +
                 (counts ? ", counts the lines; it is ignored" : ", has sample numbers; it is ignored"));
    }
}

/// Finds the columns of the wavelengths and of the band numbers.
void find_axis(Columns& t) {
    const size_t count = t.values.size();
    const auto& head = t.table.head;
    size_t first = 0; // the first column that may contain the wavelengths
    const bool told = std::any_of(head.begin(), head.end(), [](const std::string& name) {
        return says_wavelengths(name) == Said::plainly;
    });
    if (!head.empty())
        for (size_t c = 0; c < std::min<size_t>(2, count); ++c)
            if (EQUAL(head[c].c_str(), "band") && t.all_numbers(c) && are_whole(t.values[c]) &&
                (told || !are_possible_wavelengths(t.values[c]))) {
                take_numbers(t, c);
                first = c + 1;
                break;
            }
    // Quantities that cannot be converted to wavelengths are used only if there is no other column.
    for (const bool other : {false, true})
        for (size_t c = 0; c < count && !head.empty() && !t.axis; ++c) {
            const Said said = says_wavelengths(head[c]);
            if (t.used[c] || said == Said::nothing || said == Said::of_one || is_other_axis(head[c]) != other)
                continue;
            // A column whose name could also be the name of a spectrum must be the first one, and must rise
            // or fall.
            if (said == Said::perhaps && (c > first || !t.all_numbers(c) || !never_turns(t.values[c])))
                continue;
            if (t.text_in(c)) refuse_text(t, c);
            take_wavelengths(t, c, stated_unit(head[c]));
        }
    for (size_t c = 0; c < std::min<size_t>(2, count) && count > 1 && first == 0; ++c) {
        if (t.used[c]) break;
        judge_first(t, c, t.axis.has_value());
        if (!t.used[c] || t.axis) break;
    }
}

/// Finds the first column of FWHM and the first bad band list. Sets `bad` for each row that the list marks as
/// bad.
void find_columns_beside(Columns& t, std::vector<bool>& bad) {
    bool widths = false, marks = false;
    for (size_t c = 0; c < t.table.head.size(); ++c) {
        if (t.used[c]) continue;
        const TableColumn kind = table_column(t.head(c));
        if (kind == TableColumn::widths && !widths) {
            if (t.text_in(c)) refuse_text(t, c);
            widths = t.used[c] = true;
            std::string unit = stated_unit(t.head(c));
            if (unit.empty()) unit = t.unit.empty() ? "nm" : t.unit;
            t.library.fwhm_nm = t.values[c];
            widths_to_nm(t.library, t.path, unit);
        } else if (kind == TableColumn::marks && !marks) {
            marks = t.used[c] = true;
            for (size_t r = 0; r < bad.size(); ++r)
                bad[r] = t.values[c][r] == 0 || EQUAL(t.table.rows[r][c].c_str(), "false");
        }
    }
}

/// Finds the unit of the wavelengths in a column that states the unit in each row.
void take_unit(Columns& t) {
    t.stated = t.table.unit;
    for (size_t c = 0; c < t.table.head.size(); ++c)
        if (const std::string unit = stated_unit_of_column(t.table, c); !unit.empty()) {
            t.stated = unit;
            t.used[c] = true;
        }
}

size_t distinct(Column column) {
    std::sort(column.begin(), column.end());
    return static_cast<size_t>(std::unique(column.begin(), column.end()) - column.begin());
}

/// Refuses a table in long format: one value per row, with the bands repeated for every spectrum. The error
/// explains how to convert the table.
void refuse_long_format(const Columns& t) {
    if (!t.axis && !t.numbers) return;
    const size_t a = t.axis ? *t.axis : *t.numbers;
    const Column& column = t.values[a];
    const size_t bands = distinct(column), rows = column.size();
    if (bands < 2 || rows < 2 * bands) return;
    // If bands repeat from row to row, another column identifies the spectra.
    std::optional<size_t> texts;
    for (size_t c = 0; c < t.values.size() && !texts; ++c)
        if (c != a && !t.has_number(c)) texts = c;
    if (never_turns(column) && !texts) return;
    const std::string axis = t.table.head.empty() ? std::to_string(a) : t.head(a);
    const std::string names = texts && !t.table.head.empty() ? t.head(*texts) : "name";
    const std::string value = t.table.head.empty() ? "value" : t.table.head.back();
    throw Error("'" + t.path + "' is in long format: each row has one value of one spectrum, and its " +
                    counted(bands, "wavelength or band", "wavelengths or bands") + " repeat in " +
                    counted(rows, "row"),
                "Give each spectrum a separate column, as pandas does: table.pivot(index='" + axis +
                    "', columns='" + names + "', values='" + value + "').to_csv('wide.csv').");
}

/// Leaves out columns of statistics (Std, N, "soil Std") if other spectra remain.
void leave_out_statistics(Columns& t) {
    if (t.own() || t.table.head.empty()) return;
    std::vector<size_t> spectra;
    std::vector<std::string> names;
    std::vector<Column> values;
    for (size_t c = 0; c < t.values.size(); ++c) {
        if (t.used[c] || !t.has_number(c)) continue;
        spectra.push_back(c);
        names.push_back(t.head(c));
        values.push_back(t.values[c]);
    }
    const auto found = statistics_among(names, values);
    for (size_t k = 0; k < found.size(); ++k) {
        if (!found[k]) continue;
        t.used[spectra[k]] = true;
        note(t.library, t.path, "the column " + t.named(spectra[k]) + " is a statistic; it is ignored");
    }
}

/// Leaves out columns that contain only text, if the table has wavelengths or band numbers.
void leave_out_texts(Columns& t) {
    if (!t.axis && !t.numbers) return;
    std::string texts;
    for (size_t c = 0; c < t.values.size(); ++c) {
        if (t.used[c] || !t.text_in(c) || t.has_number(c)) continue;
        t.used[c] = true;
        texts += (texts.empty() ? "" : ", ") + std::to_string(c + 1) +
                 (t.table.head.empty() ? "" : " (" + t.named(c) + ")");
    }
    if (!texts.empty()) note(t.library, t.path, "has texts, which are ignored: column " + texts);
}

void read_column(Columns& t, size_t c) {
    std::vector<std::string> cells;
    for (const auto& row : t.table.rows)
        cells.push_back(row[c]);
    t.values[c] = spectrum_numbers(t.path, "column " + std::to_string(c + 1), cells);
    if (c < t.percent.size() && t.percent[c])
        for (size_t r = 0; r < cells.size(); ++r)
            if (std::isnan(percent_number(cells[r]))) t.values[c][r] /= 100;
}

SpectralLibrary library_of_columns(const std::string& path, const TextTable& table,
                                   const std::vector<bool>& percent, bool bands_alone = false) {
    Columns t{path, table, {}, {}, std::vector<bool>(table.columns()), {}, {}, {}, {}, percent};
    t.values.resize(table.columns());
    for (size_t c = 0; c < table.columns(); ++c)
        read_column(t, c);
    take_unit(t);
    find_axis(t);
    refuse_long_format(t);
    std::vector<bool> bad(table.rows.size());
    find_columns_beside(t, bad);
    leave_out_further_axes(t);
    if (!t.own()) {
        leave_out_numbers(t);
        refuse_pairs(t);
        leave_out_statistics(t);
        leave_out_texts(t);
    }
    SpectralLibrary library = std::move(t.library);
    for (size_t c = 0; c < t.values.size(); ++c) {
        if (t.used[c] || (bands_alone && t.text_in(c))) continue;
        if (t.text_in(c)) refuse_text(t, c);
        auto& spectrum = library.spectra.emplace_back(std::move(t.values[c]));
        library.names.push_back(table.head.empty() ? "Spectrum " + std::to_string(library.spectra.size())
                                                   : table.head[c]);
        for (size_t b = 0; b < spectrum.size(); ++b) {
            library.missing += std::isnan(spectrum[b]);
            if (bad[b]) spectrum[b] = no_library_value;
        }
    }
    if (library.spectra.empty() && !bands_alone) refuse_library(path, "has no spectra");
    // Without wavelengths, the band numbers must ascend, because spectra are used in the order of the rows.
    if (t.numbers && library.wavelengths_nm.empty() && table.rows.size() > 1 &&
        direction(t.values[*t.numbers]) != 1)
        refuse_library(path,
                       "its lines are not in ascending order of the column " +
                           (table.head.empty() || t.head(*t.numbers).empty() ? std::to_string(*t.numbers + 1)
                                                                             : t.head(*t.numbers)));
    return library;
}

/// Returns the unit of wavelengths in a cell such as "nm", "[um]" or "(A)"; empty if the cell does not
/// contain a unit.
std::string unit_in_cell(const std::string& cell) {
    std::string text = cell;
    std::erase_if(text, [](char c) { return std::string("[]() ").find(c) != std::string::npos; });
    const WavelengthUnit* const unit = words_of(text).size() == 1 ? field_unit(text) : nullptr;
    return unit == nullptr ? std::string() : unit->symbol;
}

/// Handles a first row that contains units instead of values: adds the units of wavelengths to the column
/// names, and removes the row. If the row contains the column names, it becomes the column names, because the
/// text above it is a title. Returns which columns are in per cent; empty if no column is in per cent.
std::vector<bool> take_line_of_units(TextTable& table) {
    if (table.head.empty() || table.rows.size() < 2) return {};
    const auto& line = table.rows.front();
    bool unit = false, wavelength = false;
    for (size_t c = 0; c < line.size(); ++c) {
        if (is_empty_cell(line[c]) || std::isfinite(cell_number(line[c]))) continue;
        if (std::any_of(table.rows.begin() + 1, table.rows.end(), [&](const auto& row) {
                return !is_empty_cell(row[c]) && !std::isfinite(cell_number(row[c])) &&
                       std::isnan(percent_number(row[c]));
            })) {
            if (says_wavelengths(table.head[c]) != Said::nothing) return {};
            continue; // the column contains text
        }
        unit |= !unit_in_cell(line[c]).empty();
        wavelength |= says_wavelengths(line[c]) == Said::plainly;
    }
    if (!unit && !wavelength) return {};
    std::vector<bool> percent;
    if (wavelength && std::none_of(table.head.begin(), table.head.end(), [](const std::string& name) {
            return says_wavelengths(name) == Said::plainly;
        })) {
        table.head = line;
    } else {
        for (size_t c = 0; c < line.size(); ++c) {
            const std::string of_wavelengths = unit_in_cell(line[c]);
            percent.push_back(is_percent(line[c]));
            if (!of_wavelengths.empty() && stated_unit(table.head[c]).empty() &&
                (c == 0 || says_wavelengths(table.head[c]) != Said::nothing ||
                 std::isfinite(cell_number(table.head[c])) ||
                 table_column(table.head[c]) == TableColumn::widths))
                table.head[c] += " (" + of_wavelengths + ")";
        }
    }
    table.rows.erase(table.rows.begin());
    return percent;
}

/// Removes "(%)" and "[%]" from the end of column names, and marks these columns as per cent.
void take_percent_of_names(TextTable& table, std::vector<bool>& percent) {
    constexpr size_t length = 3;
    for (size_t c = 0; c < table.head.size(); ++c) {
        std::string& name = table.head[c];
        if (name.size() <= length || !(name.ends_with("(%)") || name.ends_with("[%]"))) continue;
        name.erase(name.find_last_not_of(" _", name.size() - length - 1) + 1);
        percent.resize(table.head.size());
        percent[c] = true;
    }
}

/// Uses the first row as column names if the table contains only numbers and this row contains the
/// wavelengths. Returns whether the row was used.
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

/// Returns whether the numbers in the row above the spectra (`across`) may be wavelengths or band numbers,
/// not a spectrum.
bool may_be_bands(Column across, const Column& spectra) {
    constexpr double least_um = 0.1, least_nm = 100;
    const double low = *std::min_element(across.begin(), across.end());
    if (are_possible_wavelengths(across) || counts_lines(across) || (never_turns(across) && low >= least_um))
        return true;
    std::sort(across.begin(), across.end()); // wavelengths may be in any order
    return low >= least_nm && are_likely_wavelengths(across, spectra);
}

/// Handles a table with one spectrum per row and without column names. The first row, which was read as
/// column names, has the same pattern of texts and numbers as the other rows. It becomes the first spectrum,
/// and the bands are numbered. Returns whether the table was changed.
bool find_spectrum_in_head(TextTable& table) {
    size_t texts = 0;
    while (texts < table.head.size() && !std::isfinite(cell_number(table.head[texts])))
        ++texts;
    if (texts == 0 || table.head.size() < texts + 2 || table.rows.empty()) return false;
    const std::string& corner = table.head.front();
    if (is_empty_cell(corner) || says_wavelengths(corner) != Said::nothing || says_sample(corner) ||
        says_number(corner) || table_column(corner) != TableColumn::spectrum)
        return false;
    Column across, spectra;
    for (size_t c = texts; c < table.head.size(); ++c)
        across.push_back(cell_number(table.head[c]));
    for (const auto& row : table.rows)
        for (size_t c = 0; c < row.size(); ++c) {
            const bool number = std::isfinite(cell_number(row[c]));
            if (c < texts ? number : !number && !is_empty_cell(row[c])) return false;
            if (number) spectra.push_back(cell_number(row[c]));
        }
    const auto is_number = [](double v) { return std::isfinite(v); };
    if (!std::all_of(across.begin(), across.end(), is_number) || may_be_bands(across, spectra)) return false;
    table.rows.insert(table.rows.begin(), table.head);
    table.head.assign(table.head.size(), {});
    table.head.front() = "name";
    for (size_t c = texts; c < table.head.size(); ++c)
        table.head[c] = "b" + std::to_string(c - texts + 1);
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
        } else if (word_unit(word) == nullptr &&
                   !one_of(word, {"full", "at", "half", "max", "maximum", "band", "spectral", "in"})) {
            return words.size() == 1 && one_of(word, {"bbl"}) ? TableColumn::marks : TableColumn::spectrum;
        }
    }
    return width || full ? TableColumn::widths : TableColumn::spectrum;
}

SpectralLibrary read_library_table(const std::string& path, const std::string& text, bool bands_alone) {
    if (text.rfind("##TITLE", 0) == 0 || text.rfind("##title", 0) == 0)
        refuse_library(path, "is a JCAMP-DX file, which is not supported: export the spectrum as a table");
    TextTable table = read_text_table(path, text);
    // OPUS writes its data point tables (.dpt) in wavenumbers.
    if (table.unit.empty() && table.head.empty() && EQUAL(CPLGetExtension(path.c_str()), "dpt"))
        table.unit = "cm-1";
    const bool headless = find_spectrum_in_head(table);
    std::vector<bool> percent = take_line_of_units(table);
    take_percent_of_names(table, percent);
    const bool known = find_head_of_numbers(table);
    if (auto library = library_of_rows(path, table, known || headless)) {
        if (headless) note(*library, path, "has no column names: its first line is read as a spectrum");
        return std::move(*library);
    }
    SpectralLibrary library = library_of_columns(path, table, percent, bands_alone);
    if (std::find(percent.begin(), percent.end(), true) != percent.end())
        note(library, path, "has spectra in percent, by their names or units: they are read as fractions");
    return library;
}

bool is_envi_plot(const std::string& text) { return text.rfind("ENVI ASCII Plot File", 0) == 0; }

SpectralLibrary read_envi_plot(const std::string& path, const std::string& text) {
    TextTable table;
    const CPLStringList lines(CSLTokenizeString2(text.c_str(), "\r\n", 0));
    for (int i = 1; i < lines.Count(); ++i) {
        const std::string line = lines[i];
        if (const size_t colon = line.find(':');
            STARTS_WITH_CI(line.c_str(), "Column ") && colon != std::string::npos) {
            // In "Mean: wheat~~2##255,0,0", the number of the plot and a colour follow the name.
            const std::string name = line.substr(colon + 1, line.find("~~", colon) - colon - 1);
            table.head.emplace_back(CPLString(name).Trim());
            continue;
        }
        const CPLStringList words(CSLTokenizeString2(line.c_str(), " \t", 0));
        auto& row = table.rows.emplace_back();
        for (int k = 0; k < words.Count(); ++k)
            row.emplace_back(words[k]);
        if (row.empty()) table.rows.pop_back();
    }
    for (const auto& row : table.rows)
        if (row.size() != table.head.size())
            refuse_library(path, "has " + counted(row.size(), "column") + " of data under " +
                                     counted(table.head.size(), "name"));
    if (table.rows.empty()) refuse_library(path, "has no data");
    return library_of_columns(path, table, {});
}

} // namespace hsi::raster
