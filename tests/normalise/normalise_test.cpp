// SPDX-License-Identifier: MIT
// Kernels against published values, fits against a naive QR, correction against closed forms, tiles and
// threads, and models as documents.
#include "core/error.h"
#include "normalise/normalise.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

namespace hsi {
namespace {

using namespace normalise;
using test::Cube;
using test::MemorySink;
using test::MemorySource;

constexpr double degree = 3.14159265358979323846 / 180;

struct KernelCase {
    Volume volume;
    Geometric geometric;
    double b_r, h_b, sun, view, azimuth, want_volume, want_geometric;
};

TEST(Kernels, AreThoseOfTheDefinition) {
    const KernelCase cases[] = {
        {Volume::ross_thick, Geometric::li_dense_r, 2.5, 2, 45, 30, 0, 0.182869, 0.654567},
        {Volume::ross_thin, Geometric::li_sparse_r, 1, 2, 45, 30, 0, 0.916600, -0.207545},
        {Volume::ross_thick, Geometric::li_sparse_r, 1, 2, 0, 0, 0, 0, 0}, // sun and view are at nadir
        {Volume::ross_thin, Geometric::li_sparse, 1, 2, 0, 0, 0, 0, 0},
    };
    for (const auto& c : cases) {
        Method m;
        m.volume = c.volume;
        m.geometric = c.geometric;
        m.b_r = c.b_r;
        m.h_b = c.h_b;
        const auto k = kernels(m, c.sun * degree, c.view * degree, c.azimuth * degree);
        EXPECT_NEAR(k[0], c.want_volume, 1e-6);
        EXPECT_NEAR(k[1], c.want_geometric, 1e-6);
    }
}

TEST(Bins, FollowTheCounts) {
    Method m;
    m.ndvi_min = 0;
    m.ndvi_max = 50;
    Binning binning;
    binning.bins = 4;
    std::vector<int64_t> count(50, 0);
    count[4] = 10;
    count[9] = 10;
    count[10] = 10;
    count[11] = 10;
    // Edges are at a quarter, a half and three quarters of 40. 11 to 50 is wider than 20 cells, so it becomes
    // two parts.
    EXPECT_EQ(bin_edges(m, binning, count), (std::vector<int>{0, 5, 10, 11, 30, 50}));
    binning.edges = {10, 20, 45};
    EXPECT_EQ(bin_edges(m, binning, count), binning.edges);
    m.brdf = Brdf::universal;
    EXPECT_EQ(bin_edges(m, binning, count), (std::vector<int>{0, 50}));
    m.brdf = Brdf::flex;
    binning.edges.clear();
    EXPECT_EQ(bin_edges(m, binning, std::vector<int64_t>(50, 0)), (std::vector<int>{0, 16, 33, 50}));
}

TEST(Terrain, HasNoNegativeCoefficient) {
    struct Case {
        double m, q, want_m, want_q;
    };
    // c covers 0.2 .. 0.8; r = m c + q.
    double c1 = 0, cc = 0, n = 0;
    for (int i = 0; i <= 600; ++i) {
        const double c = 0.2 + i / 1000.0;
        c1 += c;
        cc += c * c;
        ++n;
    }
    const double with_origin = (0.5 * cc - 0.05 * c1) / cc;
    for (const Case& one : {Case{0.5, 0.1, 0.5, 0.1}, Case{0.5, -0.05, with_origin, 0},
                            Case{-0.2, 0.4, 0, 0.3}, Case{-0.2, 0, 0, 0}}) {
        TerrainSums sums;
        sums.pixels = static_cast<int64_t>(n);
        sums.c = c1;
        sums.cc = cc;
        sums.r = {one.m * c1 + one.q * n};
        sums.rc = {one.m * cc + one.q * c1};
        const auto fit = fit_terrain(sums);
        ASSERT_EQ(fit.slope.size(), 1U);
        EXPECT_NEAR(fit.slope[0], one.want_m, 1e-10);
        EXPECT_NEAR(fit.intercept[0], one.want_q, 1e-10);
    }
    TerrainSums few;
    few.pixels = 99;
    EXPECT_TRUE(fit_terrain(few).slope.empty());
    TerrainSums flat;
    flat.pixels = 1000;
    flat.c = 800;
    flat.cc = 640;
    EXPECT_TRUE(fit_terrain(flat).slope.empty());
}

/// A scene of three bands (660, 850, 2200 nm), followed by its six angles.
struct Made {
    Cube cube{200, 70, 9};
    SceneTask task;

