// SPDX-License-Identifier: MIT
// A word a line: configuration taken out, dashes put right, and the command quoted for the record.
#include "cli/arguments.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    const std::vector<cli::KnownOption> known{{{"of"}, 1},        {{"b"}, 1},        {{"q", "quiet"}, 0},
                                              {{"srcwin"}, 4},    {{"tile"}, 2},     {{"t", "targets"}, 1},
                                              {{"overwrite"}, 0}, {{"dstnodata"}, 1}};
    auto words = fuzz::split(std::string(reinterpret_cast<const char*>(data), size), '\n');
    for (auto& word : words)
        if (word == "--optfile") word = "--other"; // a file's name: the disk is none of this
    fuzz::expect(!cli::quote_command("tool", words).empty(), "any command can be quoted");
    try {
        words = cli::expand_option_files(words);
        const size_t before = words.size();
        const auto configuration = cli::take_configuration(words);
        fuzz::expect(words.size() + 3 * configuration.size() >= before && words.size() <= before,
                     "configuration takes its own words alone");
        const auto once = cli::normalize(words, known);
        const auto twice = cli::normalize(once.words, known);
        fuzz::expect(!twice.help && twice.words == once.words, "what is normal stays as it is");
        size_t values = 0;
        for (const auto& word : once.words)
            values += word.size() > 1 && word[0] == '-' ? 0 : 1;
        fuzz::expect(values <= 2 * words.size(), "no word comes from nowhere");
    } catch (const Error&) {
    }
    return 0;
}
