// SPDX-License-Identifier: MIT
// The bad-band list (bbl) of an existing ENVI header.
#pragma once

#include "raster/text_output.h"

#include <string>
#include <vector>

namespace hsi::raster {

/// True for a name that ends in .hdr, which requests such a list.
bool names_envi_header(const std::string& path);

/// Everything that can be refused before work is done. \throws Error unless output.path is an ENVI header of
/// `bands` bands that can be replaced.
void check_bad_band_list(const TextOutput& output, int bands);

/// Sets bbl to 1 for good bands, 0 for others; the rest of the header stays byte for byte. The new header
/// replaces the old one together with the outputs of output.run, even if the run has read it; a header with
/// the same list is not changed. \throws Error.
void set_bad_band_list(const TextOutput& output, const std::vector<char>& good);

} // namespace hsi::raster
