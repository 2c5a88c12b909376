// SPDX-License-Identifier: MIT
// Every metric against a naive reference from its definition, for several tilings and thread counts.
#include "compare/measurement.h"
#include "core/error.h"
#include "stream/pipeline.h"
#include "stream/stacked_source.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace {

using namespace hsi;
using namespace hsi::compare;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
const std::vector<Metric> spectral{Metric::nrmse, Metric::maxsde, Metric::sad, Metric::rmse, Metric::maxabs};
const std::vector<Metric> with_ssim{Metric::nrmse, Metric::maxsde, Metric::sad,
                                    Metric::rmse,  Metric::maxabs, Metric::ssim};

struct Pair {
    test::Cube s, t;
    std::shared_ptr<const stream::CubeSource> source() const {
        return std::make_shared<stream::StackedSource>(std::vector<std::shared_ptr<const stream::CubeSource>>{
            std::make_shared<test::MemorySource>(s), std::make_shared<test::MemorySource>(t)});
    }
    bool valid_in(const test::Cube& c, int64_t y, int64_t x) const {
        double squares = 0;
        for (int b = 0; b < c.shape.bands; ++b)
            squares += double{c.at(b, y, x)} * double{c.at(b, y, x)};
        return std::isfinite(squares) && (squares > 0 || c.shape.bands == 1);
    }
    bool valid(int64_t y, int64_t x) const { return valid_in(s, y, x) && valid_in(t, y, x); }
};

/// Returns two noisy versions of a scene, with holes of all types.
Pair made(int64_t samples = 301, int64_t lines = 43, int bands = 7) {
    Pair p{test::random_scene(samples, lines, bands, 5), {}};
    const test::Cube noise = test::random_scene(samples, lines, bands, 6);
    p.t = p.s;
    for (size_t i = 0; i < p.t.values.size(); ++i)
        p.t.values[i] += 0.05f * noise.values[i];
    test::make_invalid(p.s, 3, 5, 2);
    test::make_invalid(p.t, 3, 6, 0, std::numeric_limits<float>::infinity());
    test::make_invalid(p.s, 20, 127, 1);
    test::make_invalid(p.t, 20, 127, 1);
    for (int b = 0; b < bands; ++b)
        p.t.at(b, 10, 130) = 0; // not a spectrum
    for (int b = 0; b < bands; ++b)
        p.t.at(b, 12, 200) = p.s.at(b, 12, 200); // equal pixels
    return p;
}

stream::PassOptions tiles(int64_t samples, int64_t lines, int lanes) {
    stream::PassOptions o;
    o.tile_samples = samples;
    o.tile_lines = lines;
    o.lanes = lanes;
    return o;
}

const std::vector<std::array<int, 3>> tilings{
    {1000, 1000, 1}, {128, 7, 3}, {256, 1, 2}, {128, 43, 2}, {384, 16, 4}};

double reference(Metric metric, const Pair& p, int64_t y, int64_t x) {
    const int nb = p.s.shape.bands;
    double mean = 0, dd = 0, cc = 0, absolute = 0, largest = 0;
    for (int b = 0; b < nb; ++b)
        mean += double{p.s.at(b, y, x)} / nb;
    for (int b = 0; b < nb; ++b) {
        const double s = p.s.at(b, y, x), t = p.t.at(b, y, x);
        dd += (t - s) * (t - s);
        cc += (s - mean) * (s - mean);
        absolute += std::abs(s);
        largest = std::max(largest, std::abs(s - t));
    }
    switch (metric) {
    case Metric::nrmse:
        return std::sqrt(dd / cc);
    case Metric::maxsde:
        return nb * largest / absolute;
    case Metric::sad: {
        // |s x t| from Lagrange's identity over all pairs, which is exact for small angles
        double cross = 0, dot = 0;
        for (int b = 0; b < nb; ++b) {
            dot += double{p.s.at(b, y, x)} * double{p.t.at(b, y, x)};
            for (int c = 0; c < b; ++c) {
                const double d = double{p.s.at(b, y, x)} * double{p.t.at(c, y, x)} -
                                 double{p.s.at(c, y, x)} * double{p.t.at(b, y, x)};
                cross += d * d;
            }
        }
        return std::atan2(std::sqrt(cross), dot) * 180 / std::acos(-1.0);
    }
    case Metric::rmse:
        return std::sqrt(dd / nb);
    case Metric::maxabs:
        return largest;
    default:
        return 0;
    }
}

