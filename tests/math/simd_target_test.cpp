// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "support/simd_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace hsi::math {
namespace {

TEST(SimdTarget, EveryNameSelectsWhatItNames) {
    std::set<std::string> targets;
    test::for_every_simd([&](const std::string& name) {
        const std::string target = simd_target();
        targets.insert(target);
        if (name == "avx512") {
            EXPECT_EQ(target.substr(0, 3), "AVX") << target;
            EXPECT_NE(target, "AVX2");
        } else if (name != "portable") {
            std::string lower = target;
            std::transform(lower.begin(), lower.end(), lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            EXPECT_EQ(lower.substr(0, name == "neon" ? 4 : std::string::npos), name);
        }
    });
    EXPECT_GE(targets.size() + 1, simd_names().size()); // "portable" may be a second name of another target
    EXPECT_EQ(simd_names().back(), "portable");
}

TEST(SimdTarget, CaseDoesNotMatterAndNothingChangesNothing) {
    const std::string before = simd_target();
    select_simd("");
    EXPECT_EQ(simd_target(), before);
    select_simd("PortABLE");
    const std::string portable = simd_target();
    test::for_every_simd([&](const std::string& name) {
        if (name == "portable") {
            EXPECT_EQ(simd_target(), portable);
        }
    });
    EXPECT_EQ(simd_target(), before);
}

TEST(SimdTarget, WhatIsNotThereIsToldWithWhatIs) {
    const std::string before = simd_target();
    for (const std::string name : {"avx", "sse5", "portable ", "?"}) {
        try {
            select_simd(name);
            ADD_FAILURE() << name << " was taken";
        } catch (const UsageError& e) {
            EXPECT_EQ(std::string(e.what()), "HSI_SIMD: '" + name + "' is not an instruction set");
            for (const std::string& possible : simd_names())
                EXPECT_NE(e.advice().find(possible), std::string::npos) << e.advice();
        }
    }
    const auto names = simd_names();
    for (const std::string name : {"avx512", "avx2", "sse4", "ssse3", "sse2", "neon", "sve"})
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            EXPECT_THROW(select_simd(name), UsageError);
        }
    EXPECT_EQ(simd_target(), before);
}

} // namespace
} // namespace hsi::math
