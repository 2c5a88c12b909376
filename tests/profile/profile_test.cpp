// SPDX-License-Identifier: MIT
// Profiles against threshold decomposition, iterated geodesic dilation and closed forms; Vachier's count of
// maxima; threads, stores and invalid pixels.
#include "profile/profile.h"

#include "core/cancel_scope.h"
#include "profile/max_tree.h"
#include "profile/naive_filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace hsi::profile {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr Attribute attributes[] = {Attribute::area,     Attribute::std,    Attribute::inertia,
                                    Attribute::diagonal, Attribute::height, Attribute::volume};

/// Returns clumps of integers, with flat parts, and holes that isolate some pixels.
std::vector<float> clumps(int64_t lines, int64_t samples, int most, uint32_t seed, double holes = 0.08) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<float> plane(static_cast<size_t>(lines * samples));
    for (int64_t y = 0; y < lines; ++y)
        for (int64_t x = 0; x < samples; ++x) {
            const double wave =
                std::sin(0.9 * static_cast<double>(x)) * std::cos(0.7 * static_cast<double>(y));
            const double v = most * (0.5 + 0.25 * wave + 0.25 * (2 * uniform(random) - 1));
            plane[static_cast<size_t>(y * samples + x)] =
                uniform(random) < holes ? nan_value : static_cast<float>(std::floor(v));
        }
    return plane;
}

struct Case {
    int64_t lines, samples;
    int most;
    bool eight;
    uint32_t seed;
};

class Filters : public testing::TestWithParam<Case> {
  protected:
    Filters()
        : c(GetParam()),
          levels(quantise(clumps(c.lines, c.samples, c.most, c.seed), c.lines, c.samples, true)),
          tree(make_max_tree(levels, c.eight)), parts(naive::parts_of(levels, c.eight)) {}
    std::vector<double> naive_attribute(Attribute a) const {
        std::vector<double> out;
        for (const auto& part : parts)
            out.push_back(naive::attribute(parts, part, levels, a));
        return out;
    }
    void expect_levels(const std::vector<int32_t>& of_nodes, const std::vector<int>& truth) const {
        for (size_t i = 0; i < truth.size(); ++i) {
            ASSERT_EQ(tree.node[i] < 0, truth[i] < 0) << "pixel " << i;
            if (truth[i] >= 0) {
                ASSERT_EQ(of_nodes[static_cast<size_t>(tree.node[i])], truth[i]) << "pixel " << i;
            }
        }
    }
    Case c;
    Levels levels;
    MaxTree tree;
    std::vector<naive::Part> parts;
};

TEST_P(Filters, TreeHasTheParts) {
    ASSERT_EQ(tree.size(), parts.size());
    for (size_t n = 0; n < tree.size(); ++n)
        EXPECT_TRUE(tree.is_root(n) || tree.parent[n] < static_cast<int32_t>(n));
    expect_levels(thin(tree, std::vector<double>(tree.size(), 1.0), 0.5),
                  naive::subtract(parts, levels, [](size_t) { return true; }));
}

TEST_P(Filters, AttributesAreThoseOfTheParts) {
    for (const auto a : attributes) {
        const auto found = attribute_of(tree, levels, a);
        for (const auto& part : parts) {
            // Any pixel of the part at the part's own level gives the part's node.
            size_t node = 0;
            for (const int p : part.pixels)
                if (levels.level[static_cast<size_t>(p)] == part.level)
                    node = static_cast<size_t>(tree.node[static_cast<size_t>(p)]);
            const double truth = naive::attribute(parts, part, levels, a);
            ASSERT_NEAR(found[node], truth, 1e-9 * (1 + truth)) << name_of(a);
        }
    }
}