Ranges reference_ranges(const Pair& p) {
    Ranges r;
    const double inf = std::numeric_limits<double>::infinity();
    for (int b = 0; b < p.s.shape.bands; ++b) {
        std::array<double, 2> s{inf, -inf}, t{inf, -inf};
        for (int64_t y = 0; y < p.s.shape.lines; ++y)
            for (int64_t x = 0; x < p.s.shape.samples; ++x) {
                if (!p.valid(y, x)) continue;
                s = {std::min(s[0], double{p.s.at(b, y, x)}), std::max(s[1], double{p.s.at(b, y, x)})};
                t = {std::min(t[0], double{p.t.at(b, y, x)}), std::max(t[1], double{p.t.at(b, y, x)})};
            }
        r.first.push_back(s);
        r.second.push_back(t);
    }
    return r;
}

double reference_ssim(const Pair& p, const Ranges& r, int b, int64_t y, int64_t x) {
    double w = 0, ms = 0, mt = 0, vs = 0, vt = 0, cov = 0;
    const auto each = [&](const std::function<void(double, double, double)>& f) {
        for (int64_t j = std::max<int64_t>(0, y - 5); j <= std::min(p.s.shape.lines - 1, y + 5); ++j)
            for (int64_t i = std::max<int64_t>(0, x - 5); i <= std::min(p.s.shape.samples - 1, x + 5); ++i)
                if (p.valid(j, i))
                    f(std::exp(-static_cast<double>((j - y) * (j - y) + (i - x) * (i - x)) / 4.5),
                      p.s.at(b, j, i), p.t.at(b, j, i));
    };
    each([&](double g, double s, double t) { w += g, ms += g * s, mt += g * t; });
    ms /= w;
    mt /= w;
    each([&](double g, double s, double t) {
        vs += g / w * (s - ms) * (s - ms), vt += g / w * (t - mt) * (t - mt),
            cov += g / w * (s - ms) * (t - mt);
    });
    const double length = r.first[static_cast<size_t>(b)][1] - r.first[static_cast<size_t>(b)][0];
    const double c1 = std::pow(0.01 * length, 2), c2 = std::pow(0.03 * length, 2);
    return (2 * ms * mt + c1) * (2 * cov + c2) / ((ms * ms + mt * mt + c1) * (vs + vt + c2));
}

TEST(Compare, SpectralMetricsMatchTheirDefinitions) {
    const Pair p = made();
    const auto source = p.source();
    for (const auto& [tx, ty, lanes] : tilings) {
        const auto op = make_comparison(p.s.shape.bands, spectral, true, {});
        test::MemorySink map(p.s.shape.samples, p.s.shape.lines, 5);
        stream::run_pass(*source, *op, {&map}, tiles(tx, ty, lanes));
        for (size_t k = 0; k < spectral.size(); ++k) {
            double sum = 0, most = -1;
            int64_t count = 0, at_line = 0, at_sample = 0;
            for (int64_t y = 0; y < p.s.shape.lines; ++y)
                for (int64_t x = 0; x < p.s.shape.samples; ++x) {
                    const float got = map.cube.at(static_cast<int>(k), y, x);
                    if (!p.valid(y, x)) {
                        EXPECT_TRUE(std::isnan(got));
                        continue;
                    }
                    const double want = reference(spectral[k], p, y, x);
                    EXPECT_NEAR(got, want, 1e-6 * want + 1e-7)
                        << metric_name(spectral[k]) << " " << y << " " << x;
                    sum += want;
                    ++count;
                    if (want > most) most = want, at_line = y, at_sample = x;
                }
            const Summary s = op->result().summaries[k];
            EXPECT_NEAR(s.mean, sum / static_cast<double>(count), 1e-12 * s.mean + 1e-15);
            EXPECT_NEAR(s.maximum, most, 1e-12 * most);
            EXPECT_EQ(s.line, at_line);
            EXPECT_EQ(s.sample, at_sample);
        }
        const PixelCounts c = op->result().counts;
        EXPECT_EQ(c.compared, 301 * 43 - 4);
        EXPECT_EQ(c.only_first, 2);
        EXPECT_EQ(c.only_second, 1);
        EXPECT_EQ(c.neither, 1);
    }
}

