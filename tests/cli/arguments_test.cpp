// SPDX-License-Identifier: MIT
#include "cli/arguments.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>

namespace hsi::cli {
namespace {

using Words = std::vector<std::string>;

const std::vector<KnownOption>& known() {
    static const std::vector<KnownOption> options{{{"of"}, 1},        {{"b"}, 1},         {{"quiet", "q"}, 0},
                                                  {{"srcwin"}, 4},    {{"srcnodata"}, 1}, {{"k"}, 1},
                                                  {{"overwrite"}, 0}, {{"dry-run"}, 0}};
    return options;
}

Words normal(const Words& words) { return normalize(words, known()).words; }

TEST(Normalize, TakesOneDashOrTwo) {
    EXPECT_EQ(normal({"-of", "ENVI", "a", "b"}), (Words{"--of", "ENVI", "a", "b"}));
    EXPECT_EQ(normal({"--of", "ENVI", "a", "b"}), (Words{"--of", "ENVI", "a", "b"}));
    EXPECT_EQ(normal({"-of=ENVI"}), (Words{"--of", "ENVI"}));
    EXPECT_EQ(normal({"--of=ENVI"}), (Words{"--of", "ENVI"}));
    EXPECT_EQ(normal({"-b", "3", "--b", "4", "-q", "--q", "-quiet", "-dry-run"}),
              (Words{"-b", "3", "-b", "4", "-q", "-q", "--quiet", "--dry-run"}));
}

TEST(Normalize, LeavesValuesAlone) {
    EXPECT_EQ(normal({"-srcnodata", "-9999", "-q"}), (Words{"--srcnodata", "-9999", "-q"}));
    EXPECT_EQ(normal({"-srcnodata", "-inf"}), (Words{"--srcnodata", "-inf"}));
    EXPECT_EQ(normal({"-srcwin", "-1", "-2", "-of", "-b"}), (Words{"--srcwin", "-1", "-2", "-of", "-b"}));
    EXPECT_EQ(normal({"-of", "-of"}), (Words{"--of", "-of"}));
    EXPECT_EQ(normal({"-of", "a=b"}), (Words{"--of", "a=b"}));
    EXPECT_EQ(normal({"-of=a=b"}), (Words{"--of", "a=b"}));
}

TEST(Normalize, LeavesArgumentsAlone) {
    EXPECT_EQ(normal({"-", "-5", "-.5e3", ""}), (Words{"-", "-5", "-.5e3", ""}));
    EXPECT_EQ(normal({"-q", "--", "-of", "-x", "--"}), (Words{"-q", "--", "-of", "-x", "--"}));
}

TEST(Normalize, SeesHelpOnlyWhereAnOptionCanStand) {
    EXPECT_TRUE(normalize({"-h"}, known()).help);
    EXPECT_TRUE(normalize({"a", "--help"}, known()).help);
    EXPECT_TRUE(normalize({"-help"}, known()).help);
    EXPECT_FALSE(normalize({"-of", "-h"}, known()).help);
    EXPECT_FALSE(normalize({"--", "-h"}, known()).help);
}

std::pair<std::string, std::string> refusal(const Words& words) {
    try {
        normal(words);
    } catch (const UsageError& error) {
        return {error.what(), error.advice()};
    }
    return {"accepted", ""};
}

TEST(Normalize, RefusesUnknownOptionsWithANearOne) {
    EXPECT_EQ(refusal({"-overwite"}), (std::pair<std::string, std::string>{"unknown option '-overwite'",
                                                                           "Did you mean -overwrite?"}));
    EXPECT_EQ(refusal({"--src-win", "1"}).second, "Did you mean -srcwin?");
    EXPECT_EQ(refusal({"-completely-else"}),
              (std::pair<std::string, std::string>{"unknown option '-completely-else'", ""}));
    EXPECT_EQ(refusal({"-b5"}).first, "unknown option '-b5'");
    EXPECT_EQ(refusal({"--5"}).first, "unknown option '--5'");
}

TEST(Normalize, RefusesMissingAndNeedlessValues) {
    EXPECT_EQ(refusal({"-of"}).first, "-of: its value is missing");
    EXPECT_EQ(refusal({"-srcwin", "1", "2", "3"}).first, "-srcwin: 4 values are needed, 3 were given");
    EXPECT_EQ(refusal({"-overwrite=no"}).first, "-overwrite takes no value, 'no' was given");
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
    const std::string path = testing::TempDir() + "hsi_optfile.txt";
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

TEST(Numbers, AreReadInFull) {
    EXPECT_EQ(parse_number("-9999"), -9999.0);
    EXPECT_EQ(parse_number("+1e-3"), 1e-3);
    EXPECT_TRUE(std::isnan(parse_number("NaN").value()));
    EXPECT_EQ(parse_number("-inf"), -HUGE_VAL);
    for (const char* bad : {"", "1x", "x", " 1", "1,5", "-"})
        EXPECT_FALSE(parse_number(bad)) << bad;
    EXPECT_EQ(parse_integer("-12"), -12);
    for (const char* bad : {"", "1.0", "1e3", "99999999999999999999"})
        EXPECT_FALSE(parse_integer(bad)) << bad;
}

} // namespace
} // namespace hsi::cli
