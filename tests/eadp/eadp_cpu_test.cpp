// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "eadp/eadp_reference.h"
#include "eadp/profile.h"
#include "math/linear_algebra.h"
#include "parallel/thread_job.h"
#include "stream/band_writer.h"
#include "support/memory_cube.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace hsi::test {
namespace {

struct Cut {
    int64_t samples = 0, lines = 0;
    int threads = 1;
};

struct Profile {
    Cube cube;
    eadp::ProfileFacts facts;
    std::vector<std::string> warnings;
};

Profile profile_of(const Cube& components, const eadp::Options& options, Cut cut = {},
                   uint64_t memory = uint64_t{1} << 30) {
    const MemorySource source(components);
    MemorySink sink(components.shape.samples, components.shape.lines,
                    eadp::profile_bands(options, components.shape.bands));
    Profile result;
    eadp::ProfileRun run;
    run.memory = memory;
    run.folder = testing::TempDir();
    run.warn = [&](const std::string& text) { result.warnings.push_back(text); };
    run.pass = [&](const std::string& name, double) {
        stream::PassOptions pass;
        pass.name = name;
        pass.lanes = cut.threads;
        pass.tile_samples = cut.samples;
        pass.tile_lines = cut.lines;
        return pass;
    };
    const auto backend = eadp::make_cpu_backend();
    result.facts = eadp::make_profile(
        source, options, *backend, [&](const eadp::ProfileFacts&) -> stream::CubeSink& { return sink; }, run);
    result.cube = std::move(sink.cube);
    return result;
}

/// Returns components with edges, texture and noise, so with strong and weak gradients.
Cube component_planes(int64_t samples, int64_t lines, int bands, uint32_t seed = 1) {
    Cube cube = random_scene(samples, lines, bands, seed, 0.05, 100);
    for (int b = 0; b < bands; ++b)
        for (int64_t y = 0; y < lines; ++y)
            for (int64_t x = 0; x < samples; ++x)
                cube.at(b, y, x) += (x + y) % 37 > 18 ? 300.0f : -200.0f * static_cast<float>(b);
    return cube;
}

eadp::Options options_with(std::vector<double> times) {
    eadp::Options o;
    o.times = std::move(times);
    return o;
}

std::vector<double> default_times() {
    std::vector<double> times;
    for (int c = 1; c <= 8; ++c)
        times.push_back(65.0 * c);
    return times;
}

double range_of(const std::vector<double>& v) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (double x : v)
        if (std::isfinite(x)) low = std::min(low, x), high = std::max(high, x);
    return high - low;
}

/// Returns the largest difference in a plane, relative to the component's range; infinite if validity
/// differs.
double difference(const Cube& got, const std::vector<std::vector<double>>& want, const eadp::Options& o) {
    const auto pixels = static_cast<size_t>(got.shape.pixels());
    double worst = 0;
    for (size_t p = 0; p < want.size(); ++p) {
        const double range = range_of(want[p - p % (o.times.size() + 1)]);
        for (size_t i = 0; i < pixels; ++i) {
            const float g = got.values[p * pixels + i];
            if (std::isnan(want[p][i]) != std::isnan(g)) return std::numeric_limits<double>::infinity();
            if (!std::isnan(g))
                worst = std::max(worst, std::fabs(static_cast<double>(g) - want[p][i]) / range);
        }
    }
    return worst;
}

// --- schedule
// ---------------------------------------------------------------------------------------------------------

TEST(EadpSchedule, StepCountsAreThoseOfThePaper) {
    const int want[] = {28, 39, 48, 56, 62, 68, 74, 79};
    int total = 0;
    for (int c = 1; c <= 8; ++c) {
        EXPECT_EQ(eadp::fed_steps(65.0 * c, 1), want[c - 1]);
        total += eadp::fed_steps(65.0 * c, 1);
    }
    EXPECT_EQ(total, 454);
    const auto stages = eadp::make_stages(options_with(default_times()));
    ASSERT_EQ(stages.size(), 1u);
    EXPECT_EQ(stages[0].degree, 79);
    EXPECT_EQ(eadp::halo_of(options_with(default_times()), stages), 79 + 4);
}

