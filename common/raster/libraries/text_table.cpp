// SPDX-License-Identifier: MIT
#include "raster/libraries/text_table.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/libraries/library_formats.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/wavelength_unit.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace hsi::raster {
namespace {

using Cells = std::vector<std::string>;

struct Line {
    size_t number; ///< number of the line in the file, from 1
    std::string text;
};

constexpr const char* blanks = " \t";

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

/// Returns true if the last cell of the line begins with a quotation mark and continues in the next line.
bool is_open(const std::string& line) {
    if (std::count(line.begin(), line.end(), '"') % 2 == 0) return false;
    for (size_t at = line.find('"'); at != std::string::npos; at = line.find('"', at + 1)) {
        const size_t before = at == 0 ? std::string::npos : line.find_last_not_of(blanks, at - 1);
        if (before == std::string::npos || std::string(",;\t").find(line[before]) != std::string::npos)
            return true;
    }
    return false;
}

/// Splits the text into lines. A cell between quotation marks may contain line ends. If the closing mark is
/// not found within 20 lines, the opening mark is an ordinary character.
std::vector<Line> lines_of(const std::string& text) {
    std::vector<Line> lines;
    size_t number = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
        lines.push_back({++number, text.substr(at, end - at)});
        at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
    }
    std::vector<Line> joined;
    for (size_t i = 0; i < lines.size(); ++i) {
        Line line = lines[i];
        constexpr size_t most = 20;
        size_t k = i;
        while (is_open(line.text) && k + 1 < lines.size() && k - i < most)
            line.text += " " + lines[++k].text;
        if (is_open(line.text))
            line = lines[i];
        else
            i = k;
        if (!is_blank(line.text)) joined.push_back(std::move(line));
    }
    return joined;
}

bool starts_comment(const std::string& line, bool semicolons) {
    const size_t at = line.find_first_not_of(blanks);
    return std::string("#%!").find(line[at]) != std::string::npos || line.compare(at, 2, "//") == 0 ||
           (semicolons && line[at] == ';');
}

/// Returns the cells of a line, without leading and trailing blanks.
Cells cells_of(const std::string& line, char separator) {
    Cells cells;
    const char* const around = separator == '\t' ? " " : blanks;
    const auto skip_blanks = [&](size_t at) {
        return std::min(line.find_first_not_of(around, at), line.size());
    };
    for (size_t at = 0;; ++at) {
        std::string cell;
        at = skip_blanks(at);
        if (at == line.size() && separator == ' ' && !cells.empty()) return cells; // blanks at the end
        if (at < line.size() && line[at] == '"') {
            for (++at; at < line.size(); ++at) {
                if (line[at] == '"') {
                    if (line.compare(at, 2, "\"\"") != 0) break;
                    ++at;
                }
                cell += line[at];
            }
            at = std::min(at + 1, line.size());
            if (separator != ' ') at = skip_blanks(at);
        }
        const size_t end = std::min(
            separator == ' ' ? line.find_first_of(blanks, at) : line.find(separator, at), line.size());
        std::string rest = line.substr(at, end - at);
        rest.erase(rest.find_last_not_of(around) + 1);
        cells.push_back(cell + rest);
        at = end;
        if (at == line.size()) return cells;
    }
}

/// Removes blanks (also no-break spaces) between thousands: returns "1030.5" for "1 030.5"; empty if the cell
/// has another form.
std::string without_blanks_of_thousands(const std::string& cell) {
    std::string text = cell, digits;
    for (const char* const blank : {"\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89"})
        for (size_t at; (at = text.find(blank)) != std::string::npos;)
            text.replace(at, std::char_traits<char>::length(blank), " ");
    const size_t end = std::min(text.find_first_of(".,"), text.size());
    size_t group = 0; // digits since the last blank or since the start
    bool parted = false;
    for (size_t at = text.find_first_of("+-") == 0 ? 1 : 0; at < end; ++at) {
        const bool digit = text[at] >= '0' && text[at] <= '9';
        if (!digit && (text[at] != ' ' || group == 0 || (parted && group != 3))) return {};
        parted |= !digit;
        group = digit ? group + 1 : 0;
        if (group > 3) return {};
    }
    if (!parted || group != 3) return {};
    std::erase(text, ' ');
    return text;
}

bool is_number_or_empty(const std::string& cell) {
    return is_empty_cell(cell) || std::isfinite(cell_number(cell));
}

bool all_numbers(const Cells& cells) { return std::all_of(cells.begin(), cells.end(), is_number_or_empty); }

