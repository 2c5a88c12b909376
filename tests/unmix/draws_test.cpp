// SPDX-License-Identifier: MIT
#include "unmix/draws.h"

#include <gtest/gtest.h>

namespace hsi::test {
namespace {

using Subset = std::vector<std::vector<int>>;

TEST(Draws, ClassesByName) {
    const auto classes = unmix::classes_of(
        {"soil 3 17", "1-tree", "soil 3", "soil", "water_2", "a:1#2", "Soil,4", "12", "b 1 2 3"});
    EXPECT_EQ(classes.names, (std::vector<std::string>{"soil", "1-tree", "water", "a", "Soil", "12", "b 1"}));
    EXPECT_EQ(classes.members, (Subset{{0, 2, 3}, {1}, {4}, {5}, {6}, {7}, {8}}));
}

/// The page's table.
TEST(Draws, KnownSubsets) {
    unmix::Classes classes;
    classes.names = {"a", "b", "c"};
    classes.members = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 11}, {12}};
    unmix::DrawOptions options;
    options.per_class = 2;
    EXPECT_EQ(unmix::drawn(classes, options, 0), (Subset{{8, 9}, {10, 11}, {12}}));
    EXPECT_EQ(unmix::drawn(classes, options, 1), (Subset{{0, 3}, {10, 11}, {12}}));
    EXPECT_EQ(unmix::drawn(classes, options, 2), (Subset{{9, 5}, {10, 11}, {12}}));
}

} // namespace
} // namespace hsi::test
