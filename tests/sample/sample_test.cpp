// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "sample/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace hsi::sample {
namespace {

constexpr int64_t samples = 80, lines = 60;

struct Scene {
    std::vector<int64_t> index;
    std::vector<uint16_t> value;
    std::vector<LabelClass> classes;
};

Scene scene() {
    Scene s;
    std::vector<int64_t> count(4, 0);
    for (int64_t i = 0; i < samples * lines; ++i) {
        const auto v = static_cast<uint16_t>(i % samples < 40   ? 1
                                             : i / samples < 55 ? 2
                                                                : (i % 7 == 0 ? 3 : 0));
        if (v == 0) continue;
        s.index.push_back(i);
        s.value.push_back(v);
        ++count[v];
    }
    s.classes = {{1, "corn", count[1]}, {2, "oats", count[2]}, {3, "", count[3]}};
    return s;
}

Split run(const Scene& s, const Options& o) { return split(s.index, s.value, samples, lines, s.classes, o); }

TEST(Sample, CountsAreKeptClassByClass) {
    const Scene s = scene();
    Options o;
    apply_share("20", false, s.classes, o);
    apply_share("15:3,oats", false, s.classes, o);
    const Split r = run(s, o);
    EXPECT_EQ(r.train.at(1), 20);
    EXPECT_EQ(r.train.at(2), 15);
    EXPECT_EQ(r.train.at(3), 15);
    for (const auto& c : s.classes)
        EXPECT_EQ(r.train.at(c.value) + r.test.at(c.value), c.pixels);
    EXPECT_EQ(r.left_out, 0);
}

TEST(Sample, FractionsAreShares) {
    const Scene s = scene();
    Options o;
    apply_share("0.25", true, s.classes, o);
    const Split r = run(s, o);
    for (const auto& c : s.classes)
        EXPECT_EQ(r.train.at(c.value), std::llround(0.25 * static_cast<double>(c.pixels)));
}

TEST(Sample, SeedDecidesAndClassesAreIndependent) {
    const Scene s = scene();
    Options o;
    o.by_class[3] = {9, 0};
    const auto first = run(s, o).part;
    EXPECT_EQ(run(s, o).part, first);
    Options more = o;
    more.by_class[1] = {7, 0};
    const auto changed = run(s, more).part;
    for (size_t i = 0; i < s.value.size(); ++i)
        if (s.value[i] != 1) {
            EXPECT_EQ(changed[i], first[i]);
        }
    o.seed = 2;
    EXPECT_NE(run(s, o).part, first);
}

TEST(Sample, DrawsEvenly) {
    // All pixels of class 1 are equally likely: with 240 of 2400 pixels, each pixel is drawn 40 times in 400
    // seeds on average, with a standard deviation of 6.
    const Scene s = scene();
    Options o;
    o.share = {s.classes[0].pixels / 10, 0};
    o.by_class[2] = {1, 0};
    o.by_class[3] = {1, 0};
    std::vector<int> drawn(s.index.size(), 0);
    for (o.seed = 1; o.seed <= 400; ++o.seed) {
        const auto part = run(s, o).part;
        for (size_t i = 0; i < part.size(); ++i)
            drawn[i] += part[i] == Part::train;
    }
    for (size_t i = 0; i < drawn.size(); ++i)
        if (s.value[i] == 1) {
            EXPECT_GT(drawn[i], 8);
            EXPECT_LT(drawn[i], 75);
        }
}

TEST(Sample, MinimumDistanceHoldsBetweenAllTrainingAndTestPixels) {
    const Scene s = scene();
    Options o;
    o.share = {30, 0};
    o.by_class[3] = {4, 0};
    o.min_distance = 5; // some pixels are exactly this far apart
    o.patches = 2;
    const Split r = run(s, o);
    EXPECT_GT(r.left_out, 0);
    EXPECT_EQ(r.train.at(1), 30);
    int64_t wrongly_dropped = 0;
    for (size_t i = 0; i < s.index.size(); ++i) {
        if (r.part[i] == Part::train) continue;
        double nearest = 1e9;
        for (size_t j = 0; j < s.index.size(); ++j)
            if (r.part[j] == Part::train)
                nearest = std::min(
                    nearest, std::hypot(static_cast<double>(s.index[i] / samples - s.index[j] / samples),
                                        static_cast<double>(s.index[i] % samples - s.index[j] % samples)));
        if (r.part[i] == Part::test)
            EXPECT_GE(nearest, 5);
        else
            wrongly_dropped += nearest >= 5;
    }
    EXPECT_EQ(wrongly_dropped, 0);
}

/// Returns the patch of every pixel, by spreading the least index among neighbours until nothing changes.
std::vector<size_t> spread(const Scene& s) {
    std::vector<size_t> patch(s.index.size());
    for (size_t i = 0; i < patch.size(); ++i)
        patch[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < patch.size(); ++i)
            for (size_t j = 0; j < patch.size(); ++j) {
                const int64_t dy = s.index[i] / samples - s.index[j] / samples,
                              dx = s.index[i] % samples - s.index[j] % samples;
                if (s.value[i] == s.value[j] && dy * dy <= 1 && dx * dx <= 1 && patch[j] < patch[i]) {
                    patch[i] = patch[j];
                    changed = true;
                }
            }
    }
    return patch;
}

