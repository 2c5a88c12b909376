// SPDX-License-Identifier: MIT
// A call of a tool from options in JSON.
#pragma once

#include "core/json.h"
#include "tool/definition.h"

#include <string>

namespace hsi::arrays {

/// Returns the definition as JSON, without arguments for files.
OrderedJson description_of(const tool::Definition& definition);

/// Sets the options of the call. Names may have _ instead of -. \throws UsageError for a text that is not an
/// object, unknown names, and invalid values.
void give_options(tool::Call& call, const std::string& options);

} // namespace hsi::arrays
