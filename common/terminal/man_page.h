// SPDX-License-Identifier: MIT
// Manual pages of section 1 in roff with the man macros, generated from definitions.
#pragma once

#include "tool/definition.h"

#include <string>
#include <vector>

namespace hsi::terminal {

/// Returns the page of a tool.
std::string man_page(const tool::Declaration& declaration);

/// Returns the page of gdal_hsi, which lists all tools.
std::string suite_man_page(const std::vector<const tool::Definition*>& tools);

} // namespace hsi::terminal
