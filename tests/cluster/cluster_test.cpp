// SPDX-License-Identifier: MIT
#include "cluster/cluster.h"
#include "math/philox.h"
#include "parallel/thread_job.h"
#include "stream/empty_source.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace hsi::test {
namespace {

using cluster::Distance;
using Spectra = std::vector<std::vector<double>>;

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
    uint64_t memory = uint64_t{1} << 30;
};

struct Outcome {
    int64_t valid = 0;
    cluster::Result result;
    std::vector<float> labels;
    bool in_memory = false;
};

Outcome run(const Cube& cube, int k, cluster::Options options, const Cut& cut = {},
            const Spectra& start = {}) {
    const MemorySource source(cube);
    const auto make_pass = [&](const std::string& name) {
        stream::PassOptions p;
        p.name = name;
        p.lanes = cut.lanes;
        p.tile_samples = cut.samples;
        p.tile_lines = cut.lines;
        p.memory = cut.memory;
        return p;
    };
    options.numbers.width = cube.shape.samples;
    cluster::Clustering clustering(source, options, make_pass);
    Outcome out;
    out.valid = clustering.read();
    out.in_memory = clustering.in_memory();
    cluster::Centres centres;
    if (start.empty()) {
        centres = clustering.start(k);
    } else {
        centres.count = static_cast<int>(start.size());
        centres.bands = cube.shape.bands;
        for (const auto& x : start)
            centres.values.insert(centres.values.end(), x.begin(), x.end());
    }
    out.result = clustering.refine(centres);
    MemorySink sink(cube.shape.samples, cube.shape.lines, 1);
    const auto assignment = cluster::make_assignment(out.result.centres, options.distance);
    stream::run_pass(source, *assignment, {&sink}, make_pass("assignment"));
    out.labels = sink.cube.values;
    if (!parallel::group().several()) { // the kept labels are the labels by the centres
        const auto labels = clustering.labels();
        stream::run_pass(stream::EmptySource(cube.shape), *labels, {&sink}, make_pass("labels"));
        EXPECT_EQ(std::memcmp(sink.cube.values.data(), out.labels.data(), out.labels.size() * sizeof(float)),
                  0);
    }
    return out;
}

/// Holds the valid pixels as the distance uses them, and their positions. It computes plain sums, pixel by
/// pixel.
struct Plain {
    Spectra pixels;
    std::vector<int64_t> place;
    Plain(const Cube& cube, Distance distance) {
        for (int64_t p = 0; p < cube.shape.pixels(); ++p) {
            std::vector<double> x;
            double squared = 0;
            for (int b = 0; b < cube.shape.bands; ++b) {
                x.push_back(
                    static_cast<double>(cube.values[static_cast<size_t>(b * cube.shape.pixels() + p)]));
                squared += x.back() * x.back();
            }
            if (!std::isfinite(squared) || squared == 0) continue;
            if (distance == Distance::angle)
                for (double& v : x)
                    v = std::nearbyint(v / std::sqrt(squared) * 0x1p40) * 0x1p-40;
            pixels.push_back(x);
            place.push_back(p);
        }
    }
    static double apart(const std::vector<double>& a, const std::vector<double>& b) {
        double sum = 0;
        for (size_t i = 0; i < a.size(); ++i)
            sum += (a[i] - b[i]) * (a[i] - b[i]);
        return sum;
    }
    /// Returns the centres of k-means++ as documented, from all pixels (there are no more than the sample
    /// holds).
    Spectra start(int k, uint64_t seed) const {
        std::vector<std::pair<uint32_t, size_t>> order;
        for (size_t i = 0; i < pixels.size(); ++i)
            order.emplace_back(math::philox({0, 2u << 24, static_cast<uint32_t>(place[i]), 0}, seed)[0], i);
        std::sort(order.begin(), order.end());
        order.resize(std::min<size_t>(order.size(), 16384));
        Spectra centres{pixels[order.front().second]};
        for (uint32_t j = 1; j < static_cast<uint32_t>(k); ++j) {
            std::vector<double> running;
            double sum = 0;
            for (const auto& [word, i] : order) {
                double least = std::numeric_limits<double>::infinity();
                for (const auto& c : centres)
                    least = std::min(least, apart(pixels[i], c));
                running.push_back(sum += least);
            }
            const double u = (math::philox({j, 3u << 24, 0, 0}, seed)[0] + 0.5) / 4294967296.0;
            size_t at = 0;
            while (!(running[at] > u * sum))
                ++at;
            centres.push_back(pixels[order[at].second]);
        }
        return centres;
    }
    struct Ended {
        std::vector<size_t> labels;
        int iterations = 0;
        double inertia = 0;
        Spectra centres;
    };
    Ended lloyd(Spectra centres, int most, bool angle) const {
        Ended end;
        std::vector<size_t> before;
        for (;; before = end.labels) {
            end.labels.clear();
            end.inertia = 0;
            for (const auto& x : pixels) {
                size_t best = 0;
                for (size_t k = 1; k < centres.size(); ++k)
                    if (apart(x, centres[k]) < apart(x, centres[best])) best = k;
                end.labels.push_back(best);
                end.inertia += apart(x, centres[best]);
            }
            if (end.iterations == most) break; // last assignment
            ++end.iterations;
            if (end.labels == before) break;
            for (size_t k = 0; k < centres.size(); ++k) {
                std::vector<double> sum(centres[k].size());
                double n = 0, squared = 0;
                for (size_t i = 0; i < pixels.size(); ++i)
                    if (end.labels[i] == k) {
                        ++n;
                        for (size_t b = 0; b < sum.size(); ++b)
                            sum[b] += pixels[i][b];
                    }
                for (double& v : sum) {
                    v /= n;
                    squared += v * v;
                }
                if (angle)
                    for (double& v : sum)
                        v /= std::sqrt(squared);
                centres[k] = sum;
            }
        }
        end.centres = centres;
        return end;
    }
};

