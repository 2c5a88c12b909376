// SPDX-License-Identifier: MIT
#pragma once

#include "raster/libraries/library_formats.h"
#include "raster/libraries/text_table.h"

#include <optional>
#include <string>

namespace hsi::raster {

/// The unit of wavelengths that all cells of the column state, where it is called unit; empty otherwise.
std::string stated_unit_of_column(const TextTable& table, size_t c);

/// One spectrum per line, below column names that are wavelengths (in nm, um, cm-1 ..., in any order if the
/// names say so) or band numbers; nullopt for other tables. Lines of widths, of bad bands and of the same
/// wavelengths are not spectra. `known`: the head certainly has wavelengths.
/// \throws Error naming `path`: a line of other wavelengths, cells with and without %.
std::optional<SpectralLibrary> library_of_rows(const std::string& path, const TextTable& table, bool known);

} // namespace hsi::raster
