// SPDX-License-Identifier: MIT
// Reads text tables as lines of cells, without interpreting the cells.
#pragma once

#include "raster/spectral_library.h"

#include <string>
#include <vector>

namespace hsi::raster {

struct TextTable {
    std::vector<std::string> head; ///< names of the columns; empty: the file does not name the columns
    std::vector<std::vector<std::string>> rows; ///< every row has as many cells as `head`
    /// The unit of the wavelengths, as text lines above the table or the file extension state it.
    std::string unit;
    size_t columns() const { return !head.empty() ? head.size() : rows.empty() ? 0 : rows.front().size(); }
};

/// Reads cells that are separated by commas, semicolons, tabs or blanks. The separator is the one that splits
/// the column names and the last line into the same number of cells.
///
/// Between quotation marks, separators and line ends are text, and two quotation marks stand for one (RFC
/// 4180). If all cells contain two numbers with a comma between them ("400, 0.1"), each cell is split into
/// two. Text lines end with CR, LF or both.
/// The reader ignores
/// - empty lines, and comments (# % ! //, and ; unless it is the separator),
/// - title lines above the column names, which have fewer cells,
/// - a first line that states the number of the other lines (RELAB),
/// - Excel's line "sep=;", which sets the separator,
/// - columns with neither a name nor a value.
///
/// The first line contains the column names if one of its cells is a text, or if its first cell is empty. If
/// there is one name fewer than columns, as in tables that R writes, the first column has no name. Otherwise,
/// the comment before the first line contains the column names if it has as many cells as the table. `text`
/// is UTF-8. \throws Error that names `path`, for a line with more or fewer cells and for a table without
/// rows.
TextTable read_text_table(const std::string& path, const std::string& text);

/// Returns the result of read_spectrum_table() for the text of the file `path`.
SpectrumTable spectrum_table(const std::string& path, const std::string& text,
                             const std::vector<std::string>& needed,
                             const std::vector<std::string>& optional);

/// Returns the number in a cell; NaN for other texts. The number may have a decimal point or comma, an
/// exponent (1.5e-3, or Fortran's 1.5D-03), and blanks between thousands (1 030.5).
double cell_number(const std::string& cell);
/// Returns 0.1 for "10 %" and "10%"; NaN if the cell does not have a per cent sign.
double percent_number(const std::string& cell);
/// Returns the numbers in the cells of a spectrum, with or without per cent signs. \throws Error that names
/// `path` and `what` if only some cells have the sign.
std::vector<double> spectrum_numbers(const std::string& path, const std::string& what,
                                     const std::vector<std::string>& cells);
/// Returns true for an empty cell and for texts that denote missing values (NA, nan, null, -, #N/A ...).
bool is_empty_cell(const std::string& cell);

} // namespace hsi::raster