TEST_P(Filters, ThinningsAreTheSubtractiveRule) {
    for (const auto a : attributes) {
        const auto truth = naive_attribute(a);
        const auto found = attribute_of(tree, levels, a);
        auto sorted = truth;
        std::sort(sorted.begin(), sorted.end());
        for (const double share : {0.0, 0.3, 0.6, 0.9, 1.0}) {
            // The threshold is between two attributes, so rounding has no effect.
            const size_t at = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
            const double threshold = sorted[at] + 1e-6;
            expect_levels(thin(tree, found, threshold),
                          naive::subtract(parts, levels, [&](size_t i) { return truth[i] >= threshold; }));
        }
        // A part whose attribute equals the threshold is kept, since integers are exact.
        if (a != Attribute::std && a != Attribute::inertia) {
            const double threshold = sorted[sorted.size() / 2];
            expect_levels(thin(tree, found, threshold),
                          naive::subtract(parts, levels, [&](size_t i) { return truth[i] >= threshold; }));
        }
    }
}

TEST_P(Filters, TheMaximaOfGreatestExtinctionStay) {
    for (const auto a :
         {Attribute::area, Attribute::volume, Attribute::height, Attribute::diagonal, Attribute::std}) {
        const auto maxima = naive::maxima(parts, naive_attribute(a));
        const auto ranks = extinction_ranks(tree, attribute_of(tree, levels, a));
        for (size_t count :
             {size_t{1}, size_t{2}, size_t{3}, maxima.size() / 2 + 1, maxima.size(), maxima.size() + 5}) {
            // std: if two values differ only by rounding, either may be kept.
            if (a == Attribute::std && count < maxima.size() &&
                std::fabs(maxima[count - 1].extinction - maxima[count].extinction) < 1e-9)
                continue;
            std::vector<char> kept(parts.size(), 0);
            for (size_t m = 0; m < std::min(count, maxima.size()); ++m)
                for (int up = static_cast<int>(maxima[m].part); up >= 0;
                     up = parts[static_cast<size_t>(up)].parent)
                    kept[static_cast<size_t>(up)] = 1;
            // A pixel belongs to the nearest kept part above it. A part is kept if it contains a kept
            // maximum, and so are the larger parts.
            expect_levels(keep_maxima(tree, ranks, static_cast<double>(count)),
                          naive::subtract(parts, levels, [&](size_t i) { return kept[i] != 0; }));
        }
    }
}

/// Vachier: the number of maxima with an extinction value of at least k equals the number of maxima after the
/// removal of all parts with an attribute below k.
TEST_P(Filters, ExtinctionValuesCountWhatFiltersLeave) {
    for (const auto a : {Attribute::area, Attribute::volume, Attribute::height, Attribute::diagonal}) {
        const auto attribute = attribute_of(tree, levels, a);
        const auto ranks = extinction_ranks(tree, attribute);
        const auto maxima = naive::maxima(parts, naive_attribute(a));
        // The ranks are a permutation: each maximum of the tree has its own rank, and other nodes have none.
        std::set<int32_t> different(ranks.begin(), ranks.end());
        EXPECT_EQ(different.size(), maxima.size());
        double least_root =
            1e300; // above a root's attribute, a flat part remains that is a maximum only by its form
        for (size_t i = 0; i < parts.size(); ++i)
            if (parts[i].parent < 0)
                least_root = std::min(least_root, naive::attribute(parts, parts[i], levels, a));
        for (const double k : {1.0, 2.0, 3.0, 5.0, 9.0, 20.0}) {
            if (k > least_root) break;
            const auto left = naive::subtract(
                parts, levels, [&](size_t i) { return naive::attribute(parts, parts[i], levels, a) >= k; });
            const auto count =
                std::count_if(maxima.begin(), maxima.end(), [&](const auto& m) { return m.extinction >= k; });
            EXPECT_EQ(count, naive::count_maxima(levels, left, c.eight)) << name_of(a) << " " << k;
        }
    }
}

