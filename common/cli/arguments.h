// SPDX-License-Identifier: MIT
// The words of a command line before the option parser sees them: option files, general GDAL options, single
// dashes. No option library, no raster here, so that this can be tested on words alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hsi::cli {

/// An option of the tool: its spellings without dashes ("of", "b", "q", "quiet") and how many values follow
/// it.
struct KnownOption {
    std::vector<std::string> names;
    int values = 0; ///< 0: a flag
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

/// What a command line asks for, and its words in the form the option parser takes: -name for one letter,
/// --name for longer ones, "=value" split off.
struct Normalized {
    bool help = false; ///< -h or --help stands where an option can stand
    std::vector<std::string> words;
};

/// Turns GDAL's spelling into the parser's. Values of options (as many as KnownOption says) are passed on
/// untouched, so -9999, "-" and names that begin with a dash are safe there; so is everything after "--". A
/// number is never an option. Throws UsageError for an option that the tool does not have, and for one whose
/// values are missing.
Normalized normalize(const std::vector<std::string>& words, const std::vector<KnownOption>& known);

/// The option of `known` that is spelled most like `name`, or empty when none is near.
std::string nearest_option(const std::string& name, const std::vector<KnownOption>& known);

/// The command line as a shell would need it; values of configuration and open options that look like secrets
/// (PASSWORD, SECRET, TOKEN ...) are replaced by ***. `tool` takes the place of the executable's path.
std::string quote_command(const std::string& tool, const std::vector<std::string>& words);

/// A number in full: digits, nan, inf with a sign; nothing when the text is anything else.
std::optional<double> parse_number(std::string_view text);
std::optional<long long> parse_integer(std::string_view text);

/// Threads when -threads does not say it: GDAL's configuration option GDAL_NUM_THREADS (a number or
/// ALL_CPUS), else all processors that the process may keep busy. Throws UsageError when the configuration
/// option is neither.
int default_threads(int most);

} // namespace hsi::cli