/// Returns the separator, which is the character (semicolon, tab or comma) that is most frequent outside of
/// quotation marks. A semicolon or a tab also wins if there is one more comma, because commas may be decimal
/// commas. The default is a comma.
char separator_in(const std::string& line) {
    int commas = 0, semicolons = 0, tabs = 0;
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted;
        if (quoted) continue;
        commas += c == ',';
        semicolons += c == ';';
        tabs += c == '\t';
    }
    if (semicolons > 0 && semicolons >= tabs && semicolons + 1 >= commas) return ';';
    if (tabs > 0 && tabs + 1 >= commas) return '\t';
    return ',';
}

/// Returns the separator that splits the first and the last line of a table into the same number of cells.
char separator_of(const std::string& first, const std::string& last) {
    const Cells words = cells_of(last, ' ');
    const bool spaced = words.size() > 1 && all_numbers(words);
    for (const char separator : {separator_in(last), separator_in(first), ',', ';', '\t', ' '}) {
        const Cells cells = cells_of(last, separator);
        const size_t heads = cells_of(first, separator).size();
        if (cells.size() < 2 || (heads != cells.size() && heads + 1 != cells.size())) continue;
        // In "400,5 0,12", the commas are decimal commas, and blanks separate the numbers.
        const bool parted =
            separator == ',' && std::any_of(cells.begin(), cells.end(), [](const std::string& cell) {
                return cell.find(' ') != std::string::npos;
            });
        if (separator != ' ' && spaced && (parted || !all_numbers(cells))) continue;
        if (separator == ' ' && !spaced && !all_numbers({words.begin() + 1, words.end()})) continue;
        return separator;
    }
    return separator_in(first);
}

/// The number of cells that contain text, and the number of non-empty cells.
struct Told {
    size_t texts = 0, cells = 0;
};

Told told_by(const Cells& row) {
    Told told;
    for (const auto& cell : row) {
        told.cells += !cell.empty();
        told.texts += !is_number_or_empty(cell) && std::isnan(percent_number(cell));
    }
    return told;
}

/// Returns the number of title lines above the column names. Title lines have fewer cells than the last line
/// of the table. The line of column names has as many cells as the last line, but more texts.
size_t lines_of_title(const std::vector<Line>& lines) {
    const std::string& last = lines.back().text;
    constexpr size_t most = 40;
    for (const char separator : {separator_in(last), '\t', ' '}) {
        const Cells end = cells_of(last, separator);
        const Told below = told_by(end);
        if (end.size() < 2 || below.texts == end.size()) continue;
        for (size_t i = 0; i + 1 < lines.size() && i < most; ++i) {
            const Cells row = cells_of(lines[i].text, separator);
            const Told told = told_by(row);
            if (row.size() == end.size() && told.cells == row.size())
                return told.texts > below.texts && 2 * told.texts > row.size() ? i : 0;
            // If blanks are the separator, every word of a title is a cell.
            if (told.texts == 0 || (told.cells >= end.size() && separator != ' ')) break;
            if (told.cells + 1 == end.size() && told.cells > 1) break; // R omits the name of the first column
        }
    }
    return 0;
}

/// Returns the two numbers of a cell such as "400, 0.1"; empty if the cell does not contain two numbers.
Cells pair_in(const std::string& cell) {
    if (std::isfinite(cell_number(cell))) return {};
    Cells pair = cells_of(cell, ',');
    if (pair.size() != 2 || !all_numbers(pair) || pair[0].empty()) return {};
    return pair;
}

/// Splits cells that contain a pair of wavelength and value. Tabs or semicolons separate the pairs.
void split_pairs(TextTable& table) {
    const auto are_pairs = [](const Cells& row) {
        return std::all_of(row.begin(), row.end(), [](const auto& cell) { return !pair_in(cell).empty(); });
    };
    auto& rows = table.rows;
    if (!std::all_of(rows.begin() + (rows.size() > 1 ? 1 : 0), rows.end(), are_pairs)) return;
    for (Cells& row : rows) {
        Cells cells;
        for (const auto& cell : row) {
            Cells pair = cells_of(cell, ',');
            pair.resize(2);
            cells.insert(cells.end(), pair.begin(), pair.end());
        }
        row = std::move(cells);
    }
}

/// Removes a first line that contains only the number of the following lines, as in the files of RELAB.
/// Returns false if the text does not begin with such a line.
bool drop_count(const std::string& path, std::vector<Line>& lines) {
    if (lines.size() < 3) return false;
    const Cells first = cells_of(lines.front().text, ' ');
    const double count = first.size() == 1 ? cell_number(first.front()) : no_library_value;
    const auto is_row = [](const std::string& line) { // whether a line contains several numbers
        for (const char separator : {separator_in(line), ' '})
            if (const Cells cells = cells_of(line, separator); cells.size() > 1 && all_numbers(cells))
                return true;
        return false;
    };
    if (!(count >= 1) || count != std::floor(count) || !is_row(lines.back().text)) return false;
    const size_t heads = is_row(lines[1].text) ? 1 : 2; // 2: the second line contains the column names
    if (heads > 1 && count != static_cast<double>(lines.size() - heads)) return false;
    if (count != static_cast<double>(lines.size() - heads))
        refuse_library(path, "its first line counts " + first.front() + " lines, but " +
                                 std::to_string(lines.size() - 1) + " follow");
    lines.erase(lines.begin());
    return true;
}

