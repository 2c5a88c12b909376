// SPDX-License-Identifier: MIT
// Describes tools as JSON, and sets the options of a tool's call from JSON.
#pragma once

#include "core/json.h"
#include "tool/definition.h"

#include <string>

namespace hsi::arrays {

/// Returns the definition as JSON, without the arguments that apply only to files.
OrderedJson description_of(const tool::Definition& definition);

/// Sets the options of the call. `options` is the text of a JSON object from names to values. A name may have
/// _ instead of -. \throws UsageError if the text is not a JSON object, or for an unknown name or an invalid
/// value.
void give_options(tool::Call& call, const std::string& options);

} // namespace hsi::arrays
