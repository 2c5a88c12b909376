// SPDX-License-Identifier: MIT
// Spectral libraries as outputs.
#pragma once

#include "raster/spectral_library.h"
#include "raster/text_output.h"

#include <string>

namespace hsi::raster {

/// Checks an output before the work begins. Throws Error or UsageError that names the output's role, for an
/// extension other than .sli and .csv, for an existing file without overwrite, for a header that belongs to
/// another file, and for a missing folder. `also` is the extension of a further format, which the caller
/// writes itself; the message lists it.
void check_library_output(const TextOutput& output, const std::string& also = "");

/// Writes a .sli with its .hdr, or a .csv: at once, or together with all outputs of output.run. A .sli has
/// Float32 samples, or Float64 samples if SpectralLibrary::twofold is set. Its header lists band_numbers as
/// "band numbers". If the bands have numbers but no wavelengths, the rows of a .csv are in the order of these
/// numbers. Unknown wavelengths are "nan" in the header and empty cells of a table. Returns a note for the
/// user about names that a .sli cannot represent and their replacements, which differ from all other names;
/// usually empty. Throws Error; an old file is then unchanged.
std::string write_spectral_library(const TextOutput& output, const SpectralLibrary& library,
                                   const std::string& history);

} // namespace hsi::raster