/// Adds column names to a RELAB table, which has none. If the third column is small compared with the second,
/// it is the standard deviation.
void name_deviations(TextTable& table) {
    constexpr size_t columns = 3;
    constexpr double most = 0.1; // maximum ratio of the standard deviation to the reflectance
    if (!table.head.empty() || table.columns() != columns) return;
    double values = 0, deviations = 0;
    for (const auto& row : table.rows) {
        values += std::fabs(cell_number(row[1]));
        deviations += std::fabs(cell_number(row[2]));
    }
    if (deviations < most * values) table.head = {"wavelength", "Spectrum 1", "Std"};
}

/// Returns the unit of wavelengths that a text line above the table states: "# Wavelength unit: um",
/// "wavelengths in nm". The result is empty if the line does not state a unit.
std::string unit_stated_above(const std::string& line) {
    const std::string text = lower(line);
    size_t at = std::string::npos;
    for (const char* word :
         {"wavelen", "wavenumber", "x unit", "xunit", "x_unit", "x-unit", "x axis", "x-axis"})
        at = std::min(at, text.find(word));
    if (at == std::string::npos) return {};
    return stated_unit(line.substr(at, line.find_first_of(",;|", at) - at));
}

/// Uses the first line, or the comment before the first line, as column names.
void find_head(const std::string& comment, TextTable& table) {
    const Cells& first = table.rows.front();
    const bool pairs =
        first.size() > 1 && first.front().empty() &&
        std::any_of(first.begin(), first.end(), [](const auto& cell) { return !cell.empty(); });
    if (!all_numbers(first) || (pairs && table.rows.size() > 1)) {
        table.head = first;
        table.rows.erase(table.rows.begin());
        return;
    }
    const size_t at = comment.find_first_not_of("#%!/; \t");
    if (at == std::string::npos) return;
    for (const char separator : {separator_in(comment), ' '}) {
        Cells cells = cells_of(comment.substr(at), separator);
        if (cells.size() != first.size() || cells.size() < 2 || all_numbers(cells)) continue;
        table.head = std::move(cells);
        return;
    }
}

/// Removes columns that have neither a name nor a value.
void drop_empty_columns(TextTable& table) {
    for (size_t c = table.columns(); c-- > 1;) {
        const bool named = !table.head.empty() && !table.head[c].empty();
        if (named || !std::all_of(table.rows.begin(), table.rows.end(),
                                  [&](const Cells& row) { return row[c].empty(); }))
            continue;
        const auto place = static_cast<std::ptrdiff_t>(c);
        if (!table.head.empty()) table.head.erase(table.head.begin() + place);
        for (Cells& row : table.rows)
            row.erase(row.begin() + place);
    }
}

/// Checks that all rows have as many cells as the column names. Tables of R have one cell more in each row;
/// an empty name is then added for the first column.
void align(const std::string& path, const std::vector<size_t>& lines, TextTable& table) {
    auto& rows = table.rows;
    const size_t first = rows.front().size();
    if (rows.size() > 1 && !all_numbers(rows.front()) &&
        std::all_of(rows.begin() + 1, rows.end(),
                    [&](const Cells& row) { return row.size() == first + 1; }) &&
        !std::all_of(rows.begin() + 1, rows.end(), [](const Cells& row) { return row.back().empty(); }))
        rows.front().insert(rows.front().begin(), std::string());
    const size_t columns = rows.front().size();
    for (size_t i = 0; i < rows.size(); ++i) {
        while (rows[i].size() > columns && rows[i].back().empty())
            rows[i].pop_back();
        if (rows[i].size() != columns)
            refuse_library(path, "line " + std::to_string(lines[i]) + " has " +
                                     counted(rows[i].size(), "column") + " instead of " +
                                     std::to_string(columns));
    }
}

} // namespace

double cell_number(const std::string& cell) {
    const double number = number_with_comma(cell);
    if (!std::isnan(number)) return number;
    const std::string whole = without_blanks_of_thousands(cell);
    return whole.empty() ? no_library_value : number_with_comma(whole);
}

double percent_number(const std::string& cell) {
    if (cell.empty() || cell.back() != '%') return no_library_value;
    return cell_number(cell.substr(0, cell.find_last_not_of(" \t", cell.size() - 2) + 1)) / 100;
}

