// SPDX-License-Identifier: MIT
// Tables of text with one spectrum per row, as spectral libraries.
#pragma once

#include "raster/libraries/library_formats.h"
#include "raster/libraries/text_table.h"

#include <optional>
#include <string>

namespace hsi::raster {

/// Returns the unit of wavelengths that all cells of a column called unit state; empty otherwise.
std::string stated_unit_of_column(const TextTable& table, size_t c);

/// Reads one spectrum per text line, below column names that are wavelengths (in nm, um, cm-1 ..., in any
/// order if the names state the unit) or band numbers; nullopt for other tables. Text lines with widths, bad
/// bands or the same wavelengths are not spectra. `known`: the head certainly contains wavelengths.
/// \throws Error that names `path`: a text line with other wavelengths, cells with and without %.
std::optional<SpectralLibrary> library_of_rows(const std::string& path, const TextTable& table, bool known);

} // namespace hsi::raster
