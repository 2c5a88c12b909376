// SPDX-License-Identifier: MIT
#include "terminal/command_line.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace hsi::terminal {
namespace {

using Words = std::vector<std::string>;

const std::vector<KnownOption>& known() {
    static const std::vector<KnownOption> options{{{"of"}, 1},        {{"b"}, 1},         {{"quiet", "q"}, 0},
                                                  {{"srcwin"}, 4},    {{"srcnodata"}, 1}, {{"k"}, 1},
                                                  {{"overwrite"}, 0}, {{"dry-run"}, 0}};
    return options;
}

using Given = std::vector<GivenOption>;

Given options(const Words& words) { return parse_words(words, known()).options; }
Words arguments(const Words& words) { return parse_words(words, known()).arguments; }

TEST(ParseWords, TakesOneDashOrTwo) {
    for (const Words& words : {Words{"-of", "ENVI", "a", "b"}, Words{"--of", "ENVI", "a", "b"},
                               Words{"a", "-of=ENVI", "b"}, Words{"a", "b", "--of=ENVI"}}) {
        EXPECT_EQ(options(words), (Given{{"of", {"ENVI"}}}));
        EXPECT_EQ(arguments(words), (Words{"a", "b"}));
    }
    EXPECT_EQ(options({"-b", "3", "--b", "4", "-q", "--q", "-quiet", "-dry-run"}),
              (Given{{"b", {"3"}}, {"b", {"4"}}, {"q", {}}, {"q", {}}, {"quiet", {}}, {"dry-run", {}}}));
}

TEST(ParseWords, LeavesValuesAlone) {
    EXPECT_EQ(options({"-srcnodata", "-9999", "-q"}), (Given{{"srcnodata", {"-9999"}}, {"q", {}}}));
    EXPECT_EQ(options({"-srcnodata", "-inf"}), (Given{{"srcnodata", {"-inf"}}}));
    EXPECT_EQ(options({"-srcwin", "-1", "-2", "-of", "-b"}), (Given{{"srcwin", {"-1", "-2", "-of", "-b"}}}));
    EXPECT_EQ(options({"-of", "-of"}), (Given{{"of", {"-of"}}}));
    EXPECT_EQ(options({"-of", "a=b"}), (Given{{"of", {"a=b"}}}));
    EXPECT_EQ(options({"-of=a=b"}), (Given{{"of", {"a=b"}}}));
}

TEST(ParseWords, LeavesArgumentsAlone) {
    EXPECT_EQ(arguments({"-", "-5", "-.5e3", ""}), (Words{"-", "-5", "-.5e3", ""}));
    EXPECT_EQ(arguments({"-q", "--", "-of", "-x", "--"}), (Words{"-of", "-x", "--"}));
}

TEST(ParseWords, SeesHelpOnlyWhereAnOptionCanStand) {
    EXPECT_TRUE(parse_words({"-h"}, known()).help);
    EXPECT_TRUE(parse_words({"a", "--help"}, known()).help);
    EXPECT_TRUE(parse_words({"-help"}, known()).help);
    EXPECT_FALSE(parse_words({"-of", "-h"}, known()).help);
    EXPECT_FALSE(parse_words({"--", "-h"}, known()).help);
    EXPECT_TRUE(parse_words({"a", "--json-usage"}, known()).json_usage);
    EXPECT_FALSE(parse_words({"-of", "--json-usage"}, known()).json_usage);
}

std::pair<std::string, std::string> refusal(const Words& words) {
    try {
        parse_words(words, known());
    } catch (const UsageError& error) {
        return {error.what(), error.advice()};
    }
    return {"accepted", ""};
}

TEST(ParseWords, RefusesUnknownOptionsWithANearOne) {
    EXPECT_EQ(refusal({"-overwite"}), (std::pair<std::string, std::string>{"unknown option '-overwite'",
                                                                           "Did you mean -overwrite?"}));
    EXPECT_EQ(refusal({"--src-win", "1"}).second, "Did you mean -srcwin?");
    EXPECT_EQ(refusal({"-completely-else"}),
              (std::pair<std::string, std::string>{"unknown option '-completely-else'", ""}));
    EXPECT_EQ(refusal({"-b5"}).first, "unknown option '-b5'");
    EXPECT_EQ(refusal({"--5"}).first, "unknown option '--5'");
}

TEST(ParseWords, RefusesMissingAndNeedlessValues) {
    EXPECT_EQ(refusal({"-of"}).first, "-of: its value is missing");
    EXPECT_EQ(refusal({"-srcwin", "1", "2", "3"}).first, "-srcwin: 4 values are needed, but 3 were given");
    EXPECT_EQ(refusal({"-overwrite=no"}).first, "-overwrite takes no value, but 'no' was given");
}

TEST(Configuration, IsTakenOutOfTheWords) {
    Words words{"--config", "A",   "1",  "src",      "--config", "B=2=3", "--debug",
                "ON",       "dst", "--", "--config", "C",        "4"};
    const auto found = take_configuration(words);
    const std::vector<std::pair<std::string, std::string>> expected{
        {"A", "1"}, {"B", "2=3"}, {"CPL_DEBUG", "ON"}};
    EXPECT_EQ(found, expected);
    EXPECT_EQ(words, (Words{"src", "dst", "--", "--config", "C", "4"}));
    for (Words bad : {Words{"--config"}, Words{"--config", "A"}, Words{"--debug"}})
        EXPECT_THROW(take_configuration(bad), UsageError);
}

TEST(OptionFiles, AreExpanded) {
    const std::string path = testing::TempDir() + "hsi_optfile_" + std::to_string(getpid()) + ".txt";
    std::ofstream(path) << "# a comment\n-of ENVI\n\n-co \"NAME=a b\"\n";
    EXPECT_EQ(expand_option_files({"x", "--optfile", path, "y"}),
              (Words{"x", "-of", "ENVI", "-co", "NAME=a b", "y"}));
    EXPECT_EQ(expand_option_files({"--", "--optfile", path}), (Words{"--", "--optfile", path}));
    EXPECT_THROW(expand_option_files({"--optfile"}), UsageError);
    EXPECT_THROW(expand_option_files({"--optfile", path + ".missing"}), UsageError);
    std::ofstream(path) << "--optfile " << path << "\n";
    EXPECT_THROW(expand_option_files({"--optfile", path}), UsageError);
    std::remove(path.c_str());
}

TEST(QuoteCommand, IsWhatAShellNeeds) {
    EXPECT_EQ(quote_command("tool", {"-of", "ENVI", "a b.tif", "it's", "", "$x"}),
              "tool -of ENVI 'a b.tif' 'it'\\''s' '' '$x'");
}

TEST(QuoteCommand, HidesSecrets) {
    EXPECT_EQ(quote_command("tool", {"--config", "AWS_SECRET_ACCESS_KEY", "abc", "--config",
                                     "GDAL_HTTP_USERPWD=me:pw", "-oo", "PASSWORD=x", "--config",
                                     "GDAL_CACHEMAX", "64"}),
              "tool --config AWS_SECRET_ACCESS_KEY '***' --config 'GDAL_HTTP_USERPWD=***' -oo 'PASSWORD=***' "
              "--config GDAL_CACHEMAX 64");
}

} // namespace
} // namespace hsi::terminal