TEST_P(Filters, OpeningsAreIteratedDilations) {
    const auto plane = clumps(c.lines, c.samples, c.most, c.seed);
    const int w = static_cast<int>(c.samples), h = static_cast<int>(c.lines);
    for (const int radius : {1, 2, 3, 6, 40}) {
        Options options{Kind::emp, {{Attribute::radius, {static_cast<double>(radius)}}}, c.eight};
        for (const bool dark : {false, true}) {
            const auto value = [&](int p) {
                return dark ? -plane[static_cast<size_t>(p)] : plane[static_cast<size_t>(p)];
            };
            std::vector<float> marker(plane.size(), nan_value);
            for (int p = 0; p < w * h; ++p) {
                if (std::isnan(value(p))) continue;
                float least = value(p);
                for (int q = 0; q < w * h; ++q) {
                    const int dx = q % w - p % w, dy = q / w - p / w;
                    if (dx * dx + dy * dy <= radius * radius && !std::isnan(value(q)))
                        least = std::min(least, value(q));
                }
                marker[static_cast<size_t>(p)] = least;
            }
            for (bool changed = true; changed;) {
                changed = false;
                for (int p = 0; p < w * h; ++p) {
                    if (std::isnan(value(p))) continue;
                    float greatest = marker[static_cast<size_t>(p)];
                    for (const int q : naive::neighbours(levels, p, c.eight))
                        greatest = std::max(greatest, marker[static_cast<size_t>(q)]);
                    greatest = std::min(greatest, value(p));
                    changed = changed || greatest != marker[static_cast<size_t>(p)];
                    marker[static_cast<size_t>(p)] = greatest;
                }
            }
            int bands = 0;
            profile_side(plane, c.lines, c.samples, true, dark, options,
                         [&](int k, std::vector<float>& band) {
                             EXPECT_EQ(k, bands++);
                             for (size_t p = 0; p < band.size(); ++p) {
                                 ASSERT_EQ(std::isnan(band[p]), std::isnan(plane[p]));
                                 if (!std::isnan(band[p])) {
                                     ASSERT_EQ(band[p], dark ? -marker[p] : marker[p]) << radius;
                                 }
                             }
                         });
            EXPECT_EQ(bands, 1);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Scenes, Filters,
                         testing::Values(Case{9, 13, 6, false, 1}, Case{9, 13, 6, true, 2},
                                         Case{14, 7, 60000, false, 3}, Case{12, 11, 3, true, 4},
                                         Case{1, 40, 20, false, 5}, Case{30, 1, 9, true, 6},
                                         Case{15, 15, 200, false, 7}, Case{1, 1, 5, true, 9}));

TEST(Openings, EndInTheMidst) {
    const auto plane = clumps(30, 40, 50, 3, 0);
    auto marker = erode(plane, 30, 40, 3);
    CancelFlag cancel;
    const CancelScope scope(&cancel);
    reconstruct(marker, plane, 30, 40, true);
    cancel.request();
    EXPECT_THROW(erode(plane, 30, 40, 3), Cancelled);
    EXPECT_THROW(reconstruct(marker, plane, 30, 40, true), Cancelled);
}

TEST(Attributes, OfARectangleAreClosedForms) {
    std::vector<float> plane(100, 3.0f);
    for (int y = 2; y < 5; ++y)
        for (int x = 4; x < 8; ++x)
            plane[static_cast<size_t>(10 * y + x)] = 10.0f;
    const auto levels = quantise(plane, 10, 10, true);
    EXPECT_TRUE(levels.exact);
    const auto tree = make_max_tree(levels, false);
    ASSERT_EQ(tree.size(), 2u);
    EXPECT_EQ(attribute_of(tree, levels, Attribute::area), (std::vector<double>{100, 12}));
    EXPECT_EQ(attribute_of(tree, levels, Attribute::height), (std::vector<double>{7, 7}));
    EXPECT_EQ(attribute_of(tree, levels, Attribute::volume), (std::vector<double>{84, 84}));
    const auto diagonal = attribute_of(tree, levels, Attribute::diagonal);
    EXPECT_DOUBLE_EQ(diagonal[0], std::sqrt(200.0));
    EXPECT_DOUBLE_EQ(diagonal[1], 5.0);
    const auto std = attribute_of(tree, levels, Attribute::std);
    EXPECT_DOUBLE_EQ(std[0], 7 * std::sqrt(0.12 * 0.88));
    EXPECT_EQ(std[1], 0);
    const auto inertia = attribute_of(tree, levels, Attribute::inertia); // (w^2 + h^2 - 2) / (12 w h)
    EXPECT_DOUBLE_EQ(inertia[0], 198.0 / 1200);
    EXPECT_DOUBLE_EQ(inertia[1], 23.0 / 144);
}

TEST(Quantise, HasTheLevelsOfThePage) {
    const std::vector<float> plane{-1.5f, 0.25f, nan_value, 2.5f, 0.1f};
    const auto levels = quantise(plane, 1, 5, false);
    EXPECT_FALSE(levels.exact);
    for (size_t i = 0; i < plane.size(); ++i) {
        EXPECT_EQ(levels.valid[i] != 0, i != 2);
        if (i != 2) {
            EXPECT_EQ(levels.level[i], std::floor((static_cast<double>(plane[i]) + 1.5) / 4.0 * 65535 + 0.5));
        }
    }
    EXPECT_EQ(levels.value(0), -1.5f);
    EXPECT_EQ(levels.value(65535), 2.5f);
    EXPECT_EQ(levels.value(20000), static_cast<float>(-1.5 + 20000 * 4.0 / 65535));
    // Integers over a wider range are quantised; over a narrower range they are kept.
    EXPECT_FALSE(quantise({0.0f, 70000.0f}, 1, 2, true).exact);
    const auto whole = quantise({-32768.0f, 32767.0f, 5.0f}, 1, 3, true);
    EXPECT_TRUE(whole.exact);
    EXPECT_EQ(whole.value(whole.level[2]), 5.0f);
    EXPECT_EQ(quantise({4.0f, 4.0f}, 1, 2, false).level, (std::vector<uint16_t>{0, 0}));
}

Options several(Kind kind) {
    Options o;
    o.kind = kind;
    for (const auto a : attributes_of(kind))
        o.sets.push_back(
            {a, kind == Kind::emp ? std::vector<double>{1, 3} : default_thresholds(kind, a, 100)});
    return o;
}

stream::PlaneStore& fill(stream::PlaneStore& store, bool whole) {
    const auto shape = store.shape();
    for (int i = 0; i < shape.bands; ++i) {
        auto plane = clumps(shape.lines, shape.samples, 500, static_cast<uint32_t>(20 + i));
        for (auto& v : plane)
            if (!whole) v = std::sqrt(v) - 9;
        store.sink({i})->write({0, 0, shape.samples, shape.lines},
                               CubeView<float>::packed(plane.data(), 1, shape.lines, shape.samples));
    }
    return store;
}

std::vector<float> profile_of(const Options& o, int workers, bool in_memory, bool whole) {
    const stream::CubeShape shape{31, 23, 3}, out{31, 23, 3 * o.bands()};
    stream::PlaneStore planes(shape);
    const auto to = in_memory ? std::make_unique<stream::PlaneStore>(out)
                              : std::make_unique<stream::PlaneStore>(out, testing::TempDir());
    double progress = 0;
    make_profile(
        fill(planes, whole), whole, o,
        [&](int band, std::vector<float>& plane) {
            to->sink({band})->write({0, 0, 31, 23}, CubeView<float>::packed(plane.data(), 1, 23, 31));
            std::fill(plane.begin(), plane.end(), -5.0f); // the plane may be changed
        },
        {workers, nullptr, [&](double p) { progress = p; }});
    EXPECT_DOUBLE_EQ(progress, 1);
    std::vector<float> values(static_cast<size_t>(out.pixels() * out.bands));
    to->read({0, 0, 31, 23}, values.data());
    return values;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i)
        if (std::isnan(a[i]) != std::isnan(b[i]) || (!std::isnan(a[i]) && a[i] != b[i])) return false;
    return a.size() == b.size();
}

TEST(Profile, ThreadsAndStoresChangeNothing) {
    for (const auto kind : {Kind::emp, Kind::emap, Kind::emep}) {
        const auto o = several(kind);
        const auto one = profile_of(o, 1, true, false);
        EXPECT_TRUE(same(one, profile_of(o, 3, true, false))) << name_of(kind);
        EXPECT_TRUE(same(one, profile_of(o, 2, false, false))) << name_of(kind);
    }
}

TEST(Profile, BandsStandAsTheyAreNamed) {
    const Options o{Kind::emap, {{Attribute::area, {20, 5}}, {Attribute::diagonal, {4}}}, false};
    EXPECT_EQ(band_names(o), (std::vector<std::string>{"", "thinning area=20", "thinning area=5",
                                                       "thickening area=20", "thickening area=5",
                                                       "thinning diagonal=4", "thickening diagonal=4"}));
    const auto profile = profile_of(o, 2, true, true);
    const size_t pixels = 31 * 23;
    for (int component = 0; component < 3; ++component) {
        const auto plane = clumps(23, 31, 500, static_cast<uint32_t>(20 + component));
        auto negative = plane;
        for (auto& v : negative)
            v = -v;
        const auto band = [&](int k) {
            const auto* from = profile.data() + pixels * static_cast<size_t>(7 * component + k);
            return std::vector<float>(from, from + pixels);
        };
        EXPECT_TRUE(same(band(0), plane));
        // One threshold at a time. The dark side equals the bright side of the negative, negated.
        const std::pair<Attribute, double> one[] = {
            {Attribute::area, 20}, {Attribute::area, 5}, {Attribute::diagonal, 4}};
        const int bright[] = {1, 2, 5}, dark[] = {3, 4, 6};
        for (int i = 0; i < 3; ++i) {
            const Options alone{Kind::eap, {{one[i].first, {one[i].second}}}, false};
            profile_side(plane, 23, 31, true, false, alone,
                         [&](int, std::vector<float>& b) { EXPECT_TRUE(same(b, band(bright[i]))); });
            profile_side(negative, 23, 31, true, false, alone, [&](int, std::vector<float>& b) {
                for (auto& v : b)
                    v = -v;
                EXPECT_TRUE(same(b, band(dark[i])));
            });
            // Openings are below the plane, closings above it, and a second application changes nothing.
            for (size_t p = 0; p < pixels; ++p)
                if (!std::isnan(plane[p])) {
                    EXPECT_LE(band(bright[i])[p], plane[p]);
                    EXPECT_GE(band(dark[i])[p], plane[p]);
                }
        }
    }
}

TEST(Profile, HasTheBandsOfTheTable) {
    const auto bands = [](Kind kind, bool all) {
        Options o{kind, {}, false};
        for (const auto a : attributes_of(kind))
            if (all || o.sets.empty()) o.sets.push_back({a, default_thresholds(kind, a, 20)});
        return o.bands();
    };
    EXPECT_EQ(bands(Kind::emp, false), 9);
    EXPECT_EQ(bands(Kind::eap, false), 15);
    EXPECT_EQ(bands(Kind::eep, false), 15);
    EXPECT_EQ(bands(Kind::emap, true), 43);
    EXPECT_EQ(bands(Kind::emep, true), 71);
    EXPECT_EQ(default_thresholds(Kind::eap, Attribute::area, 20),
              (std::vector<double>{50, 150, 250, 350, 450, 550, 650}));
}

/// The limit of std is a percentage of the mean level, which is equal on both sides.
TEST(Profile, DeviationIsMeasuredByTheMeanLevel) {
    const auto plane = clumps(12, 17, 90, 5, 0);
    const auto levels = quantise(plane, 12, 17, true);
    double sum = 0;
    for (const auto l : levels.level)
        sum += l;
    EXPECT_DOUBLE_EQ(levels.mean, sum / static_cast<double>(levels.level.size()));
    for (const bool dark : {false, true}) {
        auto turned = levels;
        if (dark) turned.invert();
        const auto tree = make_max_tree(turned, false);
        const auto out = thin(tree, attribute_of(tree, turned, Attribute::std), 0.123 * levels.mean);
        profile_side(plane, 12, 17, true, dark, {Kind::eap, {{Attribute::std, {12.3}}}, false},
                     [&](int, std::vector<float>& band) {
                         for (size_t i = 0; i < band.size(); ++i) {
                             const int level = out[static_cast<size_t>(tree.node[i])];
                             ASSERT_EQ(band[i], levels.value(dark ? 65535 - level : level));
                         }
                     });
    }
}

} // namespace
} // namespace hsi::profile
