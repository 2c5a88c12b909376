// SPDX-License-Identifier: MIT
// Two scenes of one size.
#pragma once

#include "gdal_hsi_compare/settings.h"
#include "tool/run.h"

namespace hsi::compare_tool {

/// Compares src and other; the result is printed, reported and written to -o.
void compare_scenes(tool::Run& run, Settings s);

} // namespace hsi::compare_tool
