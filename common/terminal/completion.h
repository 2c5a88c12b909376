// SPDX-License-Identifier: MIT
// Words that can come next on a command line, for completion in a shell.
#pragma once

#include "tool/definition.h"

#include <string>
#include <vector>

namespace hsi::terminal {

/// Returns candidates for the last of `words` (the words after the tool's name, the last one possibly empty),
/// one per text line, or "FILES" if a file is expected. Candidates begin with the typed text; values may
/// differ in case. A candidate that ends with "=" needs a value: creation options (-co, -dsco, -lco) of the
/// driver of -of or of the output's extension, open options (-oo) of the driver of -if or of the scene.
std::string completions(const tool::Declaration& declaration, const std::vector<std::string>& words);

} // namespace hsi::terminal