TEST(EadpSchedule, TheStepsLastExactlyTheProcessTime) {
    for (double time : {0.01, 1.0, 65.0, 520.0, 12345.0})
        for (int cycles : {1, 2, 5}) {
            const auto taus = eadp::fed_taus(time, cycles);
            EXPECT_NEAR(cycles * std::accumulate(taus.begin(), taus.end(), 0.0), time, 1e-12 * time);
        }
}

TEST(EadpSchedule, CoefficientsAreThePolynomialOfTheSteps) {
    for (int cycles : {1, 3}) {
        const auto a = eadp::fed_coefficients(130, cycles);
        const auto taus = eadp::fed_taus(130, cycles);
        EXPECT_EQ(a.size(), taus.size() * static_cast<size_t>(cycles) + 1);
        EXPECT_NEAR(std::accumulate(a.begin(), a.end(), 0.0), 1.0, 1e-12); // constants do not change
        for (double x = -1; x <= 1; x += 0.01) {
            double product = 1, sum = 0;
            for (double t : taus)
                product *= 1 + t / eadp::tau_max * (x - 1);
            for (size_t k = 0; k < a.size(); ++k)
                sum += a[k] * std::cos(static_cast<double>(k) * std::acos(x));
            EXPECT_NEAR(sum, std::pow(product, cycles), 1e-11);
        }
    }
}

TEST(EadpSchedule, ExactCoefficientsAreTheExponentialWithinTheTolerance) {
    for (double time : {0.001, 0.5, 65.0, 520.0, 20000.0})
        for (double tolerance : {1e-2, 1e-4, 1e-8}) {
            const auto a = eadp::exact_coefficients(time, tolerance);
            EXPECT_NEAR(std::accumulate(a.begin(), a.end(), 0.0), 1.0, 1e-12);
            for (double x = -1; x <= 1; x += 0.003) {
                double sum = 0;
                for (size_t k = 0; k < a.size(); ++k)
                    sum += a[k] * std::cos(static_cast<double>(k) * std::acos(x));
                EXPECT_NEAR(sum, std::exp(time / eadp::tau_max * (x - 1)), 2 * tolerance + 1e-12);
            }
        }
    EXPECT_NEAR(static_cast<double>(eadp::exact_coefficients(520, 1e-4).size()), 180, 15);
}

TEST(EadpSchedule, ImpossibleOptionsNameTheOption) {
    const auto refuses = [](auto change) {
        auto o = options_with({65});
        change(o);
        EXPECT_THROW(eadp::check(o), UsageError);
    };
    EXPECT_NO_THROW(eadp::check(options_with({65})));
    refuses([](eadp::Options& o) { o.times.clear(); });
    refuses([](eadp::Options& o) { o.times = {65, 0}; });
    refuses([](eadp::Options& o) { o.times = {-1}; });
    refuses([](eadp::Options& o) { o.times = {std::nan("")}; });
    refuses([](eadp::Options& o) { o.times = {65, 65}, o.evolution = eadp::Evolution::incremental; });
    refuses([](eadp::Options& o) { o.sigma = -1; });
    refuses([](eadp::Options& o) { o.percentile = 0; });
    refuses([](eadp::Options& o) { o.percentile = 1.1; });
    refuses([](eadp::Options& o) { o.contrast = 0; });
    refuses([](eadp::Options& o) { o.cycles = 0; });
    refuses([](eadp::Options& o) { o.tolerance = 0; });
}

// --- profile
// ----------------------------------------------------------------------------------------------------------

TEST(EadpCpu, EqualsTheOrderedProductOfFedSteps) {
    const Cube planes = component_planes(71, 53, 2);
    auto o = options_with(default_times());
    for (auto g : {eadp::Diffusivity::g1, eadp::Diffusivity::g2, eadp::Diffusivity::g3}) {
        o.diffusivity = g;
        const auto want = reference_profile(planes, o);
        o.precision = eadp::Precision::double_precision;
        EXPECT_LT(difference(profile_of(planes, o).cube, want, o), 2e-7); // rounded to Float32 at the end
        o.precision = eadp::Precision::single_precision;
        EXPECT_LT(difference(profile_of(planes, o).cube, want, o), 5e-6);
    }
}

