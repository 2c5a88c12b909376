// SPDX-License-Identifier: MIT
// Manual pages of section 1, in roff with the man macros, made from definitions.
#pragma once

#include "tool/definition.h"

#include <string>
#include <vector>

namespace hsi::terminal {

/// A tool's page.
std::string man_page(const tool::Declaration& declaration);

/// The page of gdal_hsi, which names all tools.
std::string suite_man_page(const std::vector<const tool::Definition*>& tools);

} // namespace hsi::terminal