std::vector<double> spectrum_numbers(const std::string& path, const std::string& what,
                                     const std::vector<std::string>& cells) {
    std::vector<double> values;
    size_t percent = 0, plain = 0;
    for (const std::string& cell : cells) {
        const double share = percent_number(cell);
        values.push_back(std::isnan(share) ? cell_number(cell) : share);
        percent += !std::isnan(share);
        plain += std::isnan(share) && std::isfinite(values.back());
    }
    if (percent > 0 && plain > 0)
        refuse_library(path, what + " has numbers with and without % (" + std::to_string(percent) + " and " +
                                 std::to_string(plain) + ")");
    return values;
}

bool is_empty_cell(const std::string& cell) {
    static const char* const words[] = {"",        "na",      "n/a",   "#n/a",    "nan",     "-nan",
                                        "null",    "none",    "-",     "--",      "missing", "nodata",
                                        "no data", ".",       "?",     "#div/0!", "#value!", "#num!",
                                        "1.#qnan", "-1.#ind", "1.#ind"};
    const std::string text = lower(cell);
    return std::any_of(std::begin(words), std::end(words), [&](const char* word) { return text == word; });
}

TextTable read_text_table(const std::string& path, const std::string& text) {
    const std::vector<Line> all = lines_of(text);
    std::string unit; // the unit that lines above the table state
    std::vector<Line> lines;
    std::string comment; // the last comment before the table
    for (const bool semicolons : {false, true}) {
        lines.clear();
        comment.clear();
        for (const Line& line : all)
            if (!starts_comment(line.text, semicolons))
                lines.push_back(line);
            else if (lines.empty()) {
                comment = line.text;
                if (unit.empty()) unit = unit_stated_above(comment);
            }
        if (lines.empty() || separator_in(lines.back().text) == ';') break;
    }
    // Excel states the separator in a line of its own: "sep=;".
    std::optional<char> said;
    if (!lines.empty() && lower(lines.front().text).rfind("sep=", 0) == 0 && lines.front().text.size() <= 5) {
        said = lines.front().text.size() == 5 ? lines.front().text.back() : '\t';
        lines.erase(lines.begin());
    }
    if (lines.empty()) refuse_library(path, "has no table");
    const bool counted_lines = drop_count(path, lines);
    const size_t title = lines_of_title(lines);
    for (size_t i = 0; i < title && unit.empty(); ++i)
        unit = unit_stated_above(lines[i].text);
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(title));
    const char separator = said ? *said : separator_of(lines.front().text, lines.back().text);
    // Spreadsheets leave lines that contain only separators below a table.
    const auto is_hollow = [](const Cells& row) {
        return row.size() > 1 && std::all_of(row.begin(), row.end(), [](const auto& c) { return c.empty(); });
    };
    TextTable table;
    table.unit = unit;
    std::vector<size_t> numbers;
    for (const Line& line : lines) {
        Cells row = cells_of(line.text, separator);
        if (is_hollow(row)) continue;
        table.rows.push_back(std::move(row));
        numbers.push_back(line.number);
    }
    if (table.rows.empty()) refuse_library(path, "has no table");
    align(path, numbers, table);
    if (separator != ',') split_pairs(table);
    find_head(comment, table);
    if (table.rows.empty()) refuse_library(path, "has no table");
    drop_empty_columns(table);
    if (counted_lines) name_deviations(table);
    return table;
}

double table_number(const std::string& cell) { return cell_number(cell); }

SpectrumTable spectrum_table(const std::string& path, const std::string& text,
                             const std::vector<std::string>& needed,
                             const std::vector<std::string>& optional) {
    const TextTable table = read_text_table(path, text);
    const std::string advice = "Name the columns in its first line: " + joined(needed, ", ") +
                               (optional.empty() ? "" : ", and optionally " + joined(optional, ", ")) + ".";
    if (table.head.empty()) throw Error(path + ": its columns have no names", advice);
    constexpr size_t none = ~size_t{0};
    std::vector<size_t> places;
    std::vector<bool> taken(table.columns());
    for (const auto* const names : {&needed, &optional})
        for (const auto& name : *names) {
            size_t at = none;
            for (size_t c = 0; c < table.columns(); ++c) {
                if (!equal_names(table.head[c], name)) continue;
                if (at != none) throw Error(path + ": two columns are called '" + name + "'");
                at = c;
                taken[c] = true;
            }
            if (at == none && names == &needed) throw Error(path + " has no column '" + name + "'", advice);
            places.push_back(at);
        }
    SpectrumTable result;
    for (size_t c = 0; c < table.columns(); ++c)
        if (!taken[c]) result.further.push_back(table.head[c]);
    for (const auto& row : table.rows) {
        auto& cells = result.rows.emplace_back();
        for (const size_t at : places) {
            const bool computed =
                cells.size() >= needed.size() && at != none && EQUAL(row[at].c_str(), "nan");
            cells.push_back(at == none || (is_empty_cell(row[at]) && !computed) ? std::string() : row[at]);
        }
    }
    return result;
}

} // namespace hsi::raster