TEST(EadpCpu, EveryEvolutionEqualsItsReference) {
    const Cube planes = component_planes(60, 41, 2, 2);
    for (auto evolution :
         {eadp::Evolution::independent, eadp::Evolution::cascade, eadp::Evolution::incremental})
        for (int cycles : {1, 3})
            for (double sigma : {0.0, 1.0, 2.4}) {
                auto o = options_with({20, 45, 90});
                o.evolution = evolution;
                o.cycles = cycles;
                o.sigma = sigma;
                const auto want = reference_profile(planes, o);
                // A cascade stores its copies in Float32 between the steps.
                EXPECT_LT(difference(profile_of(planes, o).cube, want, o), 1e-5);
                o.precision = eadp::Precision::double_precision;
                EXPECT_LT(difference(profile_of(planes, o).cube, want, o),
                          evolution == eadp::Evolution::cascade ? 1e-6 : 2e-7);
            }
}

TEST(EadpCpu, PercentileAndFixedContrastAreObeyed) {
    const Cube planes = component_planes(50, 40, 1, 3);
    auto o = options_with({30});
    for (double percentile : {0.1, 0.5, 0.95, 1.0}) {
        o.percentile = percentile;
        const auto result = profile_of(planes, o);
        const Field f = component_of(planes, 0);
        EXPECT_NEAR(result.facts.components[0].k, reference_contrast(f, reference_gradient(f, 1), percentile),
                    1e-9);
        EXPECT_LT(difference(result.cube, reference_profile(planes, o), o), 5e-6);
    }
    o.contrast = 12.5;
    EXPECT_LT(difference(profile_of(planes, o).cube, reference_profile(planes, o), o), 5e-6);
}

TEST(EadpCpu, InvalidPixelsTakeNoPart) {
    Cube planes = component_planes(64, 50, 2, 4);
    const auto invalidate = [&](int64_t y, int64_t x) {
        for (int b = 0; b < 2; ++b)
            make_invalid(planes, y, x, b);
    };
    for (int64_t y = 10; y < 25; ++y)
        for (int64_t x = 0; x < 40; ++x)
            invalidate(y, x);
    for (int64_t y = 30; y < 35; ++y) // a ring around one pixel
        for (int64_t x = 50; x < 55; ++x)
            if (y != 32 || x != 52) invalidate(y, x);
    invalidate(0, 0);
    invalidate(49, 63);
    for (auto evolution :
         {eadp::Evolution::independent, eadp::Evolution::cascade, eadp::Evolution::incremental}) {
        auto o = options_with({15, 40});
        o.evolution = evolution;
        const auto got = profile_of(planes, o);
        EXPECT_LT(difference(got.cube, reference_profile(planes, o), o), 1e-5);
        for (int c = 0; c <= 2; ++c)
            EXPECT_NEAR(got.cube.at(c, 32, 52), planes.at(0, 32, 52), 1e-3); // no flux in or out
    }
}

TEST(EadpCpu, TallScenesAreSetUpInChunksWithoutATrace) {
    Cube planes = component_planes(61, 403, 1, 14);
    for (int64_t y = 180; y < 215; ++y)
        for (int64_t x = 10; x < 30; ++x)
            make_invalid(planes, y, x, 0);
    const auto o = options_with({20, 65});
    const auto want = reference_profile(planes, o);
    for (int threads : {1, 2, 5})
        EXPECT_LT(difference(profile_of(planes, o, {0, 0, threads}).cube, want, o), 5e-6);
}

TEST(EadpCpu, RawBandsAreInvalidWhereAllAreZero) {
    Cube planes = component_planes(30, 30, 2, 5);
    planes.at(0, 5, 5) = planes.at(1, 5, 5) = 0;
    planes.at(0, 6, 6) = 0;
    auto o = options_with({10});
    EXPECT_FALSE(std::isnan(profile_of(planes, o).cube.at(1, 5, 5)));
    o.zero_is_invalid = true;
    for (auto evolution : {eadp::Evolution::independent, eadp::Evolution::cascade}) {
        o.evolution = evolution;
        const auto got = profile_of(planes, o).cube;
        EXPECT_TRUE(std::isnan(got.at(0, 5, 5)) && std::isnan(got.at(3, 5, 5)));
        EXPECT_FALSE(std::isnan(got.at(1, 6, 6)));
    }
}