TEST(Compare, TilesAndThreadsChangeNoBit) {
    const Pair p = made();
    const auto source = p.source();
    std::set<std::vector<double>> results;
    std::vector<test::Cube> maps;
    for (const auto& [tx, ty, lanes] : tilings) {
        const auto range = make_range_scan(p.s.shape.bands);
        stream::run_pass(*source, *range, {}, tiles(tx, ty, lanes));
        const auto op = make_comparison(p.s.shape.bands, with_ssim, true, range->result());
        test::MemorySink map(p.s.shape.samples, p.s.shape.lines, 6);
        stream::run_pass(*source, *op, {&map}, tiles(tx, ty, lanes));
        std::vector<double> all = op->result().ssim;
        for (const Summary& s : op->result().summaries)
            all.insert(all.end(), {s.mean, s.maximum});
        results.insert(all);
        maps.push_back(map.cube);
        EXPECT_TRUE(test::identical(map.cube, maps.front())) << tx << "x" << ty;
    }
    EXPECT_EQ(results.size(), 1u);
}

TEST(Compare, StructuralSimilarityMatchesItsDefinition) {
    Pair p = made(140, 23, 3);
    const auto source = p.source();
    const auto scan = make_range_scan(3);
    stream::run_pass(*source, *scan, {}, tiles(128, 8, 2));
    const Ranges ranges = scan->result(), want_ranges = reference_ranges(p);
    EXPECT_EQ(ranges.first, want_ranges.first);
    EXPECT_EQ(ranges.second, want_ranges.second);
    const auto op = make_comparison(3, {Metric::ssim}, true, ranges);
    test::MemorySink map(140, 23, 1);
    stream::run_pass(*source, *op, {&map}, tiles(128, 8, 2));
    std::vector<double> mean(3, 0.0);
    int64_t count = 0;
    for (int64_t y = 0; y < 23; ++y)
        for (int64_t x = 0; x < 140; ++x) {
            if (!p.valid(y, x)) {
                EXPECT_TRUE(std::isnan(map.cube.at(0, y, x)));
                continue;
            }
            double local = 0;
            for (int b = 0; b < 3; ++b) {
                const double v = reference_ssim(p, ranges, b, y, x);
                mean[static_cast<size_t>(b)] += v;
                local += v / 3;
            }
            EXPECT_NEAR(map.cube.at(0, y, x), local, 1e-6);
            ++count;
        }
    for (size_t b = 0; b < 3; ++b)
        EXPECT_NEAR(op->result().ssim[b], mean[b] / static_cast<double>(count), 1e-11);
}

TEST(Compare, IdenticalCubesAreAtDistanceZero) {
    Pair p = made();
    p.t = p.s;
    const auto source = p.source();
    const auto op = make_comparison(7, with_ssim, false, reference_ranges(p));
    stream::run_pass(*source, *op, {}, tiles(128, 9, 2));
    for (const Summary& s : op->result().summaries) {
        EXPECT_EQ(s.mean, 0);
        EXPECT_EQ(s.maximum, 0);
        EXPECT_EQ(s.line, 0); // first compared pixel
        EXPECT_EQ(s.sample, 0);
    }
    for (double v : op->result().ssim)
        EXPECT_DOUBLE_EQ(v, 1);
}

TEST(Compare, SmallAnglesKeepTheirDigits) {
    // t = s + e with e orthogonal to s and |e|/|s| = 2^-20. The arc cosine of the dot product would lose half
    // of the digits.
    Pair p{test::Cube(1, 1, 2, 1.0f), test::Cube(1, 1, 2, 1.0f)};
    p.t.at(0, 0, 0) = 1.0f + 0x1p-20f;
    p.t.at(1, 0, 0) = 1.0f - 0x1p-20f;
    const auto source = p.source();
    const auto op = make_comparison(2, {Metric::sad}, false, {});
    stream::run_pass(*source, *op, {}, tiles(1, 1, 1));
    const double want = std::atan(0x1p-20) * 180 / std::acos(-1.0);
    EXPECT_NEAR(op->result().summaries[0].maximum, want, 1e-9 * want);
}

TEST(Compare, FlatReferenceIsInfinitelyFar) {
    Pair p{test::Cube(2, 1, 3, 1.0f), test::Cube(2, 1, 3, 1.0f)};
    p.t.at(0, 0, 1) = 2;
    const auto source = p.source();
    const auto op = make_comparison(3, {Metric::nrmse, Metric::maxsde}, false, {});
    stream::run_pass(*source, *op, {}, tiles(2, 1, 1));
    EXPECT_TRUE(std::isinf(op->result().summaries[0].mean));
    EXPECT_TRUE(std::isinf(op->result().summaries[0].maximum));
    EXPECT_EQ(op->result().summaries[0].sample, 1);
    EXPECT_DOUBLE_EQ(op->result().summaries[1].mean, 0.5);
}

