// SPDX-License-Identifier: MIT
// Text tables as people and programs write them, as lines of cells without their meaning.
#pragma once

#include "raster/spectral_library.h"

#include <string>
#include <vector>

namespace hsi::raster {

struct TextTable {
    std::vector<std::string> head;              ///< names of the columns; empty: the file has no names
    std::vector<std::vector<std::string>> rows; ///< all as long as the head
    std::string unit; ///< unit of wavelengths, as text lines above the table or the file's extension state it
    size_t columns() const { return !head.empty() ? head.size() : rows.empty() ? 0 : rows.front().size(); }
};

/// Reads cells between commas, semicolons, tabs or blanks: the separator for which the head and the last line
/// agree. Between quotation marks, separators and line ends are text, and two quotation marks mean one (RFC
/// 4180). If all cells contain two numbers with a comma between them ("400, 0.1"), each becomes two cells.
/// Text lines end with CR, LF or both. Left out are: empty lines; comments (# % ! //, and ; unless it
/// separates); a title of lines with fewer cells above the names; a first line with the number of the other
/// lines (RELAB); Excel's line "sep=;" (which states the separator); and columns without a name and a value.
/// The first line is the head if one of its cells is a text, or if its first cell is empty. In a head that is
/// one cell short (R), the first column has no name. Without a head, the comment before the first line is the
/// head if it has as many cells. `text` is UTF-8. \throws Error that names `path` and a line with more or
/// fewer cells, and for a table without rows.
TextTable read_text_table(const std::string& path, const std::string& text);

/// Returns the result of read_spectrum_table() for a file's text.
SpectrumTable spectrum_table(const std::string& path, const std::string& text,
                             const std::vector<std::string>& needed,
                             const std::vector<std::string>& optional);

/// Returns the number in a cell, with a decimal point or comma, 1.5e-3 or Fortran's 1.5D-03, also with blanks
/// between thousands (1 030.5); NaN for other texts.
double cell_number(const std::string& cell);
/// Returns 0.1 for "10 %" and "10%"; NaN without a per cent sign.
double percent_number(const std::string& cell);
/// Returns the numbers in the cells of a spectrum, with or without per cent signs. \throws Error that names
/// `path` and `what` if only some have the sign.
std::vector<double> spectrum_numbers(const std::string& path, const std::string& what,
                                     const std::vector<std::string>& cells);
/// Returns true for an empty cell and for texts that programs write for missing values (NA, nan, null, -,
/// #N/A ...).
bool is_empty_cell(const std::string& cell);

} // namespace hsi::raster
