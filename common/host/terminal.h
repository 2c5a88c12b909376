// SPDX-License-Identifier: MIT
// The terminal as a host: words to arguments, a progress bar, messages on stderr, signals, exit codes.
#pragma once

#include "tool/definition.h"

namespace hsi::host {

/// The whole main() of a tool. Single-dash long options (-ws) and double-dash ones (--ws) mean the same. Exit
/// codes: 0 done, 1 the work failed, 2 the command line was wrong. Errors go to stderr: "ERROR: what is
/// wrong", then what to do. One at a time in a process: signals and GDAL's messages are the process's.
int run_in_terminal(const tool::Definition& definition, int argc, char** argv);

/// Hands words as they stand on a command line to a call's arguments. \throws UsageError.
void give_words(tool::Call& call, const std::vector<std::string>& words);

} // namespace hsi::host
