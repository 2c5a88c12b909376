// SPDX-License-Identifier: MIT
#include "tool/words.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hsi::tool {
namespace {

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

TEST(Words, RangesOfNumbers) {
    const std::vector<std::pair<std::vector<int>, const char*>> cases = {
        {{}, ""},
        {{4}, "4"},
        {{4, 5}, "4, 5"},
        {{92, 93, 94, 120}, "92 to 94, 120"},
        {{1, 3, 4, 5, 9, 10}, "1, 3 to 5, 9, 10"}};
    for (const auto& one : cases)
        EXPECT_EQ(ranges_text(one.first), one.second);
}

} // namespace
} // namespace hsi::tool
