// SPDX-License-Identifier: MIT
// Tables of text as people and programs write them: lines of cells, without their meaning.
#pragma once

#include "raster/spectral_library.h"

#include <string>
#include <vector>

namespace hsi::raster {

struct TextTable {
    std::vector<std::string> head;              ///< names of the columns; empty: the file has none
    std::vector<std::vector<std::string>> rows; ///< all as long as the head
    std::string unit; ///< of wavelengths, as lines above the table or the file's extension state it
    size_t columns() const { return !head.empty() ? head.size() : rows.empty() ? 0 : rows.front().size(); }
};

/// Cells between commas, semicolons, tabs or blanks: the separator on which head and last line agree. Between
/// quotation marks separators and ends of lines are text, and two quotation marks are one (RFC 4180). Cells
/// that all hold two numbers with a comma between them ("400, 0.1") are two cells each. Lines end with CR, LF
/// or both. These are left out: empty lines, comments (# % ! // and, unless it separates, ;), a title of
/// lines with fewer cells above the names, a first line that counts the others (RELAB's), Excel's line
/// "sep=;" (which states the separator) and columns without a name and a value. The first line is the head if
/// one of its cells is a text, or its first cell is empty; a head that is one cell short (R's) leaves the
/// first column without a name. Without a head, the comment before the first line is the head if it has as
/// many cells. `text` is UTF-8. \throws Error naming `path` and a line that has more or fewer cells, and for
/// a table without rows.
TextTable read_text_table(const std::string& path, const std::string& text);

/// The result of read_spectrum_table() for a file's text.
SpectrumTable spectrum_table(const std::string& path, const std::string& text,
                             const std::vector<std::string>& needed,
                             const std::vector<std::string>& optional);

/// The number in a cell, with a decimal point or comma, 1.5e-3 or Fortran's 1.5D-03, also with blanks between
/// thousands (1 030.5); NaN for other texts.
double cell_number(const std::string& cell);
/// 0.1 for "10 %" and "10%"; NaN without such a sign.
double percent_number(const std::string& cell);
/// The numbers in the cells of a spectrum, in percent or not. \throws Error naming `path` and `what` when
/// only some have the sign.
std::vector<double> spectrum_numbers(const std::string& path, const std::string& what,
                                     const std::vector<std::string>& cells);
/// True for an empty cell and for texts that programs write for missing values (NA, nan, null, -, #N/A ...).
bool is_empty_cell(const std::string& cell);

} // namespace hsi::raster
