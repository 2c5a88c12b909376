// SPDX-License-Identifier: MIT
// Splits a command line into option files, general GDAL options, options with their values, and arguments.
// The functions depend on neither a tool nor a raster, so they can be tested separately.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hsi::terminal {

/// An option of the tool: its spellings without dashes ("of", "b", "q", "quiet") and the number of values
/// after it.
struct KnownOption {
    std::vector<std::string> names;
    int values = 0;     ///< 0: a flag
    bool lists = false; ///< one word @FILE may replace the values
};

/// Replaces every "--optfile FILE" by the words of the file and appends the file names to `read`. A file has
/// one or more words per text line, with quotes as in GDAL; text lines that begin with # are ignored. Throws
/// UsageError if the file is missing or cannot be read.
std::vector<std::string> expand_option_files(std::vector<std::string> words,
                                             std::vector<std::string>* read = nullptr);

/// Removes "--config KEY VALUE", "--config KEY=VALUE" and "--debug VALUE" from `words` and returns the
/// configuration options in order (--debug sets CPL_DEBUG). Stops at "--". Throws UsageError if a value is
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
    bool help = false;                ///< -h or --help was given where options are allowed
    bool json_usage = false;          ///< --json-usage was given where options are allowed
    std::vector<GivenOption> options; ///< in order
    std::vector<std::string> arguments;
};

/// Reads options as GDAL's users write them: with one dash or two, and with "=value" or the next words as
/// values. An option takes as many values as KnownOption states, whatever they look like. So -9999, "-" and
/// names that begin with a dash are safe as values. Everything after "--" is an argument, and a number is
/// never an option. rest = true: everything after the first argument is an argument. Throws UsageError for
/// unknown options and for missing values.
CommandLine parse_words(const std::vector<std::string>& words, const std::vector<KnownOption>& known,
                        bool rest = false);

/// Returns the command line quoted for a shell. Values of configuration and open options that look like
/// secrets (PASSWORD, SECRET, TOKEN ...) are replaced by ***. `tool` replaces the executable's path.
std::string quote_command(const std::string& tool, const std::vector<std::string>& words);

} // namespace hsi::terminal
