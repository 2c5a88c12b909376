// SPDX-License-Identifier: MIT
// A tool's definition as JSON: the output of --json-usage, and libhsi's description of its algorithms
// (docs/json_usage.md).
#pragma once

#include "core/json.h"
#include "tool/definition.h"

namespace hsi::tool {

/// True for an argument that does not apply to arrays in place of files: formats and their options, features
/// of vector files, what is printed or recorded where.
bool is_about_files(const Argument& argument);

/// Name, type, role, limits, choices and defaults.
OrderedJson argument_json(const Argument& argument);

/// name, executable, version, title, description, arrays, arguments, exclusive, examples.
OrderedJson definition_json(const Declaration& declaration);

} // namespace hsi::tool
