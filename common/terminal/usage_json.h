// SPDX-License-Identifier: MIT
// A tool's definition as JSON, for forms, wrappers and documentation. docs/json_usage.md describes the
// schema.
#pragma once

#include "tool/definition.h"

#include <string>

namespace hsi::terminal {

/// The number of the schema: raised when a program that reads the old one would go wrong.
inline constexpr int usage_schema = 1;

/// One object and a line end.
std::string usage_json(const tool::Declaration& declaration);

} // namespace hsi::terminal