Cube spoiled(int64_t samples, int64_t lines, int bands, uint32_t seed) {
    Cube cube = random_scene(samples, lines, bands, seed);
    cube.at(1, 3, 4) = no_value;
    cube.at(0, lines - 1, samples - 1) = std::numeric_limits<float>::infinity();
    for (int b = 0; b < bands; ++b)
        cube.at(b, 0, 0) = 0;
    return cube;
}

class ClusterOf : public ::testing::TestWithParam<Distance> {};

TEST_P(ClusterOf, PlainLloydFromTheSameStart) {
    const Cube cube = spoiled(61, 43, 9, 4);
    const Plain plain(cube, GetParam());
    for (const int most : {100, 3}) {
        cluster::Options options;
        options.distance = GetParam();
        options.iterations = most;
        options.seed = 5;
        const auto found = run(cube, 7, options);
        const auto end = plain.lloyd(plain.start(7, 5), most, GetParam() == Distance::angle);
        EXPECT_EQ(found.valid, static_cast<int64_t>(plain.pixels.size()));
        EXPECT_EQ(found.result.iterations, end.iterations);
        EXPECT_EQ(found.result.converged, most == 100);
        EXPECT_NEAR(found.result.inertia, end.inertia, 1e-9 * end.inertia);
        size_t at = 0;
        for (int64_t p = 0; p < cube.shape.pixels(); ++p) {
            const float label = found.labels[static_cast<size_t>(p)];
            if (at < plain.place.size() && plain.place[at] == p)
                ASSERT_EQ(label, static_cast<float>(end.labels[at++] + 1)) << p;
            else
                ASSERT_TRUE(std::isnan(label)) << p;
        }
        for (int k = 0; k < 7; ++k)
            for (int b = 0; b < 9; ++b)
                EXPECT_NEAR(found.result.centres.of(k)[b],
                            end.centres[static_cast<size_t>(k)][static_cast<size_t>(b)], 1e-9);
    }
}

bool same_bits(const Outcome& a, const Outcome& b) {
    return std::memcmp(a.labels.data(), b.labels.data(), a.labels.size() * sizeof(float)) == 0 &&
           a.result.centres.values == b.result.centres.values && a.result.pixels == b.result.pixels &&
           a.result.inertia == b.result.inertia && a.result.iterations == b.result.iterations &&
           a.result.length == b.result.length;
}

