// SPDX-License-Identifier: MIT
// Finds the words that can come next on a command line, for completion in a shell.
#pragma once

#include "tool/definition.h"

#include <string>
#include <vector>

namespace hsi::terminal {

/// Returns candidates for the last of `words`, one per text line, or "FILES" if a file is expected. `words`
/// are the words after the tool's name; the last one may be empty. Candidates begin with the typed text;
/// values may differ in case. A candidate that ends with "=" is an option of a GDAL driver and needs a value.
/// After -co, -dsco and -lco, these are the creation options of the driver of -of or of the output's
/// extension. After -oo, they are the open options of the driver of -if or of the scene.
std::string completions(const tool::Declaration& declaration, const std::vector<std::string>& words);

} // namespace hsi::terminal