TEST(Compare, NothingToCompareGivesNoNumber) {
    Pair p{test::Cube(3, 2, 2, nan_value), test::Cube(3, 2, 2, 1.0f)};
    const auto source = p.source();
    const auto op = make_comparison(2, spectral, false, {});
    stream::run_pass(*source, *op, {}, tiles(3, 1, 2));
    EXPECT_EQ(op->result().counts.compared, 0);
    EXPECT_EQ(op->result().counts.only_second, 6);
    for (const Summary& s : op->result().summaries)
        EXPECT_TRUE(std::isnan(s.mean) && std::isnan(s.maximum) && s.line == -1);
}

TEST(Compare, SingleBandsMayHoldZero) {
    Pair p{test::Cube(2, 1, 1, 0.0f), test::Cube(2, 1, 1, 0.0f)};
    p.t.at(0, 0, 1) = 0.5f;
    const auto source = p.source();
    const auto op = make_comparison(1, {Metric::maxabs}, false, {});
    stream::run_pass(*source, *op, {}, tiles(2, 1, 1));
    EXPECT_EQ(op->result().counts.compared, 2);
    EXPECT_EQ(op->result().summaries[0].mean, 0.25);
}

int64_t flood_count(const Pair& p, const test::Cube& c, int b, const std::array<double, 2>& range,
                    int threshold) {
    const int64_t w = c.shape.samples, h = c.shape.lines;
    std::vector<int> phase(static_cast<size_t>(w * h), -1);
    for (int64_t y = 0; y < h; ++y)
        for (int64_t x = 0; x < w; ++x)
            if (p.valid(y, x))
                phase[static_cast<size_t>(y * w + x)] = Binning(range)(c.at(b, y, x)) > threshold;
    int64_t zones = 0;
    for (size_t seed = 0; seed < phase.size(); ++seed) {
        if (phase[seed] < 0) continue;
        ++zones;
        const int own = phase[seed];
        std::vector<int64_t> todo{static_cast<int64_t>(seed)};
        phase[seed] = -1;
        while (!todo.empty()) {
            const int64_t at = todo.back(), x = at % w, y = at / w;
            todo.pop_back();
            const auto visit = [&](int64_t i, int64_t j) {
                if (i < 0 || j < 0 || i >= w || j >= h || phase[static_cast<size_t>(j * w + i)] != own)
                    return;
                phase[static_cast<size_t>(j * w + i)] = -1;
                todo.push_back(j * w + i);
            };
            visit(x - 1, y);
            visit(x + 1, y);
            visit(x, y - 1);
            visit(x, y + 1);
        }
    }
    return zones;
}

TEST(Compare, FlatZonesMatchAFloodFillForEveryTiling) {
    const Pair p = made(97, 61, 3);
    const auto source = p.source();
    const Ranges ranges = reference_ranges(p);
    for (const auto& [tx, ty, lanes] : tilings) {
        const auto split = make_threshold_scan(3, ranges);
        stream::run_pass(*source, *split, {}, tiles(tx, ty, lanes));
        const Thresholds thresholds = split->result();
        const auto scan = make_zone_scan(3, 97, ranges, thresholds);
        stream::run_pass(*source, *scan, {}, tiles(tx, ty, lanes));
        const Zones zones = scan->result();
        for (int b = 0; b < 3; ++b) {
            const auto i = static_cast<size_t>(b);
            EXPECT_GT(zones.first[i], 100);
            EXPECT_EQ(zones.first[i], flood_count(p, p.s, b, ranges.first[i], thresholds.first[i])) << ty;
            EXPECT_EQ(zones.second[i], flood_count(p, p.t, b, ranges.second[i], thresholds.second[i])) << ty;
        }
    }
}

TEST(Compare, ZonesThatCloseInLaterStripsAreCountedOnce) {
    // A spiral and a comb: components of one strip are joined only by lines further down.
    Pair p{test::Cube(9, 9, 1), test::Cube(9, 9, 1)};
    const char* comb[] = {"#.#.#.#.#", "#.#.#.#.#", "#.#.#.#.#", "#.#.#.#.#", "#########",
                          "#.......#", "#.#####.#", "#.......#", "#########"};
    for (int64_t y = 0; y < 9; ++y)
        for (int64_t x = 0; x < 9; ++x)
            p.s.at(0, y, x) = comb[y][x] == '#';
    const auto source = p.source();
    const Ranges ranges{{{0, 1}}, {{0, 0}}};
    for (int lines = 1; lines <= 9; ++lines) {
        const auto scan = make_zone_scan(1, 9, ranges, {{127}, {255}});
        stream::run_pass(*source, *scan, {}, tiles(9, lines, 3));
        EXPECT_EQ(scan->result().first[0], 4 + 1 + 1 + 1); // gaps between teeth, comb, ring, bar
        EXPECT_EQ(scan->result().second[0], 1);
    }
}

