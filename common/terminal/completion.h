// SPDX-License-Identifier: MIT
// What can stand next on a command line, for a shell's completion.
#pragma once

#include "tool/definition.h"

#include <string>
#include <vector>

namespace hsi::terminal {

/// Candidates for the last of `words` (the words behind the tool's name, the last one possibly empty), a line
/// each; the one line "FILES" where a file is meant. Candidates begin with what was typed, whatever the case
/// of values. One that ends with "=" wants a value behind it: creation options (-co, -dsco, -lco) are those
/// of the driver that -of names or the extension of the output means, open options (-oo) those of -if or of
/// the scene's driver.
std::string completions(const tool::Declaration& declaration, const std::vector<std::string>& words);

} // namespace hsi::terminal
