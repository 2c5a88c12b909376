// SPDX-License-Identifier: MIT
// Reads text tables with one spectrum per row as spectral libraries.
#pragma once

#include "raster/libraries/library_formats.h"
#include "raster/libraries/text_table.h"

#include <optional>
#include <string>

namespace hsi::raster {

/// Returns the unit of wavelengths if column `c` is called unit and all its cells state the same unit; empty
/// otherwise.
std::string stated_unit_of_column(const TextTable& table, size_t c);

/// Reads a table with one spectrum per text line, whose column names are wavelengths or band numbers.
/// Wavelengths may have any order if the names state the unit (nm, um, cm-1 ...). Text lines that contain
/// FWHM, bad bands or the same wavelengths are not spectra. If `known` is true, the caller knows that the
/// column names are wavelengths. Returns nullopt if the table does not have this form. \throws Error that
/// names `path` if a text line contains different wavelengths, or if only some cells have a per cent sign.
std::optional<SpectralLibrary> library_of_rows(const std::string& path, const TextTable& table, bool known);

} // namespace hsi::raster
