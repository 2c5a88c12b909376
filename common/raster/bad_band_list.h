// SPDX-License-Identifier: MIT
// Writes the bad-band list (bbl) of an existing ENVI header.
#pragma once

#include "raster/text_output.h"

#include <string>
#include <vector>

namespace hsi::raster {

/// Returns true for a name that ends in .hdr. An output with such a name requests a bad-band list in an ENVI
/// header.
bool names_envi_header(const std::string& path);

/// Makes all checks that can fail before the work begins. \throws Error unless output.path is an ENVI header
/// with `bands` bands that can be replaced.
void check_bad_band_list(const TextOutput& output, int bands);

/// Sets bbl to 1 for good bands and to 0 for bad bands. All other bytes of the header are unchanged. The new
/// header replaces the old one together with the outputs of output.run, even if the run has read the old
/// header. A header that already has the same list is not changed. \throws Error.
void set_bad_band_list(const TextOutput& output, const std::vector<char>& good);

} // namespace hsi::raster
