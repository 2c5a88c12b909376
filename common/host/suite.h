// SPDX-License-Identifier: MIT
// All tools behind one executable.
#pragma once

#include "tool/definition.h"

#include <vector>

namespace hsi::host {

/// The main() of the suite. When the executable's name is a tool's (gdal_hsi_spp, a link), that tool in the
/// terminal. Else the first word says what to do: a tool's name ("spp src dst"), or
///   --help, --version, --json-usage   about the suite
///   --man NAME                        a manual page: of a tool, or of gdal_hsi
///   --option-table NAME               a tool's arguments and own options as Markdown tables, for its page in
///                                     docs; "shared": the options that tools share
///   --complete WORDS                  what can stand next, for a shell
int run_suite(const std::vector<const tool::Definition*>& tools, int argc, char** argv);

} // namespace hsi::host