TEST(EadpCpu, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    Cube planes = component_planes(150, 110, 2, 6);
    for (int b = 0; b < 2; ++b)
        make_invalid(planes, 60, 70, b);
    for (auto evolution :
         {eadp::Evolution::independent, eadp::Evolution::cascade, eadp::Evolution::incremental})
        for (auto precision : {eadp::Precision::single_precision, eadp::Precision::double_precision}) {
            auto o = options_with({6, 14, 30});
            o.evolution = evolution;
            o.precision = precision;
            const auto whole = profile_of(planes, o);
            for (const Cut& cut : {Cut{0, 0, 2}, Cut{0, 0, 5}, Cut{64, 32, 1}, Cut{37, 29, 3}, Cut{150, 7, 2},
                                   Cut{9, 110, 2}}) {
                SCOPED_TRACE(testing::Message()
                             << "tiles " << cut.samples << "x" << cut.lines << ", threads " << cut.threads);
                EXPECT_TRUE(identical(profile_of(planes, o, cut).cube, whole.cube));
            }
        }
}

TEST(EadpCpu, WideScenesAreCutIntoStripsWithoutATrace) {
    const Cube planes = component_planes(1300, 40, 1, 7); // three strips of the recurrence
    auto o = options_with(default_times());
    const auto got = profile_of(planes, o, {0, 0, 2});
    EXPECT_LT(difference(got.cube, reference_profile(planes, o), o), 5e-6);
    EXPECT_TRUE(identical(got.cube, profile_of(planes, o, {333, 40, 1}).cube));
}

TEST(EadpCpu, LittleMemoryGivesTheSame) {
    const Cube planes = component_planes(400, 300, 2, 8);
    for (auto evolution : {eadp::Evolution::independent, eadp::Evolution::cascade}) {
        auto o = options_with({5, 12});
        o.evolution = evolution;
        const auto roomy = profile_of(planes, o, {0, 0, 2});
        EXPECT_TRUE(identical(profile_of(planes, o, {0, 0, 2}, 3 << 20).cube, roomy.cube));
    }
    EXPECT_THROW(profile_of(planes, options_with({65}), {}, 64 << 10), Error);
}

TEST(EadpCpu, TinyScenesWork) {
    for (auto [w, h] : {std::pair{1, 1}, {1, 9}, {9, 1}, {2, 3}, {5, 5}}) {
        const Cube planes = component_planes(w, h, 1, 9);
        auto o = options_with({3, 65});
        EXPECT_LT(difference(profile_of(planes, o).cube, reference_profile(planes, o), o),
                  w * h == 1 ? 1.0 : 5e-6);
    }
}

TEST(EadpCpu, AConstantComponentIsItsOwnProfile) {
    Cube planes(40, 30, 1, 123.25f);
    auto o = options_with({65, 130});
    const auto got = profile_of(planes, o);
    for (float v : got.cube.values)
        EXPECT_EQ(v, 123.25f);
    ASSERT_EQ(got.warnings.size(), 1u);
    EXPECT_EQ(got.facts.components[0].k, 0);
}

TEST(EadpCpu, TheMeanStaysAndTheNormNeverGrows) {
    const Cube planes = component_planes(90, 70, 1, 10);
    for (auto scheme : {eadp::Scheme::fed, eadp::Scheme::exact}) {
        auto o = options_with(default_times());
        o.scheme = scheme;
        const auto got = profile_of(planes, o).cube;
        const auto pixels = static_cast<size_t>(got.shape.pixels());
        double mean0 = 0, norm0 = 0;
        for (size_t c = 0; c <= 8; ++c) {
            double mean = 0, norm = 0;
            for (size_t i = 0; i < pixels; ++i) {
                const auto v = static_cast<double>(got.values[c * pixels + i]);
                mean += v / static_cast<double>(pixels);
                norm += v * v;
            }
            if (c == 0) mean0 = mean, norm0 = norm;
            EXPECT_NEAR(mean, mean0, 1e-5 * 500) << "copy " << c;
            EXPECT_LE(norm, norm0 * (1 + 1e-7)) << "copy " << c;
            // The norm of the exact solution falls from copy to copy
            if (scheme == eadp::Scheme::exact) norm0 = norm;
        }
    }
}