    explicit Made(uint32_t seed = 1) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> u(0, 1);
        task.shape = {cube.shape.samples, cube.shape.lines, 3};
        task.planes = 6;
        for (int k = 0; k < view::angle_count; ++k)
            task.angles[static_cast<size_t>(k)].band = k;
        task.red = 0;
        task.near_infrared = 1;
        task.below_720 = {1, 0, 0};
        for (int64_t y = 0; y < task.shape.lines; ++y)
            for (int64_t x = 0; x < task.shape.samples; ++x) {
                const double green = u(random);
                const double angles[] = {35 + 10 * u(random), 140 + 20 * u(random), 25 * u(random),
                                         360 * u(random),     40 * u(random),       360 * u(random)};
                for (int k = 0; k < view::angle_count; ++k)
                    cube.at(3 + k, y, x) = static_cast<float>(angles[k]);
                const double r[] = {0.2 - 0.15 * green, 0.25 + 0.2 * green, 0.3 - 0.1 * green};
                for (int b = 0; b < 3; ++b)
                    cube.at(b, y, x) = static_cast<float>(r[b] * (0.8 + 0.4 * u(random)));
            }
        cube.at(1, 5, 7) = std::nanf("");
        cube.at(3 + view::aspect, 9, 11) = -9999;
        for (int b = 0; b < 3; ++b)
            cube.at(b, 20, 30) = 0;
    }
};

stream::PassOptions pass_of(int lanes, int64_t samples, int64_t lines) {
    stream::PassOptions pass;
    pass.name = "test";
    pass.lanes = lanes;
    pass.tile_samples = samples;
    pass.tile_lines = lines;
    return pass;
}

/// Computes the least squares fit of y to the columns by Gram-Schmidt, in long double.
std::vector<double> by_qr(std::vector<std::vector<double>> columns, const std::vector<double>& y) {
    const size_t n = columns.size();
    std::vector<std::vector<long double>> q;
    std::vector<std::vector<long double>> r(n, std::vector<long double>(n));
    for (size_t j = 0; j < n; ++j) {
        std::vector<long double> v(columns[j].begin(), columns[j].end());
        for (size_t k = 0; k < j; ++k) {
            for (size_t i = 0; i < v.size(); ++i)
                r[k][j] += q[k][i] * v[i];
            for (size_t i = 0; i < v.size(); ++i)
                v[i] -= r[k][j] * q[k][i];
        }
        for (const long double x : v)
            r[j][j] += x * x;
        r[j][j] = std::sqrt(r[j][j]);
        for (long double& x : v)
            x /= r[j][j];
        q.push_back(std::move(v));
    }
    std::vector<double> solution(n);
    std::vector<long double> t(n);
    for (size_t j = n; j-- > 0;) {
        for (size_t i = 0; i < y.size(); ++i)
            t[j] += q[j][i] * static_cast<long double>(y[i]);
        for (size_t k = j + 1; k < n; ++k)
            t[j] -= r[j][k] * static_cast<long double>(solution[k]);
        solution[j] = static_cast<double>(t[j] / r[j][j]);
    }
    return solution;
}

double cos_i_of(const Cube& cube, int64_t y, int64_t x) {
    double v[view::angle_count];
    for (int k = 0; k < view::angle_count; ++k)
        v[k] = static_cast<double>(cube.at(3 + k, y, x)) * degree;
    return std::cos(v[0]) * std::cos(v[4]) + std::sin(v[0]) * std::sin(v[4]) * std::cos(v[1] - v[5]);
}

TEST(Fits, AgreeWithNaiveOnes) {
    const Made made;
    const MemorySource source(made.cube);
    Method method;
    method.topography = Topography::c;
    const auto scan = make_terrain_scan(made.task, method);
    stream::run_pass(source, *scan, {}, pass_of(2, 0, 0));
    const auto terrain = fit_terrain(scan->terrain());
    std::vector<double> ci, one, y[3];
    std::vector<std::array<double, 3>> bins; // kernels, NDVI
    std::vector<double> flat[3];
    int64_t valid = 0;
    for (int64_t line = 0; line < 70; ++line)
        for (int64_t x = 0; x < 200; ++x) {
            const bool bad = (line == 5 && x == 7) || (line == 20 && x == 30), lost = line == 9 && x == 11;
            valid += !bad;
            const double n = static_cast<double>(made.cube.at(1, line, x)),
                         s = static_cast<double>(made.cube.at(0, line, x)),
                         k = std::ceil(100 * (n - s) / (n + s));
            const double c = cos_i_of(made.cube, line, x);
            if (bad || lost || !(k > 5 && k <= 100) || c < 0.12 || made.cube.at(7, line, x) < 5) continue;
            ci.push_back(static_cast<double>(static_cast<float>(c)));
            one.push_back(1);
            for (int b = 0; b < 3; ++b)
                y[b].push_back(static_cast<double>(made.cube.at(b, line, x)));
        }
    EXPECT_EQ(scan->counts().valid, valid);
    EXPECT_EQ(scan->counts().invalid, 2);
    EXPECT_EQ(scan->counts().without_angles, 1);
    ASSERT_EQ(terrain.pixels, static_cast<int64_t>(ci.size()));
    for (size_t b = 0; b < 3; ++b) {
        const auto want = by_qr({ci, one}, y[b]);
        if (want[0] <= 0 || want[1] < 0) continue; // another test checks the limits
        EXPECT_NEAR(terrain.slope[b], want[0], 1e-6 * std::fabs(want[0]));
        EXPECT_NEAR(terrain.intercept[b], want[1], 1e-6 * std::fabs(want[1]));
    }

    method.topography = Topography::none;
    const auto cells = make_brdf_scan(made.task, method, {});
    stream::run_pass(source, *cells, {}, pass_of(2, 0, 0));
    const auto sums = cells->cells();
    Binning binning;
    binning.bins = 3;
    for (const auto& bin : fit_bins(method, binning, 3, {&sums})) {
        std::vector<double> kv, kg, ones, r[3];
        for (int64_t line = 0; line < 70; ++line)
            for (int64_t x = 0; x < 200; ++x) {
                const double n = static_cast<double>(made.cube.at(1, line, x)),
                             s = static_cast<double>(made.cube.at(0, line, x)),
                             k = std::ceil(100 * (n - s) / (n + s));
                if (!(k > bin.from && k <= bin.to)) continue;
                const auto at = [&](view::Angle a) {
                    return static_cast<double>(made.cube.at(3 + a, line, x)) * degree;
                };
                const auto both = kernels(method, at(view::solar_zenith), at(view::sensor_zenith),
                                          at(view::sensor_azimuth) - at(view::solar_azimuth));
                kv.push_back(static_cast<double>(static_cast<float>(both[0])));
                kg.push_back(static_cast<double>(static_cast<float>(both[1])));
                ones.push_back(1);
                for (int b = 0; b < 3; ++b)
                    r[b].push_back(static_cast<double>(made.cube.at(b, line, x)));
            }
        ASSERT_EQ(bin.pixels, static_cast<int64_t>(kv.size()));
        if (!bin.used) continue;
        for (size_t b = 0; b < 3; ++b) {
            const auto want = by_qr({kv, kg, ones}, r[b]);
            EXPECT_NEAR(bin.volume[b], want[0], 1e-8);
            EXPECT_NEAR(bin.geometric[b], want[1], 1e-8);
            EXPECT_NEAR(bin.isotropic[b], want[2], 1e-8);
            double squares = 0;
            for (size_t i = 0; i < kv.size(); ++i) {
                const double e = r[b][i] - want[0] * kv[i] - want[1] * kg[i] - want[2];
                squares += e * e;
            }
            EXPECT_NEAR(bin.rmse[b], std::sqrt(squares / static_cast<double>(kv.size())), 1e-8);
        }
    }
}

TEST(Fits, HaveTheSameBitsForAllTiles) {
    const Made made;
    const MemorySource source(made.cube);
    const Method method;
    std::string first;
    Cube corrected;
    for (const auto& [lanes, samples, lines] :
         {std::array<int, 3>{1, 0, 0}, std::array<int, 3>{2, 128, 16}, std::array<int, 3>{3, 256, 32}}) {
        const auto terrain_scan = make_terrain_scan(made.task, method);
        stream::run_pass(source, *terrain_scan, {}, pass_of(lanes, samples, lines));
        const auto terrain = fit_terrain(terrain_scan->terrain());
        const auto scan = make_brdf_scan(made.task, method, terrain);
        stream::run_pass(source, *scan, {}, pass_of(lanes, samples, lines));
        Model model;
        model.bands = {1, 2, 3};
        model.method = method;
        model.add(SceneRecord{"a.img", scan->cells().pixels(), terrain, scan->cells()});
        model.fit();
        const auto text = to_json(model);
        MemorySink sink(200, 70, 3);
        const auto correction = make_correction(made.task, method, terrain, model.bins, model.solar_zenith);
        stream::run_pass(source, *correction, {&sink},
                         pass_of(lanes, samples == 0 ? 0 : 37, samples == 0 ? 0 : 5));
        if (first.empty()) {
            first = text;
            corrected = sink.cube;
        }
        EXPECT_EQ(text, first);
        EXPECT_EQ(std::memcmp(sink.cube.values.data(), corrected.values.data(), 4 * corrected.values.size()),
                  0);
        EXPECT_TRUE(std::isnan(sink.cube.at(0, 9, 11))); // the angle is unknown
        const auto back = from_json(text, "a.json");
        EXPECT_EQ(to_json(back), text);
    }
}

TEST(Models, KnowScenesBySizeAndPlace) {
    using Place = std::optional<std::array<double, 6>>;
    const Place place{{500, 20, 0, 900, 0, -20}};
    struct Case {
        SceneGrid other;
        bool same;
    };
    const SceneGrid grid{100, 80, place};
    for (const Case& one :
         {Case{grid, true}, Case{{}, true}, Case{{100, 81, place}, false}, Case{{100, 80, {}}, true},
          Case{{100, 80, Place{{509, 20, 0, 900, 0, -20}}}, true},
          Case{{100, 80, Place{{500, 20, 0, 911, 0, -20}}}, false},
          // The corner at 100 samples is 0.4 or 0.6 pixels away.
          Case{{100, 80, Place{{500, 20.08, 0, 900, 0, -20}}}, true},
          Case{{100, 80, Place{{500, 20.12, 0, 900, 0, -20}}}, false}}) {
        EXPECT_EQ(grid.same(one.other), one.same);
        EXPECT_EQ(one.other.same(grid), one.same);
    }
    // A rotated grid, shifted by 3 samples and 4 lines.
    const std::array<double, 6> turned{0, 6, 8, 0, 8, -6}, moved{50, 6, 8, 0, 8, -6};
    EXPECT_NEAR(pixels_apart(turned, moved, 10, 10), 5, 1e-12);
}

/// Models of one cell whose sums follow from pixels with two kernels and reflectances.
Model model_of_one_cell() {
    Model model;
    model.bands = {1};
    model.method.brdf = Brdf::universal;
    model.binning.min_pixels = 10;
    SceneRecord record;
    record.name = "a.img";
    record.sums.count.resize(95);
    record.sums.sums.resize(95);
    record.sums.count[3] = 40;
    auto& sums = record.sums.sums[3];
    sums.assign(CellSums::width(1), 0);
    for (int k = 0; k < 40; ++k) {
        const double v = 0.01 * (k % 7), g = 0.02 * (k % 5), r = 0.2 + v - g;
        const double terms[] = {v, g, v * v, v * g, g * g, 30, r, r * v, r * g, r * r};
        for (size_t i = 0; i < sums.size(); ++i)
            sums[i] += terms[i];
    }
    model.add(record);
    return model;
}

// Anyone may write the sums of a model. A model that is fitted from them must be readable.
TEST(Models, RefuseSumsThatNoPixelsHave) {
    const Model good = model_of_one_cell();
    Model model = good;
    model.fit();
    EXPECT_DOUBLE_EQ(model.solar_zenith, 30);
    EXPECT_EQ(to_json(from_json(to_json(model), "a")), to_json(model));
    struct Case {
        size_t sum;
        double value;
    };
    for (const Case& one :
         {Case{5, -40}, Case{5, 91 * 40}, Case{6, 1e308}, Case{8, -1e308}, Case{9, 1e308}}) {
        model = good;
        model.scenes[0].sums.sums[3][one.sum] = one.value;
        try {
            model.fit();
        } catch (const Error&) {
            continue;
        }
        EXPECT_NO_THROW(from_json(to_json(model), "a")) << "sum " << one.sum << " = " << one.value;
    }
}

TEST(Models, RefuseCountsThatAreTooLargeTogether) {
    constexpr int64_t most = int64_t{1} << 48;
    Model model = model_of_one_cell();
    model.method.brdf = Brdf::flex;
    model.binning.bins = 200; // of the limit of a file
    model.scenes[0].sums.count[3] = most;
    model.fit();
    Model second = model_of_one_cell();
    second.scenes[0].name = "b.img";
    model.add(second.scenes[0]);
    EXPECT_THROW(model.fit(), Error);
    const auto text = to_json(model);
    EXPECT_THROW(from_json(text, "a"), Error);
}

TEST(Models, RefuseWhatDoesNotFit) {
    Model a;
    a.bands = {1, 2, 3};
    a.method.brdf = Brdf::none;
    SceneRecord record;
    record.name = "a.img";
    record.sums.count.resize(95);
    record.sums.sums.resize(95);
    a.add(record);
    EXPECT_THROW(a.add(record), Error);
    Model b = a;
    b.scenes[0].name = "b.img";
    Model other = b;
    other.method.min_slope = 7;
    EXPECT_THROW(a.add(other, "other.json"), Error);
    EXPECT_THROW(a.remove(b, "b.json"), Error);
    a.add(b, "b.json");
    EXPECT_EQ(a.scenes.size(), 2U);
    a.remove(b, "b.json");
    EXPECT_EQ(a.scenes.size(), 1U);
    a.fit();
    const auto text = to_json(a);
    EXPECT_EQ(to_json(from_json(text, "a")), text);
    for (const char* const part : {"scs+c", "\"minimum_slope\": 5", "\"pixels\": 0"}) {
        auto damaged = text;
        damaged.replace(damaged.find(part), std::strlen(part), std::string(std::strlen(part), '7'));
        EXPECT_THROW(from_json(damaged, "a"), Error);
    }
}

} // namespace
} // namespace hsi