Scene speckled(int64_t height) {
    Scene s;
    uint32_t state = 9;
    std::vector<int64_t> count(3, 0);
    for (int64_t i = 0; i < samples * height; ++i) {
        state = state * 1664525u + 1013904223u;
        const auto v = static_cast<uint16_t>((state >> 24) % 5);
        if (v == 0 || v > 2) continue;
        s.index.push_back(i);
        s.value.push_back(v);
        ++count[v];
    }
    s.classes = {{1, "", count[1]}, {2, "", count[2]}};
    return s;
}

TEST(Sample, PatchesAreWhatTouches) {
    const Scene s = speckled(12);
    const auto want = spread(s);
    const auto got = Patches(s.index, s.value, samples).numbers();
    std::map<size_t, size_t> number;
    for (size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(got[i], number.try_emplace(want[i], number.size()).first->second) << i;
    EXPECT_GT(number.size(), 50u);
}

TEST(Sample, JoinedPixelsAreOnePatch) {
    const Scene s = speckled(12);
    const auto before = Patches(s.index, s.value, samples).numbers();
    Patches patches(s.index, s.value, samples);
    std::vector<int64_t> line; // all pixels of line 5, and unlabelled pixels
    for (int64_t x = 0; x < samples; ++x)
        line.push_back(5 * samples + x);
    patches.join(2, line);
    patches.join(7, line);
    patches.join(1, {});
    const auto after = patches.numbers();
    std::set<size_t> of_line, joined;
    for (size_t i = 0; i < s.index.size(); ++i)
        if (s.index[i] / samples == 5 && s.value[i] == 2) {
            of_line.insert(before[i]);
            joined.insert(after[i]);
        }
    EXPECT_GT(of_line.size(), 3u);
    EXPECT_EQ(joined.size(), 1u);
    EXPECT_EQ(*std::max_element(after.begin(), after.end()) + of_line.size(),
              *std::max_element(before.begin(), before.end()) + 1);
}

TEST(Sample, NearestPixelsOfEachPatchAreKept) {
    const Scene s = speckled(30);
    const auto patch = Patches(s.index, s.value, samples).numbers();
    const auto kept = nearest_to_centres(s.index, samples, patch, 3);
    std::map<size_t, std::vector<size_t>> members;
    for (size_t i = 0; i < patch.size(); ++i)
        members[patch[i]].push_back(i);
    for (const auto& [number, pixels] : members) {
        double y = 0, x = 0;
        for (const size_t i : pixels) {
            y += static_cast<double>(s.index[i] / samples) / static_cast<double>(pixels.size());
            x += static_cast<double>(s.index[i] % samples) / static_cast<double>(pixels.size());
        }
        double farthest = 0, nearest = 1e9;
        size_t count = 0;
        for (const size_t i : pixels) {
            const double d = std::hypot(static_cast<double>(s.index[i] / samples) - y,
                                        static_cast<double>(s.index[i] % samples) - x);
            count += kept[i] != 0;
            (kept[i] != 0 ? farthest : nearest) = kept[i] != 0 ? std::max(farthest, d) : std::min(nearest, d);
        }
        EXPECT_EQ(count, std::min<size_t>(3, pixels.size()));
        EXPECT_LE(farthest, nearest + 1e-9);
    }
}

TEST(Sample, FoldsTestEveryPatchOnce) {
    const Scene s = speckled(30);
    const auto patch = Patches(s.index, s.value, samples).numbers();
    Options o;
    o.share = {-1, 1.0};
    for (const auto& by : {std::vector<size_t>(), patch}) {
        const auto all = folds(s.index, s.value, samples, 30, s.classes, o, 4, by);
        ASSERT_EQ(all.size(), 4u);
        std::map<size_t, std::set<size_t>> fold_of_patch;
        std::vector<int> tested(s.index.size(), 0);
        for (size_t k = 0; k < 4; ++k)
            for (size_t i = 0; i < s.index.size(); ++i) {
                EXPECT_NE(all[k].part[i], Part::left_out);
                if (all[k].part[i] != Part::test) continue;
                ++tested[i];
                if (!by.empty()) fold_of_patch[by[i]].insert(k);
            }
        EXPECT_EQ(std::count(tested.begin(), tested.end(), 1), static_cast<int64_t>(tested.size()));
        for (const auto& [number, which] : fold_of_patch)
            EXPECT_EQ(which.size(), 1u) << number;
        o.seed = 2;
        EXPECT_NE(folds(s.index, s.value, samples, 30, s.classes, o, 4, by)[0].part, all[0].part);
        o.seed = 1;
        EXPECT_EQ(folds(s.index, s.value, samples, 30, s.classes, o, 4, by)[3].part, all[3].part);
    }
    EXPECT_THROW(folds(s.index, s.value, samples, 30, s.classes, o, 4000, patch), Error);
}

TEST(Sample, TooFewPixelsNamesClassAndCount) {
    const Scene s = scene();
    Options o;
    o.share = {10, 0};
    o.by_class[3] = {5000, 0};
    try {
        run(s, o);
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("class 3 has " + std::to_string(s.classes[2].pixels)),
                  std::string::npos);
    }
    Options all;
    all.share = {-1, 1.0};
    EXPECT_THROW(run(s, all), Error); // no test pixel remains
}