TEST(EadpCpu, ExactEqualsTheMatrixExponential) {
    const int64_t w = 14, h = 11;
    Cube planes = component_planes(w, h, 1, 11);
    make_invalid(planes, 4, 5, 0);
    auto o = options_with({0.3, 10, 65, 520});
    o.scheme = eadp::Scheme::exact;
    const Field f = component_of(planes, 0);
    const auto m = reference_gradient(f, o.sigma);
    const auto g = reference_g(m, reference_contrast(f, m, o.percentile), o.diffusivity);
    const auto n = static_cast<size_t>(w * h);
    std::vector<double> matrix(n * n);
    for (size_t j = 0; j < n; ++j) {
        std::vector<double> unit(n, 0.0);
        unit[j] = 1;
        const auto column = reference_operator(f, g, unit);
        for (size_t i = 0; i < n; ++i)
            matrix[i * n + j] = column[i];
    }
    const auto eigen = math::eigen_symmetric(matrix, static_cast<int>(n));
    for (double tolerance : {1e-3, 1e-4, 1e-9}) {
        o.tolerance = tolerance;
        o.precision =
            tolerance < 1e-6 ? eadp::Precision::double_precision : eadp::Precision::single_precision;
        for (auto evolution : {eadp::Evolution::independent, eadp::Evolution::incremental}) {
            o.evolution = evolution;
            const auto got = profile_of(planes, o).cube;
            double low = 1e30, high = -1e30;
            for (size_t i = 0; i < n; ++i)
                if (f.valid[i]) low = std::min(low, f.v[i]), high = std::max(high, f.v[i]);
            const double allowed =
                (high - low) * (tolerance * (evolution == eadp::Evolution::incremental ? 4 : 1) +
                                3e-6 * (tolerance > 1e-6) + 1e-7);
            for (size_t c = 0; c < o.times.size(); ++c) {
                std::vector<double> want(n, 0.0);
                for (int k = 0; k < static_cast<int>(n); ++k) {
                    double dot = 0;
                    for (size_t i = 0; i < n; ++i)
                        dot += eigen.vector(k)[i] * f.v[i];
                    dot *= std::exp(o.times[c] * eigen.values[static_cast<size_t>(k)]);
                    for (size_t i = 0; i < n; ++i)
                        want[i] += dot * eigen.vector(k)[i];
                }
                for (size_t i = 0; i < n; ++i) {
                    if (!f.valid[i]) continue;
                    const auto value = static_cast<double>(got.values[(c + 1) * n + i]);
                    EXPECT_NEAR(value, want[i], allowed) << "T " << o.times[c] << ", pixel " << i;
                    EXPECT_GE(value, low - allowed); // no new extremes
                    EXPECT_LE(value, high + allowed);
                }
            }
        }
    }
}

/// The Gaussian's denominators are constant far from holes: this holds in some tiles only.
TEST(EadpCpu, FewHolesMakeNoBitDependOnTheTiling) {
    for (const double sigma : {0.0, 1.0, 2.3}) {
        auto planes = component_planes(120, 75, 2, 6);
        for (int b = 0; b < 2; ++b) { // the reference processes each component separately
            make_invalid(planes, 0, 17, b);
            make_invalid(planes, 40, 61, b);
            for (int64_t x = 0; x < 120; ++x)
                make_invalid(planes, 58, x, b); // a line without valid pixels
        }
        auto o = options_with({3, 20});
        o.sigma = sigma;
        const auto whole = profile_of(planes, o);
        EXPECT_LT(difference(whole.cube, reference_profile(planes, o), o), 1e-4);
        for (const Cut cut : {Cut{120, 9, 2}, Cut{31, 75, 1}, Cut{25, 13, 2}, Cut{0, 0, 3}})
            EXPECT_TRUE(identical(profile_of(planes, o, cut).cube, whole.cube))
                << cut.samples << "x" << cut.lines << ", sigma " << sigma;
    }
}

TEST(EadpCpu, DataOnAHighLevelKeepItsDigits) {
    Cube planes = component_planes(60, 50, 1, 12);
    for (auto& v : planes.values)
        v = 30000.0f + std::round(v) / 64.0f;
    auto o = options_with({65, 520});
    EXPECT_LT(difference(profile_of(planes, o).cube, reference_profile(planes, o), o),
              3e-4); // a Float32 ulp at 30000
}

