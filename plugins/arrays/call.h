// SPDX-License-Identifier: MIT
// A call of a tool from options as JSON.
#pragma once

#include "core/json.h"
#include "tool/definition.h"

#include <string>

namespace hsi::arrays {

/// The definition as JSON, without arguments that are about files.
OrderedJson description_of(const tool::Definition& definition);

/// Gives the options to the call. Names may have _ for -. \throws UsageError for a text that is not an
/// object, unknown names, and values that do not fit the argument.
void give_options(tool::Call& call, const std::string& options);

} // namespace hsi::arrays
