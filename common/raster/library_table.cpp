// SPDX-License-Identifier: MIT
// Spectral libraries as tables of text.
#include "core/counted.h"
#include "raster/library_formats.h"

#include <cpl_string.h>

#include <algorithm>
#include <cmath>

namespace hsi::raster {
namespace {

struct Table {
    std::vector<std::string> heads; ///< empty: the file has none
    std::vector<std::vector<double>> columns;
};

/// The cells of a line, without the blanks around them. Between quotation marks separators and blanks are
/// text, and two quotation marks are one (RFC 4180).
std::vector<std::string> cells_of(const std::string& line, char separator) {
    const char* const blanks = separator == '\t' ? " " : " \t";
    const auto skip_blanks = [&](size_t at) {
        return std::min(line.find_first_not_of(blanks, at), line.size());
    };
    std::vector<std::string> cells;
    for (size_t at = 0;; ++at) {
        std::string cell;
        at = skip_blanks(at);
        if (at < line.size() && line[at] == '"') {
            for (++at; at < line.size(); ++at) {
                if (line[at] == '"') {
                    if (line.compare(at, 2, "\"\"") != 0) break;
                    ++at;
                }
                cell += line[at];
            }
            at = skip_blanks(std::min(at + 1, line.size()));
        }
        const size_t end = std::min(line.find(separator, at), line.size());
        std::string rest = line.substr(at, end - at);
        rest.erase(rest.find_last_not_of(blanks) + 1);
        cells.push_back(cell + rest);
        at = end;
        if (at == line.size()) return cells;
    }
}

/// Of the first line, outside quotation marks; a comma where there is neither. Semicolons and tabs win a tie:
/// the commas may be decimal ones.
char separator_of(const std::string& line) {
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

double cell_number(std::string cell, char separator) {
    if (separator != ',') std::replace(cell.begin(), cell.end(), ',', '.');
    return library_number(cell);
}

bool is_numbers(const std::vector<std::string>& cells, char separator) {
    return std::all_of(cells.begin(), cells.end(),
                       [&](const std::string& cell) { return std::isfinite(cell_number(cell, separator)); });
}

/// What a column of wavelengths is called; `units`: those that its name tells.
bool names_wavelengths(const std::string& head, std::string& units) {
    const CPLString name = CPLString(head).tolower();
    const bool said = name.rfind("wavelength", 0) == 0 || name == "wl" || name == "lambda" || name == "nm" ||
                      name == "um" || name == "wvl";
    if (!said) return false;
    if (name.find("nm") != std::string::npos || name.find("nano") != std::string::npos) units = "nm";
    if (name.find("um") != std::string::npos || name.find("micro") != std::string::npos ||
        name.find("\xc2\xb5m") != std::string::npos || name.find("\xce\xbcm") != std::string::npos)
        units = "um";
    return true;
}

bool rises(const std::vector<double>& column) {
    for (size_t k = 1; k < column.size(); ++k)
        if (!(column[k] > column[k - 1])) return false;
    return true;
}

/// Wavelengths rise from line to line, and are all micrometres or all nanometres.
bool looks_like_wavelengths(const std::vector<double>& column) {
    if (column.size() < 2 || !(column.front() > 0) || !rises(column)) return false;
    constexpr double nanometres = 100, micrometres = 0.1;
    return column.front() >= nanometres || (column.front() >= micrometres && column.back() < nanometres);
}

/// A first column without a name, in front of others that have one: the index of another program's table. It
/// is the wavelengths where no column says that it is.
bool is_index_of_wavelengths(const Table& table) {
    std::string units;
    if (table.columns.size() < 2 || !table.heads.front().empty() ||
        std::any_of(table.heads.begin(), table.heads.end(),
                    [&](const std::string& head) { return names_wavelengths(head, units); }))
        return false;
    std::vector<double> column = table.columns.front();
    if (column.front() > column.back()) std::reverse(column.begin(), column.end());
    return looks_like_wavelengths(column);
}

/// 0, 1, 2 ... or 1, 2, 3 ...: the numbers of the lines, which tables of other programs have in front.
bool counts_lines(const std::vector<double>& column) {
    for (size_t k = 0; k < column.size(); ++k)
        if (column[k] != column.front() + static_cast<double>(k)) return false;
    return column.size() > 1 && (column.front() == 0 || column.front() == 1);
}

Table read_table(const std::string& path, const std::string& text) {
    Table table;
    const CPLStringList lines(CSLTokenizeString2(text.c_str(), "\r\n", 0));
    const char separator = lines.Count() > 0 ? separator_of(lines[0]) : ',';
    for (int i = 0; i < lines.Count(); ++i) {
        const auto cells = cells_of(lines[i], separator);
        if (i == 0) {
            table.columns.resize(cells.size());
            if (!is_numbers(cells, separator)) {
                table.heads = cells;
                continue;
            }
        }
        if (cells.size() != table.columns.size())
            refuse_library(path, "line " + std::to_string(i + 1) + " has " + counted(cells.size(), "column") +
                                     " instead of " + std::to_string(table.columns.size()));
        for (size_t c = 0; c < cells.size(); ++c)
            table.columns[c].push_back(cell_number(cells[c], separator));
    }
    if (table.columns.empty() || table.columns.front().empty()) refuse_library(path, "holds no table");
    return table;
}

} // namespace

SpectralLibrary read_library_table(const std::string& path, const std::string& text) {
    Table table = read_table(path, text.rfind("\xef\xbb\xbf", 0) == 0 ? text.substr(3) : text);
    auto& columns = table.columns;
    SpectralLibrary library;
    if (table.heads.empty()) {
        const bool placed = columns.size() > 1 && looks_like_wavelengths(columns.front());
        for (size_t c = placed ? 1 : 0; c < columns.size(); ++c)
            table.heads.push_back("Spectrum " + std::to_string(c + (placed ? 0 : 1)));
        if (placed) table.heads.insert(table.heads.begin(), "wavelength");
    }
    // One column of each kind: a spectrum may be called "band" or "Wavelength", too.
    const bool index = is_index_of_wavelengths(table);
    bool numbered = false, placed = false, in_order = true;
    for (size_t c = 0; c < table.heads.size(); ++c) {
        const std::string& head = table.heads[c];
        if (!numbered && c < 2 && EQUAL(head.c_str(), "band")) {
            numbered = true;
            in_order = rises(columns[c]);
            continue;
        }
        if (c == 0 && head.empty() && columns.size() > 1 && counts_lines(columns[c])) {
            library.notes.push_back("'" + path +
                                    "': the first column has no name and counts the lines; it is left out");
            continue;
        }
        std::string units;
        if (!placed && (index ? c == 0 : names_wavelengths(head, units))) {
            placed = true;
            library_to_nm(columns[c], units);
            library.wavelengths_nm = columns[c];
            continue;
        }
        for (double v : columns[c])
            if (!std::isfinite(v))
                refuse_library(path, "the column " + head + " holds something that is no number");
        library.names.push_back(head);
        library.spectra.push_back(columns[c]);
    }
    if (library.spectra.empty()) refuse_library(path, "holds no spectrum");
    if (!in_order && library.wavelengths_nm.empty())
        refuse_library(path, "its lines are not in the order of the column band");
    return library;
}

} // namespace hsi::raster