TEST_P(ClusterOf, TilesThreadsMemoryAndRanksChangeNothing) {
    const Cube cube = spoiled(150, 130, 6, 8); // more pixels than the sample holds
    cluster::Options options;
    options.distance = GetParam();
    options.iterations = 12;
    const auto whole = run(cube, 6, options);
    EXPECT_TRUE(whole.in_memory);
    const Cut cuts[] = {{150, 130, 3, uint64_t{1} << 30},
                        {16, 16, 2, uint64_t{1} << 30},
                        {37, 11, 1, 980 << 10},
                        {150, 7, 1, 980 << 10}};
    for (const Cut& cut : cuts) {
        const auto cutted = run(cube, 6, options, cut);
        EXPECT_EQ(cutted.in_memory, cut.memory > 980 << 10);
        EXPECT_TRUE(same_bits(whole, cutted)) << cut.samples << " x " << cut.lines;
    }
    for (const int size : {2, 3})
        on_ranks(size, [&](parallel::Ranks& ranks, CancelFlag&) {
            const parallel::ThreadJob job(ranks);
            const auto divided = run(cube, 6, options, {40, 9, 2, uint64_t{1} << 30});
            EXPECT_EQ(divided.result.centres.values, whole.result.centres.values) << size;
            EXPECT_EQ(divided.result.inertia, whole.result.inertia);
            EXPECT_EQ(divided.result.pixels, whole.result.pixels);
            EXPECT_EQ(divided.result.iterations, whole.result.iterations);
        });
}

/// Uses values that single precision can hardly distinguish, or whose squares it cannot hold, and many pixels
/// that are equally far from two centres.
TEST_P(ClusterOf, NearestOnesAreThoseOfDoublePrecision) {
    struct Case {
        double scale, level;
    };
    for (const auto& [scale, level] :
         {Case{1, 0}, Case{1e-25, 0}, Case{1e-41, 0}, Case{1e18, 0}, Case{1e22, 0}, Case{1e37, 0},
          Case{1e-4, 1000}, Case{1, 1e6}, Case{3e-3, 1e5}})
        for (const int k : {2, 5, 10, 11, 23}) {
            constexpr int bands = 13;
            Cube cube = spoiled(83, 29, bands, 17);
            for (float& v : cube.values)
                if (std::isfinite(v) && v != 0)
                    v = static_cast<float>(scale * static_cast<double>(v) + level);
            for (int b = 0; b < bands; ++b) // between the centres of the next two
                cube.at(b, 5, 5) = (cube.at(b, 6, 1) + cube.at(b, 7, 2)) / 2;
            const Plain plain(cube, GetParam());
            cluster::Centres centres;
            centres.count = k;
            centres.bands = bands;
            for (int c = 0; c < k; ++c) {
                const auto& x = plain.pixels[static_cast<size_t>(c == 0   ? 6 * 83 + 1 - 2
                                                                 : c == 1 ? 7 * 83 + 2 - 2
                                                                          : 97 * c)];
                centres.values.insert(centres.values.end(), x.begin(), x.end());
            }
            const MemorySource source(cube);
            MemorySink sink(83, 29, 1);
            const auto assignment = cluster::make_assignment(centres, GetParam());
            stream::run_pass(source, *assignment, {&sink}, {});
            for (size_t i = 0; i < plain.pixels.size(); ++i) {
                const auto& x = plain.pixels[i];
                // For angles, in products, whose last digits are the last digits of 1
                std::vector<double> apart;
                for (int c = 0; c < k; ++c)
                    apart.push_back(GetParam() == Distance::angle
                                        ? 1 - std::inner_product(x.begin(), x.end(), centres.of(c), 0.0)
                                        : Plain::apart(x, {centres.of(c), centres.of(c) + bands}));
                const double least = *std::min_element(apart.begin(), apart.end());
                const float label = sink.cube.values[static_cast<size_t>(plain.place[i])];
                ASSERT_GE(label, 1) << scale << ", " << level << ", " << k << ", pixel " << i;
                const double digits = GetParam() == Distance::angle ? 4e-15 : 1e-14 * least;
                EXPECT_LE(apart[static_cast<size_t>(label) - 1], least + digits)
                    << scale << ", " << level << ", " << k << ", pixel " << i;
            }
        }
}

INSTANTIATE_TEST_SUITE_P(Distances, ClusterOf, ::testing::Values(Distance::euclidean, Distance::angle));

/// Uses two groups of pixels and a pixel far away. A centre without pixels moves to the distant pixel, which
/// leaves its cluster.
TEST(Cluster, EmptyClusterTakesTheFarthestPixel) {
    Cube cube(5, 1, 2);
    const float x[] = {1, 2, 11, 12, 100}, y[] = {1, 1, 1, 1, 1};
    for (int s = 0; s < 5; ++s) {
        cube.at(0, 0, s) = x[s];
        cube.at(1, 0, s) = y[s];
    }
    const auto found = run(cube, 3, {}, {}, {{1.5, 1}, {11.5, 1}, {-500, 1}});
    EXPECT_EQ(found.labels, (std::vector<float>{1, 1, 2, 2, 3}));
    EXPECT_EQ(found.result.relocated, 1);
    // The distant pixel belongs to the second cluster, then to the third, and stays
    EXPECT_EQ(found.result.iterations, 3);
    EXPECT_EQ(found.result.centres.values, (std::vector<double>{1.5, 1, 11.5, 1, 100, 1}));
    EXPECT_EQ(found.result.inertia, 1.0);
}

