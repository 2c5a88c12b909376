// SPDX-License-Identifier: MIT
// All tools of the suite: each file gdal_hsi_NAME.cpp of this folder defines hsi::tools::NAME, and CMake
// makes the list of them (catalogue.cpp.in).
#pragma once

#include "tool/definition.h"

#include <vector>

namespace hsi::tools {

/// In alphabetical order.
const std::vector<const tool::Definition*>& catalogue();

} // namespace hsi::tools
