// SPDX-License-Identifier: MIT
// The words of a command line: option files, general GDAL options, options with their values, arguments.
// Words alone, no tool and no raster, so that this can be tested on them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hsi::terminal {

/// An option of the tool: its spellings without dashes ("of", "b", "q", "quiet") and how many values follow
/// it.
struct KnownOption {
    std::vector<std::string> names;
    int values = 0;     ///< 0: a flag
    bool lists = false; ///< one word @FILE may replace the values
};

/// Replaces every "--optfile FILE" by the words of the file (one or more a line, quotes as GDAL reads them,
/// lines that begin with # left out); their names go to `read`. Throws UsageError when the file is missing or
/// cannot be read.
std::vector<std::string> expand_option_files(std::vector<std::string> words,
                                             std::vector<std::string>* read = nullptr);

/// Takes "--config KEY VALUE", "--config KEY=VALUE" and "--debug VALUE" out of `words` and returns the
/// configuration options in order (--debug is CPL_DEBUG). Stops at "--". Throws UsageError when a value is
/// missing.
std::vector<std::pair<std::string, std::string>> take_configuration(std::vector<std::string>& words);

/// An option on a command line, with the values that follow it.
struct GivenOption {
    std::string name; ///< without dashes, as it was spelled
    std::vector<std::string> values;
    bool operator==(const GivenOption&) const = default;
};

/// The parsed command line.
struct CommandLine {
    bool help = false;                ///< -h or --help is at a place for options
    bool json_usage = false;          ///< --json-usage does
    std::vector<GivenOption> options; ///< in order
    std::vector<std::string> arguments;
};

/// Reads options as GDAL's users write them: one dash or two, "=value" or the next words. Values (as many as
/// KnownOption states) are taken untouched, so -9999, "-" and names that begin with a dash are safe there;
/// everything after "--" is an argument, and a number is never an option. rest: everything after the first
/// argument is, too. Throws UsageError for an option that the tool does not have, and for one whose values
/// are missing.
CommandLine parse_words(const std::vector<std::string>& words, const std::vector<KnownOption>& known,
                        bool rest = false);

/// The command line as a shell would need it; values of configuration and open options that look like secrets
/// (PASSWORD, SECRET, TOKEN ...) are replaced by ***. `tool` takes the place of the executable's path.
std::string quote_command(const std::string& tool, const std::vector<std::string>& words);

} // namespace hsi::terminal
