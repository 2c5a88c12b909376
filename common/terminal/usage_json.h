// SPDX-License-Identifier: MIT
// Returns the definition of a tool as JSON, for forms, wrappers and documentation. docs/json_usage.md
// describes the schema.
#pragma once

#include "tool/definition.h"

#include <string>

namespace hsi::terminal {

/// The version of the schema. The version is raised if programs that read the old schema would fail.
inline constexpr int usage_schema = 1;

/// Returns one object and a line end.
std::string usage_json(const tool::Declaration& declaration);

} // namespace hsi::terminal
