// SPDX-License-Identifier: MIT
// The definition of a tool as JSON: the output of --json-usage, and libhsi's description of its algorithms
// (docs/json_usage.md).
#pragma once

#include "core/json.h"
#include "tool/definition.h"

namespace hsi::tool {

/// Returns true for arguments that do not apply to arrays: formats and their options, features of vector
/// files, and where results are printed or recorded.
bool is_about_files(const Argument& argument);

/// Returns name, type, role, limits, choices and defaults.
OrderedJson argument_json(const Argument& argument);

/// Returns name, executable, version, title, description, arrays, arguments, exclusive, examples.
OrderedJson definition_json(const Declaration& declaration);

} // namespace hsi::tool
