// SPDX-License-Identifier: MIT
// Spectral libraries as outputs.
#pragma once

#include "raster/spectral_library.h"
#include "raster/text_output.h"

#include <string>

namespace hsi::raster {

/// Checks before work is done: an extension other than .sli and .csv, an existing file (or header of a .sli)
/// without overwrite, a missing folder. Throws Error or UsageError naming its role. `also`: a format that the
/// caller writes itself, for the message.
void check_library_output(const TextOutput& output, const std::string& also = "");

/// Writes .sli (Float32 or Float64, with its .hdr and its list "band numbers" for band_numbers) or .csv
/// (lines in the order of the bands' numbers if only these are known), at once or with all outputs of
/// output.run. Unknown wavelengths are "nan" in the header and empty cells of a table. Returns a note for the
/// user, usually empty: names that a .sli cannot hold as they are, and their replacements, which differ from
/// all other names. Throws Error; an old file is then untouched.
std::string write_spectral_library(const TextOutput& output, const SpectralLibrary& library,
                                   const std::string& history);

} // namespace hsi::raster
