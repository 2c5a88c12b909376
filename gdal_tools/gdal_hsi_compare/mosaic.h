// SPDX-License-Identifier: MIT
// Compares scenes that overlap on the ground (-mosaic).
#pragma once

#include "gdal_hsi_compare/settings.h"
#include "tool/definition.h"
#include "tool/run.h"

namespace hsi::compare_tool {

/// Compares scenes where they overlap: each pair separately, and all pairs together.
void compare_mosaic(tool::Run& run, Settings s);

/// Checks options that cannot be used with -mosaic, and options that require -mosaic.
void check_mosaic(const tool::Call& call, const Settings& s);

} // namespace hsi::compare_tool