/// A sink that takes bands, or announces it and then does not.
class BandSink final : public stream::CubeSink, public stream::BandTaker {
  public:
    BandSink(const stream::CubeShape& shape, bool takes)
        : behind(shape.samples, shape.lines, shape.bands), m_takes(takes) {}
    stream::CubeShape shape() const override { return behind.shape(); }
    bool concurrent() const override { return true; }
    void write(const Rect& core, const CubeView<float>& src) override {
        ++tiles;
        behind.write(core, src);
    }
    bool takes_bands() const override { return m_takes; }
    void write_band(int band, const Rect& core, const CubeView<float>& src) override {
        if (on_write) on_write(band);
        ++pieces;
        for (int64_t y = 0; y < core.h; ++y)
            std::copy_n(src.row(0, y), core.w, &behind.cube.at(band, core.y + y, core.x));
    }
    MemorySink behind;
    std::function<void(int)> on_write;
    std::atomic<int> tiles{0}, pieces{0};

  private:
    const bool m_takes;
};

/// Writes as the tool does to a file whose bands are separate.
struct Written {
    std::vector<stream::PassReport> passes;
    eadp::DiffusionPlan plan;
    double progress = 0;
};
Written write_bands(const Cube& components, const eadp::Options& options, BandSink& sink, uint64_t memory,
                    int threads, const CancelFlag* cancel = nullptr) {
    const MemorySource source(components);
    Written result;
    eadp::ProfileRun run;
    run.memory = memory;
    run.folder = testing::TempDir();
    run.sink_takes_bands = true;
    run.finished = [&](const stream::PassReport& report) { result.passes.push_back(report); };
    run.pass = [&](const std::string& name, double) {
        stream::PassOptions pass;
        pass.name = name;
        pass.lanes = threads;
        pass.cancel = cancel;
        pass.progress = [&result, fresh = true](double now) mutable {
            if (std::exchange(fresh, false)) result.progress = 0;
            EXPECT_GE(now, result.progress);
            result.progress = now;
        };
        return pass;
    };
    const auto backend = eadp::make_cpu_backend();
    result.plan = eadp::plan_profile(source, options, *backend, run);
    eadp::make_profile(
        source, options, *backend, [&](const eadp::ProfileFacts&) -> stream::CubeSink& { return sink; }, run);
    return result;
}

TEST(EadpCpu, BandsThatAreWrittenAsTheyAreMadeAreTheSame) {
    auto planes = component_planes(150, 90, 3, 5);
    make_invalid(planes, 20, 30, 1);
    std::vector<eadp::Options> all(4, options_with({5, 40, 90}));
    all[1].evolution = eadp::Evolution::incremental;
    all[2].precision = eadp::Precision::double_precision;
    all[3].scheme = eadp::Scheme::exact;
    for (const auto& options : all) {
        const auto expected = profile_of(planes, options);
        const stream::CubeShape shape{150, 90, eadp::profile_bands(options, 3)};
        for (const int threads : {2, 3}) {
            BandSink sink(shape, true);
            const auto written = write_bands(planes, options, sink, uint64_t{1} << 30, threads);
            EXPECT_TRUE(identical(sink.behind.cube, expected.cube)) << threads << " threads";
            EXPECT_EQ(written.plan.way, eadp::Way::written);
            EXPECT_EQ(sink.tiles, 0);
            EXPECT_GE(sink.pieces, shape.bands);
            EXPECT_EQ(written.progress, 1);
            ASSERT_EQ(written.passes.size(), 3u);
            EXPECT_EQ(written.passes.back().name, "diffusion");
            EXPECT_EQ(written.passes.back().bytes_written, shape.float_bytes());
            EXPECT_EQ(written.passes.back().buffer_bytes, written.plan.bytes);
        }
    }
}

TEST(EadpCpu, WritingBandsTakesLessMemoryThanKeepingThem) {
    const auto planes = component_planes(200, 150, 6, 5);
    const MemorySource source(planes);
    const auto options = options_with(default_times());
    eadp::ProfileRun run;
    stream::PassOptions pass;
    pass.lanes = 2;
    run.pass = [&pass](const std::string&, double) { return pass; };
    const auto backend = eadp::make_cpu_backend();
    const auto kept = eadp::plan_profile(source, options, *backend, run);
    run.sink_takes_bands = true;
    const auto written = eadp::plan_profile(source, options, *backend, run);
    EXPECT_EQ(kept.way, eadp::Way::kept);
    EXPECT_EQ(written.way, eadp::Way::written);
    // All 48 copies, compared with two components with eight copies each.
    EXPECT_EQ(kept.bytes - written.bytes, uint64_t{48 - 18} * 200 * 150 * 4);
    run.memory = written.bytes;
    EXPECT_EQ(eadp::plan_profile(source, options, *backend, run).way, eadp::Way::written);
    run.memory = written.bytes - 1;
    EXPECT_EQ(eadp::plan_profile(source, options, *backend, run).way, eadp::Way::tiles);
    run.memory = uint64_t{1} << 30;
    pass.lanes = 1;
    EXPECT_NE(eadp::plan_profile(source, options, *backend, run).way, eadp::Way::written);
    pass.lanes = 2;
    pass.tile_samples = pass.tile_lines = 64;
    EXPECT_NE(eadp::plan_profile(source, options, *backend, run).way, eadp::Way::written);
}

