// SPDX-License-Identifier: MIT
// Writes the bad-band list (bbl) of an existing ENVI header.
#pragma once

#include "raster/text_output.h"

#include <string>
#include <vector>

namespace hsi::raster {

/// Returns true for a name that ends in .hdr. If the user gives an output such a name, the bad-band list in
/// this ENVI header is set.
bool names_envi_header(const std::string& path);

/// Makes all checks that can fail before the work begins. \throws Error unless output.path is an ENVI header
/// that states `bands` bands and may be replaced.
void check_bad_band_list(const TextOutput& output, int bands);

/// Sets the field bbl of the header `output.path`: 1 for good bands, 0 for bad bands. All other bytes of the
/// header are unchanged. The new header replaces the old one together with the outputs of output.run, even if
/// the run has read the old header; without a run, at once. A header that already has the same list is not
/// replaced. \throws Error.
void set_bad_band_list(const TextOutput& output, const std::vector<char>& good);

} // namespace hsi::raster
