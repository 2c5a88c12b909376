// SPDX-License-Identifier: MIT
// Runs tools from a terminal: converts words to arguments, shows a progress bar, prints messages to stderr,
// handles signals and returns exit codes. One function runs a single tool. Another runs all tools of one
// executable, and has the suite's own help and version.
#pragma once

#include "tool/definition.h"

#include <vector>

namespace hsi::terminal {

/// Runs the whole main() of a tool. Options with one dash (-ws) and two dashes (--ws) mean the same. Exit
/// codes: 0 success, 1 the work failed, 2 the command line was wrong. Errors are printed to stderr: "ERROR: "
/// with the fault, then the advice. Only one call may run in a process at a time, because signals and GDAL's
/// messages belong to the process. `tools`: all tools that the user may call, for tools that run other tools.
int run_in_terminal(const tool::Definition& definition, int argc, char** argv,
                    const std::vector<const tool::Definition*>& tools = {});

/// Passes the words of a command line to the arguments of a call. \throws UsageError.
void give_words(tool::Call& call, const std::vector<std::string>& words);

/// Runs the main() of the suite. If the executable has the name of a tool (a link gdal_hsi_spp), runs that
/// tool in the terminal. Otherwise the first word selects a tool by name ("spp src dst"), or
///   --help, --version, --json-usage   about the suite
///   --man NAME                        a manual page: of a tool, or of gdal_hsi
///   --option-table NAME               a tool's arguments and own options as Markdown tables, for its page in
///                                     docs; "shared": the options that tools share
///   --complete WORDS                  the possible next words, for a shell
int run_suite(const std::vector<const tool::Definition*>& tools, int argc, char** argv);

} // namespace hsi::terminal
