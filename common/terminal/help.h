// SPDX-License-Identifier: MIT
// A tool's texts for people, made from its definition.
#pragma once

#include "tool/definition.h"

#include <string>
#include <utility>
#include <vector>

namespace hsi::terminal {

/// --help: usage, arguments, options by group, examples; lines of at most 100 letters.
std::string help_text(const tool::Declaration& declaration);

/// "src labels dst": the arguments without a name, in order.
std::string usage_arguments(const tool::Declaration& declaration);

/// "-t, -targets N": an option with all its spellings and the placeholder of its value.
std::string option_text(const tool::Argument& argument);

/// The summary with the choices' meanings, limits and other rules: "Window size (3 to 63 pixels)".
std::string option_meaning(const tool::Declaration& declaration, const tool::Argument& argument);

/// The default of the option; empty without one.
std::string option_default(const tool::Argument& argument);

/// Both: "Window size (3 to 63 pixels) [5]".
std::string option_description(const tool::Declaration& declaration, const tool::Argument& argument);

/// The tool's arguments and its own options as Markdown tables, then the names of the shared ones that it
/// has.
std::string option_table(const tool::Declaration& declaration);

/// The options that tools share, with those that belong to no definition, as Markdown tables.
std::string shared_option_table();

/// The text in pieces, those that name an option of the call ("-ws") marked.
std::vector<std::pair<std::string, bool>> split_at_options(const tool::Declaration& declaration,
                                                           const std::string& text);

/// The headings of options in the order of the help: the tool's own first, they are why one reads this.
std::vector<std::string> option_groups(const tool::Declaration& declaration);

/// Options of every tool that belong to no definition, with their summaries: --help, --version ...
const std::vector<std::pair<std::string, std::string>>& general_options();

} // namespace hsi::terminal
