// SPDX-License-Identifier: MIT
// The tools that work on arrays: all but those that are about files (CMakeLists.txt), which CMake lists.
#pragma once

#include "tool/definition.h"

#include <vector>

namespace hsi::arrays {

/// In alphabetical order.
const std::vector<const tool::Definition*>& catalogue();

} // namespace hsi::arrays
