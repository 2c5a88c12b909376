// SPDX-License-Identifier: MIT
// Words that can come next on a command line, for a shell's completion.
#pragma once

#include "tool/definition.h"

#include <string>
#include <vector>

namespace hsi::terminal {

/// Candidates for the last of `words` (the words after the tool's name, the last one possibly empty), one per
/// line; the single line "FILES" where a file is expected. Candidates begin with the typed text, in any case
/// for values. A candidate that ends with "=" needs a value: creation options (-co, -dsco, -lco) come from
/// the driver of -of or of the output's extension, open options (-oo) from the driver of -if or of the scene.
std::string completions(const tool::Declaration& declaration, const std::vector<std::string>& words);

} // namespace hsi::terminal