TEST(Compare, MeasurementTakesThePassesThatItsMetricsNeed) {
    const Pair p = made(97, 61, 3);
    const auto source = p.source();
    const Measurement all({Metric::sr, Metric::sad, Metric::ssim, Metric::rmse});
    EXPECT_EQ(all.local(), (std::vector<Metric>{Metric::sad, Metric::ssim, Metric::rmse}));
    std::vector<std::string> shown, names;
    all.show(*source, true,
             [&](const std::string& name, const stream::Operation&) { shown.push_back(name); });
    EXPECT_EQ(shown, (std::vector<std::string>{"ranges", "thresholds", "zones", "compare"}));

    test::MemorySink map(97, 61, 3);
    int opened = 0;
    double done = 0;
    const auto pass = [&](const std::string& name, double share, stream::Operation& operation,
                          const std::vector<stream::CubeSink*>& sinks) {
        EXPECT_EQ(opened, name == "compare" ? 1 : 0) << "the map is opened before the last pass";
        EXPECT_EQ(sinks.size(), name == "compare" ? 1u : 0u);
        names.push_back(name);
        done += share;
        stream::run_pass(*source, operation, sinks, tiles(128, 7, 3));
    };
    const auto open_map = [&]() -> stream::CubeSink* {
        ++opened;
        return &map;
    };
    const Findings f = all.run(*source, open_map, pass);
    EXPECT_EQ(names, shown);
    EXPECT_NEAR(done, 1, 1e-12);

    EXPECT_EQ(f.spectral, (std::vector<Metric>{Metric::sad, Metric::rmse}));
    const Ranges ranges = reference_ranges(p);
    double largest = 0;
    int64_t compared = 0;
    for (int64_t y = 0; y < 61; ++y)
        for (int64_t x = 0; x < 97; ++x) {
            if (!p.valid(y, x)) continue;
            ++compared;
            largest = std::max(largest, reference(Metric::sad, p, y, x));
            EXPECT_NEAR(map.cube.at(0, y, x), reference(Metric::sad, p, y, x), 1e-5);
        }
    EXPECT_EQ(f.counts.compared, compared);
    EXPECT_NEAR(f.summaries[0].maximum, largest, 1e-9 * largest);
    ASSERT_EQ(f.ssim.size(), 3u);
    ASSERT_EQ(f.sr.size(), 3u);
    for (size_t b = 0; b < 3; ++b) {
        EXPECT_EQ(f.sr[b], static_cast<double>(f.zones.second[b]) / static_cast<double>(f.zones.first[b]));
        EXPECT_GT(f.ssim[b], 0.5);
    }

    names.clear();
    opened = 0;
    const auto one = Measurement({Metric::maxabs})
                         .run(*source, nullptr,
                              [&](const std::string& name, double share, stream::Operation& operation,
                                  const std::vector<stream::CubeSink*>& sinks) {
                                  names.push_back(name);
                                  EXPECT_EQ(share, 1);
                                  stream::run_pass(*source, operation, sinks, tiles(128, 7, 3));
                              });
    EXPECT_EQ(names, std::vector<std::string>{"compare"});
    EXPECT_EQ(one.counts.compared, compared);
    EXPECT_TRUE(one.ssim.empty() && one.sr.empty());
}

TEST(Compare, OtsuSplitsTwoHeaps) {
    std::array<int64_t, histogram_bins> h{};
    h[10] = 100, h[12] = 80, h[200] = 50, h[210] = 60;
    EXPECT_EQ(otsu_threshold(h), 12);
    h.fill(0);
    h[7] = 5;
    EXPECT_EQ(otsu_threshold(h), histogram_bins - 1); // with one group of values there is one phase
}

TEST(Compare, SourcesOfDifferentSizesAreRefused) {
    const test::Cube a(4, 3, 2), b(4, 2, 2);
    EXPECT_THROW(stream::StackedSource(
                     {std::make_shared<test::MemorySource>(a), std::make_shared<test::MemorySource>(b)}),
                 Error);
    EXPECT_THROW(parse_metric("psnr"), UsageError);
    EXPECT_EQ(parse_metric("ssim"), Metric::ssim);
}

} // namespace