TEST(Sample, AtMostSoManyOfAClass) {
    const Scene s = scene();
    Options o;
    apply_share("40 at most", false, s.classes, o);
    const Split result = run(s, o);
    for (const auto& c : s.classes)
        EXPECT_EQ(result.train.at(c.value), std::min<int64_t>(40, c.pixels)) << c.value;
    apply_share("7 at most:3", false, s.classes, o);
    EXPECT_EQ(run(s, o).train.at(3), 7);
}

TEST(Sample, FoldsOfGroupsKeepGroupsTogetherAndClassesApart) {
    // 12 groups of 10 pixels. Group g has class 1 + g % 3; the last two groups have two classes.
    std::vector<uint16_t> value;
    std::vector<size_t> group;
    for (size_t i = 0; i < 120; ++i) {
        group.push_back(100 + 7 * (i / 10));
        value.push_back(static_cast<uint16_t>(1 + (i >= 100 && i % 2 == 0 ? 0 : i / 10 % 3)));
    }
    for (const int count : {2, 4, 5}) {
        const auto fold = folds_of_groups(value, group, count, 1);
        std::map<size_t, std::set<int>> folds_of_group;
        std::map<int, int> pixels;
        std::map<uint16_t, std::set<int>> folds_of_class;
        for (size_t i = 0; i < fold.size(); ++i) {
            folds_of_group[group[i]].insert(fold[i]);
            folds_of_class[value[i]].insert(fold[i]);
            ++pixels[fold[i]];
        }
        for (const auto& one : folds_of_group)
            EXPECT_EQ(one.second.size(), 1u) << one.first;
        for (const auto& one : folds_of_class)
            EXPECT_GE(one.second.size(), 2u) << one.first;
        EXPECT_EQ(pixels.size(), static_cast<size_t>(count));
        for (const auto& one : pixels)
            EXPECT_LE(one.second, 10 * ((12 + count - 1) / count)) << count;
        EXPECT_EQ(folds_of_groups(value, group, count, 1), fold);
    }
    EXPECT_EQ(folds_of_groups({1, 2}, {5, 5}, 5, 1), (std::vector<int>{0, 0})) << "one group is one fold";
}

TEST(Sample, OptionForms) {
    const Scene s = scene();
    Options o;
    for (const char* bad : {"", "0", "-3", "1.5", "x", "5:", "5:1,,2", "5 ", " at most", "x at most",
                            "0 at most", "5 at least"})
        EXPECT_THROW(check_share(bad, false), UsageError) << bad;
    for (const char* bad : {"", "0", "1.01", "-0.1", "nan", "0.1:"})
        EXPECT_THROW(check_share(bad, true), UsageError) << bad;
    EXPECT_NO_THROW(check_share("15:1,7,9", false));
    EXPECT_THROW(apply_share("5:8", false, s.classes, o), UsageError);
    EXPECT_THROW(apply_share("5:wheat", false, s.classes, o), UsageError);
    apply_share("5:oats", false, s.classes, o);
    EXPECT_THROW(apply_share("6:oats", false, s.classes, o), UsageError) << "which of both?";
    EXPECT_THROW(apply_share("0.1:oats", true, s.classes, o), UsageError);
}

} // namespace
} // namespace hsi::sample