/// Among equal centres, the first gets the pixels. A centre that stays without a pixel does not move.
TEST(Cluster, EqualCentresAndEqualPixels) {
    const Cube cube(4, 3, 3, 2.0f);
    const auto found = run(cube, 2, {}, {}, {{1, 1, 1}, {1, 1, 1}});
    EXPECT_EQ(found.result.pixels.front() + found.result.pixels.back(), 12);
    EXPECT_TRUE(found.result.converged);
    EXPECT_EQ(run(cube, 5, {}).result.centres.count, 1);
}

/// Uses pixels very close to their centre: 1 - u'c has no digits of their distance.
TEST(Cluster, InertiaOfAnglesDoesNotCancel) {
    for (const double noise : {1e-2, 1e-4, 1e-6})
        for (const uint64_t memory : {uint64_t{1} << 30, uint64_t{980} << 10}) {
            Cube cube = spoiled(150, 130, 6, 3);
            for (int64_t p = 0; p < cube.shape.pixels(); ++p)
                for (int b = 0; b < 6; ++b)
                    if (float& v = cube.values[static_cast<size_t>(b * cube.shape.pixels() + p)];
                        std::isfinite(v) && v != 0)
                        v = static_cast<float>((p % 3 == 0 ? 1 + b : 7 - b) *
                                               (1 + noise * static_cast<double>(v)));
            cluster::Options options;
            options.distance = Distance::angle;
            const auto found = run(cube, 2, options, {0, 0, 2, memory});
            EXPECT_EQ(found.in_memory, memory > 980 << 10);
            const Plain plain(cube, Distance::angle);
            long double sum = 0;
            for (size_t i = 0; i < plain.pixels.size(); ++i) {
                const auto label = static_cast<int>(found.labels[static_cast<size_t>(plain.place[i])]);
                for (size_t b = 0; b < 6; ++b) {
                    const long double apart =
                        static_cast<long double>(plain.pixels[i][b]) - found.result.centres.of(label - 1)[b];
                    sum += apart * apart;
                }
            }
            const auto expected = static_cast<double>(sum);
            EXPECT_GT(expected, 0);
            EXPECT_NEAR(found.result.inertia, expected, 1e-9 * expected) << noise;
        }
}

TEST(Cluster, EqualSpectraHaveNoInertiaOfAngles) {
    Cube cube(6, 5, 3);
    for (int64_t p = 0; p < 30; ++p)
        for (int b = 0; b < 3; ++b)
            cube.values[static_cast<size_t>(b * 30 + p)] = static_cast<float>((p % 2 + 1) * (b + 1));
    cluster::Options options;
    options.distance = Distance::angle;
    const std::vector<double> same = {1 / std::sqrt(14.0), 2 / std::sqrt(14.0), 3 / std::sqrt(14.0)};
    const auto found = run(cube, 3, options, {}, {same, same, {1, 0, 0}});
    EXPECT_GE(found.result.inertia, 0);
    EXPECT_LT(found.result.inertia, 30 * 3 * 0x1p-80); // multiples of 2^-40
    double pixels = 0, length = 0;
    for (size_t k = 0; k < 3; ++k) {
        const auto count = static_cast<double>(found.result.pixels[k]);
        pixels += count;
        length += count * found.result.length[k];
        if (found.result.pixels[k] == 0) {
            EXPECT_NEAR(found.result.length[k], 1.5 * std::sqrt(14.0), 1e-12); // the mean length
        }
    }
    EXPECT_EQ(pixels, 30);
    EXPECT_NEAR(length, 30 * 1.5 * std::sqrt(14.0), 1e-9);
    EXPECT_GT(std::count(found.result.pixels.begin(), found.result.pixels.end(), 0), 0);
}

/// Checks that the sample depends on the pixels' numbers in the file, not in the window.
TEST(Cluster, NumbersOfAWindow) {
    const PixelNumbers numbers{100, 7, 3};
    EXPECT_EQ(numbers.of(0, 0), 703);
    EXPECT_EQ(numbers.of(2, 5), 908);
}

} // namespace
} // namespace hsi::test
