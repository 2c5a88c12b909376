// SPDX-License-Identifier: MIT
// Compares two scenes of the same size.
#pragma once

#include "gdal_hsi_compare/settings.h"
#include "tool/run.h"

namespace hsi::compare_tool {

/// Compares src with the other scene. Prints and reports the result, and writes it to -o.
void compare_scenes(tool::Run& run, Settings s);

} // namespace hsi::compare_tool
