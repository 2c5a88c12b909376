// SPDX-License-Identifier: MIT
// A command line with one word per line: configuration options are removed, options with values are separated
// from arguments, and the command is quoted for the history.
#include "terminal/command_line.h"
#include "fuzz/fuzz.h"

#include <algorithm>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    const std::vector<terminal::KnownOption> known{
        {{"of"}, 1},           {{"b"}, 1},         {{"q", "quiet"}, 0}, {{"srcwin"}, 4}, {{"tile"}, 2},
        {{"t", "targets"}, 1}, {{"overwrite"}, 0}, {{"dstnodata"}, 1}};
    auto words = fuzz::split(std::string(reinterpret_cast<const char*>(data), size), '\n');
    for (auto& word : words)
        // --optfile names a file, and this test must not read files.
        if (word == "--optfile") word = "--other";
    fuzz::expect(!terminal::quote_command("tool", words).empty(), "any command can be quoted");
    try {
        words = terminal::expand_option_files(words);
        const size_t before = words.size();
        const auto configuration = terminal::take_configuration(words);
        fuzz::expect(words.size() + 3 * configuration.size() >= before && words.size() <= before,
                     "configuration takes its own words alone");
        const auto line = terminal::parse_words(words, known);
        size_t found = line.arguments.size();
        for (const auto& option : line.options) {
            const auto named = [&](const terminal::KnownOption& one) {
                return std::find(one.names.begin(), one.names.end(), option.name) != one.names.end();
            };
            const auto one = std::find_if(known.begin(), known.end(), named);
            fuzz::expect(one != known.end(), "an option is one of those that are known");
            fuzz::expect(option.values.size() == static_cast<size_t>(one->values), "it has all its values");
            found += 1 + option.values.size();
        }
        fuzz::expect(found <= 2 * words.size(), "no word comes from nowhere");
    } catch (const Error&) {
    }
    return 0;
}
