// SPDX-License-Identifier: MIT
// A tool's definition as JSON: what --json-usage prints, and what libhsi tells of its algorithms
// (docs/json_usage.md).
#pragma once

#include "core/json.h"
#include "tool/definition.h"

namespace hsi::tool {

/// An argument that means nothing where arrays take the place of files: formats and their options, features
/// of vector files, what is printed or recorded where.
bool is_about_files(const Argument& argument);

/// Name, type, role, limits, choices and defaults.
OrderedJson argument_json(const Argument& argument);

/// name, executable, version, title, description, arrays, arguments, exclusive, examples.
OrderedJson definition_json(const Declaration& declaration);

} // namespace hsi::tool