TEST(EadpCpu, ASinkThatTakesNoBandsAfterAllGetsTiles) {
    const auto planes = component_planes(150, 90, 3, 5);
    const auto options = options_with({5, 40});
    const auto expected = profile_of(planes, options);
    const stream::CubeShape shape{150, 90, eadp::profile_bands(options, 3)};
    for (const uint64_t memory : {uint64_t{1} << 30, uint64_t{3} << 20}) {
        BandSink sink(shape, false);
        const auto written = write_bands(planes, options, sink, memory, 2);
        EXPECT_TRUE(identical(sink.behind.cube, expected.cube));
        EXPECT_EQ(sink.pieces, 0);
        EXPECT_GT(sink.tiles, 0);
    }
}

TEST(EadpCpu, AnErrorOfABandEndsTheDiffusion) {
    const auto planes = component_planes(150, 90, 3, 5);
    const auto options = options_with({5, 40});
    BandSink sink({150, 90, eadp::profile_bands(options, 3)}, true);
    sink.on_write = [](int band) {
        if (band == 4) throw Error("no room");
    };
    try {
        write_bands(planes, options, sink, uint64_t{1} << 30, 2);
        FAIL() << "nothing was thrown";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "no room, band 5");
    }
    CancelFlag cancel;
    sink.on_write = [&](int band) {
        if (band == 4) cancel.request();
    };
    EXPECT_THROW(write_bands(planes, options, sink, uint64_t{1} << 30, 2, &cancel), Cancelled);
}

/// A CPU backend that claims to keep whole scenes, as a backend with its own memory does.
class KeepingBackend final : public eadp::Backend {
  public:
    std::unique_ptr<eadp::RangeScan> make_range_scan(const eadp::Options& o, int n) override {
        return m_cpu->make_range_scan(o, n);
    }
    std::unique_ptr<eadp::HistogramScan>
    make_histogram_scan(const eadp::Options& o, const std::vector<eadp::Range>& ranges) override {
        return m_cpu->make_histogram_scan(o, ranges);
    }
    std::unique_ptr<stream::Operation> make_diffusion(const eadp::Diffusion& diffusion,
                                                      eadp::Way way) override {
        const bool has = way == eadp::Way::kept || way == eadp::Way::one_tile || way == eadp::Way::tiles;
        return has ? m_cpu->make_diffusion(diffusion, way) : nullptr;
    }
    std::unique_ptr<stream::Operation> make_kept_output(const eadp::Options& o) override {
        return m_cpu->make_kept_output(o);
    }
    uint64_t kept_bytes(const stream::CubeShape& copies) const override { return m_cpu->kept_bytes(copies); }
    std::string describe() const override { return "keeps whole scenes"; }
    bool wants_whole_scene() const override { return true; }
    void keep_planes(bool whole) override { kept = whole; }
    bool kept = false;

  private:
    std::unique_ptr<eadp::Backend> m_cpu = eadp::make_cpu_backend();
};

TEST(Eadp, EveryPassOverKeptPlanesIsOneTile) {
    const Cube planes = random_scene(600, 500, 2, 3);
    const MemorySource source(planes);
    eadp::Options options;
    options.times = {2};
    for (auto evolution : {eadp::Evolution::independent, eadp::Evolution::cascade}) {
        options.evolution = evolution;
        MemorySink sink(600, 500, eadp::profile_bands(options, 2));
        KeepingBackend backend;
        eadp::ProfileRun run;
        std::vector<std::string> gradients;
        run.pass = [](const std::string& name, double) {
            stream::PassOptions pass;
            pass.name = name;
            pass.lanes = 3;
            return pass;
        };
        run.finished = [&](const stream::PassReport& report) {
            if (report.name != "components" && report.name != "profile") {
                EXPECT_EQ(report.tiles, 1) << report.name;
                gradients.push_back(report.name);
            }
        };
        eadp::make_profile(
            source, options, backend, [&](const eadp::ProfileFacts&) -> stream::CubeSink& { return sink; },
            run);
        EXPECT_TRUE(backend.kept);
        EXPECT_EQ(gradients.size(), 3u); // range, histogram, diffusion
    }
}

