// SPDX-License-Identifier: MIT
// The terminal as a front end: words to arguments, a progress bar, messages on stderr, signals, exit codes.
// There is one for a single tool, and one for all tools behind one executable.
#pragma once

#include "tool/definition.h"

#include <vector>

namespace hsi::terminal {

/// The whole main() of a tool. Single-dash long options (-ws) and double-dash ones (--ws) mean the same. Exit
/// codes: 0 done, 1 the work failed, 2 the command line was wrong. Errors go to stderr: "ERROR: " with the
/// fault, then the advice. One at a time in a process: signals and GDAL's messages are the process's.
/// `tools`: those that the user may call.
int run_in_terminal(const tool::Definition& definition, int argc, char** argv,
                    const std::vector<const tool::Definition*>& tools = {});

/// Hands the words of a command line to a call's arguments. \throws UsageError.
void give_words(tool::Call& call, const std::vector<std::string>& words);

/// The main() of the suite. When the executable's name is a tool's (gdal_hsi_spp, a link), that tool in the
/// terminal. Else the first word selects: a tool's name ("spp src dst"), or
///   --help, --version, --json-usage   about the suite
///   --man NAME                        a manual page: of a tool, or of gdal_hsi
///   --option-table NAME               a tool's arguments and own options as Markdown tables, for its page in
///                                     docs; "shared": the options that tools share
///   --complete WORDS the possible next words, for a shell
int run_suite(const std::vector<const tool::Definition*>& tools, int argc, char** argv);

} // namespace hsi::terminal
