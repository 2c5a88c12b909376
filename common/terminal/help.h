// SPDX-License-Identifier: MIT
// Texts for users, generated from the definition of a tool.
#pragma once

#include "tool/definition.h"

#include <string>
#include <utility>
#include <vector>

namespace hsi::terminal {

/// Returns the text of --help: usage, arguments, options by group, examples. Text lines have at most 100
/// letters.
std::string help_text(const tool::Declaration& declaration);

/// Returns the positional arguments in order: "src labels dst".
std::string usage_arguments(const tool::Declaration& declaration);

/// Returns an option with all its spellings and the name of its value: "-t, -targets N".
std::string option_text(const tool::Argument& argument);

/// Returns the summary with meanings of choices, limits and other rules: "Window size (3 to 63 pixels)".
std::string option_meaning(const tool::Declaration& declaration, const tool::Argument& argument);

/// Returns the default of the option; empty without a default.
std::string option_default(const tool::Argument& argument);

/// Returns meaning and default: "Window size (3 to 63 pixels) [5]".
std::string option_description(const tool::Declaration& declaration, const tool::Argument& argument);

/// Returns the tool's arguments and own options as Markdown tables, then the names of its shared
/// options.
std::string option_table(const tool::Declaration& declaration);

/// Returns the options that tools share, and those without a definition, as Markdown tables.
std::string shared_option_table();

/// Splits the text into pieces. The second member of a piece is true if the piece names an option of the tool
/// ("-ws").
std::vector<std::pair<std::string, bool>> split_at_options(const tool::Declaration& declaration,
                                                           const std::string& text);

/// Returns the headings of options in the order of the help. The tool's own options come first.
std::vector<std::string> option_groups(const tool::Declaration& declaration);

/// Returns the options of every tool that have no definition, with their summaries: --help, --version ...
const std::vector<std::pair<std::string, std::string>>& general_options();

} // namespace hsi::terminal
