// SPDX-License-Identifier: MIT
// The tools that work on arrays: all tools except those that work only on files. CMakeLists.txt generates the
// source file of this list.
#pragma once

#include "tool/definition.h"

#include <vector>

namespace hsi::arrays {

/// Returns the tools that work on arrays, in alphabetical order.
const std::vector<const tool::Definition*>& catalogue();

} // namespace hsi::arrays
