// SPDX-License-Identifier: MIT
// All tools of the suite: each file gdal_hsi_NAME.cpp of this folder defines hsi::tools::NAME, and CMake
// generates the list (catalogue.cpp.in).
#pragma once

#include "tool/definition.h"

#include <vector>

namespace hsi::tools {

/// Returns the tools in alphabetical order.
const std::vector<const tool::Definition*>& catalogue();

} // namespace hsi::tools
