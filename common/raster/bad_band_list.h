// SPDX-License-Identifier: MIT
// The bad-band list (bbl) of an ENVI header that is there.
#pragma once

#include "raster/text_output.h"

#include <string>
#include <vector>

namespace hsi::raster {

/// Whether such a list is asked for: a name that ends in .hdr.
bool names_envi_header(const std::string& path);

/// Everything that can be refused before work is done. \throws Error unless output.path is an ENVI header of
/// `bands` bands that can be replaced.
void check_bad_band_list(const TextOutput& output, int bands);

/// Sets bbl to 1 for good bands, 0 for others; all else of the header stays byte for byte. The new header
/// takes the place of the old one with the outputs of output.run, also where the run has read it; one that
/// says the same already is left alone. \throws Error.
void set_bad_band_list(const TextOutput& output, const std::vector<char>& good);

} // namespace hsi::raster