/// A cube that all ranks write to.
class JointSink final : public stream::SharedSink, public stream::BandTaker {
  public:
    JointSink(MemorySink& behind, bool takes) : m_behind(behind), m_takes(takes) {}
    stream::CubeShape shape() const override { return m_behind.shape(); }
    bool concurrent() const override { return true; }
    void write(const Rect& core, const CubeView<float>& src) override {
        ++tiles;
        m_behind.write(core, src);
    }
    bool takes_bands() const override { return m_takes; }
    void write_band(int band, const Rect& core, const CubeView<float>& src) override {
        ++pieces;
        for (int64_t y = 0; y < core.h; ++y)
            std::copy_n(src.row(0, y), core.w, &m_behind.cube.at(band, core.y + y, core.x));
    }
    std::atomic<int> tiles{0}, pieces{0};

  private:
    MemorySink& m_behind;
    const bool m_takes;
};

TEST(Eadp, StripsOfRanksThatSwapTheirBordersAreTheWhole) {
    auto planes = component_planes(70, 121, 2);
    for (int64_t y = 38; y < 44; ++y) // a hole at a border of strips, and one across it
        for (int64_t x = 30; x < 41; ++x)
            planes.at(0, y, x) = planes.at(1, y, x) = std::numeric_limits<float>::quiet_NaN();
    const MemorySource source(planes);
    std::vector<eadp::Options> all(5, options_with({5, 40, 90}));
    all[1].evolution = eadp::Evolution::incremental;
    all[2].evolution = eadp::Evolution::cascade;
    all[3].precision = eadp::Precision::double_precision;
    all[4].scheme = eadp::Scheme::exact;
    for (const auto& options : all) {
        const auto expected = profile_of(planes, options);
        for (const int size : {2, 3, 5, 7, 9})
            // The sink never takes bands, takes them as planned, or refuses in the end
            for (const int taking : {0, 1, 2}) {
                MemorySink whole(70, 121, eadp::profile_bands(options, 2));
                on_ranks(size, [&](parallel::Ranks& ranks, CancelFlag&) {
                    const parallel::ThreadJob job(ranks);
                    eadp::ProfileRun run;
                    run.folder = testing::TempDir();
                    run.sink_takes_bands = taking > 0;
                    std::vector<stream::PassReport> passes;
                    run.finished = [&](const stream::PassReport& report) { passes.push_back(report); };
                    run.pass = [size](const std::string& name, double) {
                        stream::PassOptions pass;
                        pass.name = name;
                        pass.lanes = 1 + size % 2;
                        return pass;
                    };
                    const auto backend = eadp::make_cpu_backend();
                    // The last strip has 60, 39, 21, 13 or 9 lines; fewer than 16 are too few.
                    const auto plan = eadp::plan_profile(source, options, *backend, run);
                    const bool bands =
                        taking > 0 && size < 7 && options.evolution != eadp::Evolution::cascade;
                    EXPECT_EQ(plan.way, size >= 7 ? eadp::Way::strips
                                        : bands   ? eadp::Way::written_strips
                                                  : eadp::Way::joined_strips);
                    JointSink sink(whole, taking == 1);
                    eadp::make_profile(
                        source, options, *backend,
                        [&](const eadp::ProfileFacts&) -> stream::CubeSink& { return sink; }, run);
                    EXPECT_EQ(sink.pieces > 0, bands && taking == 1);
                    if (bands && taking == 1) {
                        EXPECT_EQ(sink.tiles, 0);
                        EXPECT_EQ(passes.back().bytes_written, whole.shape().float_bytes());
                        EXPECT_EQ(passes.back().ranks.size(), static_cast<size_t>(size));
                    }
                });
                EXPECT_TRUE(identical(whole.cube, expected.cube)) << size << " ranks";
            }
    }
}

} // namespace
} // namespace hsi::test
