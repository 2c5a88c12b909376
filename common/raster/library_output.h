// SPDX-License-Identifier: MIT
// Spectral libraries as outputs.
#pragma once

#include "raster/spectral_library.h"
#include "raster/text_output.h"

#include <string>

namespace hsi::raster {

/// What can be refused before work is done: an extension other than .sli and .csv, an existing file (or
/// header of a .sli) without overwrite, a folder that is missing. Throws Error or UsageError naming its role.
/// `also`: a form that the caller writes itself, for the message.
void check_library_output(const TextOutput& output, const std::string& also = "");

/// Writes .sli (Float32 or Float64, with its .hdr; its list "band numbers" tells band_numbers) or .csv (lines
/// in the order of the bands' numbers where they are all that is known of them), at once or with all outputs
/// of output.run. Wavelengths that are not known are "nan" in the header and empty cells of a table. Returns
/// what the user should hear of it: names that a .sli cannot hold as they are, which are then other names
/// than those of all other spectra; mostly nothing. Throws Error; an old file is then untouched.
std::string write_spectral_library(const TextOutput& output, const SpectralLibrary& library,
                                   const std::string& history);

} // namespace hsi::raster
