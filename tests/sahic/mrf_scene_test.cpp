// SPDX-License-Identifier: MIT
// The Markov random field over a scene: whole or in tiles, with planes in memory or in a file, for both
// borders.
#include "sahic/mrf_scene.h"

#include "core/error.h"
#include "core/system.h"
#include "parallel/thread_job.h"
#include "sahic/lorsal.h"
#include "sahic/sahic_scene.h"
#include "support/memory_cube.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace hsi::sahic {
namespace {

/// The probabilities, weights and labels of a scene, as inputs of the Markov random field.
struct Case {
    explicit Case(const Scene& s) : scene(s) {
        for (int c = 0; c < s.classes; ++c) {
            LabelClass one;
            one.value = 10 * (c + 1); // class values differ from indices
            one.name = "class " + std::to_string(c);
            classes.push_back(one);
        }
        for (int64_t i = 0; i < s.lines * s.samples; ++i)
            if (const int fixed_class = s.fixed[static_cast<size_t>(i)]; fixed_class > 0) {
                fixed.index.push_back(i);
                fixed.value.push_back(static_cast<uint16_t>(10 * fixed_class));
            }
        request.shape = {s.samples, s.lines, s.classes};
        request.classes = s.classes;
        request.mrf.iterations = 40;
        request.memory = uint64_t{1} << 30;
        request.host_bytes = [](const MrfLimits& limits) { return mrf_bytes(limits); };
        request.device_bytes = [](const MrfLimits&) { return uint64_t{0}; };
    }
    std::unique_ptr<stream::PlaneStore> planes(bool in_memory) const {
        const stream::CubeShape shape{scene.samples, scene.lines, scene.classes + 1};
        auto store = in_memory ? std::make_unique<stream::PlaneStore>(shape)
                               : std::make_unique<stream::PlaneStore>(shape, testing::TempDir());
        std::vector<int> all(static_cast<size_t>(scene.classes));
        std::iota(all.begin(), all.end(), 0);
        const Rect whole{0, 0, scene.samples, scene.lines};
        auto p = scene.p, weight = scene.weight;
        store->sink(all)->write(whole,
                                CubeView<float>::packed(p.data(), scene.classes, scene.lines, scene.samples));
        store->sink({scene.classes})
            ->write(whole, CubeView<float>::packed(weight.data(), 1, scene.lines, scene.samples));
        return store;
    }

    const Scene& scene;
    std::vector<LabelClass> classes;
    FixedPixels fixed;
    MrfRequest request;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Maps {
    test::Cube map, probabilities, confidence;
    MrfResult result;
    MrfPlan plan;
    bool joint = false;
};

Maps smooth(const Case& c, bool in_memory, int threads = 2) {
    Maps maps;
    maps.plan = plan_mrf(c.request);
    const auto backend = make_cpu_backend(threads);
    const auto solver = make_mrf_setup(*backend, c.request, maps.plan);
    maps.joint = solver.joint;
    const auto& shape = c.request.shape;
    test::MemorySink map(shape.samples, shape.lines, 1),
        probabilities(shape.samples, shape.lines, c.scene.classes), confidence(shape.samples, shape.lines, 1);
    stream::PassOptions pass;
    pass.name = "mrf";
    pass.lanes = threads;
    maps.result = smooth_scene(c.request, maps.plan, solver, *c.planes(in_memory), c.fixed, c.classes,
                               {{&map, &probabilities, &confidence}, true, true}, pass);
    maps.map = map.cube;
    maps.probabilities = probabilities.cube;
    maps.confidence = confidence.cube;
    return maps;
}

/// Ranks with even numbers are on the root's host.
TEST(MrfScene, RanksOfOneHostSolveItTogetherToTheBitsOfOneProcess) {
    for (const bool periodic : {false, true}) {
        const Scene scene(4, 83, 45, 3);
        Case c(scene);
        c.request.periodic = periodic;
        const Maps one = smooth(c, true);
        ASSERT_TRUE(one.plan.whole);
        for (const int size : {2, 3, 5})
            test::on_ranks(size, [&](parallel::Ranks& ranks, CancelFlag&) {
                const parallel::ThreadJob job(ranks);
                const Maps mine = smooth(c, true, ranks.rank() == 2 ? 1 : 2);
                EXPECT_EQ(mine.joint, size > 2 && ranks.rank() % 2 == 0 && !system::portable());
                EXPECT_EQ(mine.result.residuals.objective, one.result.residuals.objective);
                EXPECT_EQ(mine.result.residuals.v5, one.result.residuals.v5);
                EXPECT_EQ(mine.result.residuals.change, one.result.residuals.change);
                EXPECT_EQ(mine.result.pixels_by_class, one.result.pixels_by_class);
                EXPECT_EQ(mine.result.report.tiles, 1);
                if (!ranks.root()) return;
                EXPECT_TRUE(same_bits(mine.map.values, one.map.values));
                EXPECT_TRUE(same_bits(mine.probabilities.values, one.probabilities.values));
                EXPECT_TRUE(same_bits(mine.confidence.values, one.confidence.values));
            });
    }
}

TEST(MrfScene, IsWrittenByAnyNumberOfThreads) {
    const Scene scene(4, 301, 45, 3); // more lines than are written at once
    const Case c(scene);
    const Maps one = smooth(c, true, 1);
    EXPECT_TRUE(
        std::any_of(one.map.values.begin(), one.map.values.end(), [](float v) { return std::isnan(v); }));
    for (const int threads : {2, 5}) {
        const Maps more = smooth(c, true, threads);
        EXPECT_TRUE(same_bits(more.map.values, one.map.values));
        EXPECT_TRUE(same_bits(more.probabilities.values, one.probabilities.values));
        EXPECT_TRUE(same_bits(more.confidence.values, one.confidence.values));
        EXPECT_EQ(more.result.pixels_by_class, one.result.pixels_by_class);
    }
    // Most callers request only the map.
    const auto backend = make_cpu_backend(3);
    const auto solver = make_mrf_setup(*backend, c.request, one.plan);
    test::MemorySink map(45, 301, 1);
    stream::PassOptions pass;
    pass.lanes = 3;
    const auto result =
        smooth_scene(c.request, one.plan, solver, *c.planes(true), c.fixed, c.classes, {{&map}}, pass);
    EXPECT_TRUE(same_bits(map.cube.values, one.map.values));
    EXPECT_EQ(result.pixels_by_class, one.result.pixels_by_class);
    // With memory that was allocated before.
    auto prepared = make_mrf_setup(*backend, c.request, one.plan);
    prepared.q = HostBuffer<float>(4 * 301 * 45);
    std::fill_n(prepared.q.data(), prepared.q.size(), 1e9f);
    test::MemorySink again(45, 301, 1);
    smooth_scene(c.request, one.plan, prepared, *c.planes(true), c.fixed, c.classes, {{&again}}, pass);
    EXPECT_TRUE(same_bits(again.cube.values, one.map.values));
    EXPECT_NE(prepared.q[0], 1e9f);
}

TEST(MrfScene, WritesWhatTheSolverFinds) {
    const Scene scene(4, 60, 70, 3);
    const Case c(scene);
    const Maps maps = smooth(c, true);
    EXPECT_TRUE(maps.plan.whole);
    EXPECT_EQ(maps.result.report.name, "mrf");
    auto q = scene.solve(c.request.mrf, false);
    const auto pixels = static_cast<size_t>(scene.lines * scene.samples);
    std::vector<int64_t> counted(4, 0);
    for (size_t i = 0; i < pixels; ++i) {
        if (std::isnan(scene.p[i])) {
            EXPECT_TRUE(std::isnan(maps.map.values[i]) && std::isnan(maps.confidence.values[i]));
            continue;
        }
        size_t best = 0;
        for (size_t k = 1; k < 4; ++k)
            if (q[k * pixels + i] > q[best * pixels + i]) best = k;
        ++counted[best];
        EXPECT_EQ(maps.map.values[i], static_cast<float>(10 * (best + 1)));
        project_on_simplex(q.data() + i, 4, static_cast<int64_t>(pixels), 1);
        EXPECT_EQ(maps.confidence.values[i], q[best * pixels + i]);
        for (size_t k = 0; k < 4; ++k)
            EXPECT_EQ(maps.probabilities.values[k * pixels + i], q[k * pixels + i]);
        if (scene.fixed[i] > 0) {
            EXPECT_EQ(maps.map.values[i], 10.0f * scene.fixed[i]);
        }
    }
    EXPECT_EQ(maps.result.pixels_by_class, counted);
}

TEST(MrfScene, ThePlacesOfThePlanesDoNotMatter) {
    const Scene scene(3, 40, 50, 8);
    const Case c(scene);
    const Maps memory = smooth(c, true), file = smooth(c, false);
    EXPECT_TRUE(test::identical(memory.map, file.map));
    EXPECT_TRUE(test::identical(memory.probabilities, file.probabilities));
}

TEST(MrfScene, TilesAgreeWithTheWholeOnBothBorders) {
    const Scene scene(3, 150, 170, 5);
    for (const bool periodic : {false, true}) {
        Case c(scene);
        c.request.periodic = periodic;
        const Maps whole = smooth(c, true);
        c.request.tile_samples = 80;
        c.request.tile_lines = 64;
        for (const bool in_memory : {true, false}) {
            const Maps tiled = smooth(c, in_memory);
            EXPECT_FALSE(tiled.plan.whole);
            EXPECT_EQ(tiled.result.report.tiles, 3 * 3);
            EXPECT_GT(tiled.plan.halo, 0);
            double largest = 0;
            for (size_t i = 0; i < whole.probabilities.values.size(); ++i)
                if (!std::isnan(whole.probabilities.values[i]))
                    largest =
                        std::max(largest, std::fabs(static_cast<double>(whole.probabilities.values[i]) -
                                                    static_cast<double>(tiled.probabilities.values[i])));
            EXPECT_LT(largest, 1e-4) << periodic;
        }
    }
}

TEST(MrfScene, IsCutWhereMemoryIsShort) {
    const Scene scene(3, 300, 300, 2);
    Case c(scene);
    const uint64_t whole = plan_mrf(c.request).host_bytes;
    c.request.memory = whole / 2;
    const MrfPlan plan = plan_mrf(c.request);
    EXPECT_FALSE(plan.whole);
    EXPECT_GT(plan.tiles.size(), 1);
    EXPECT_LE(plan.host_bytes, c.request.memory);
    c.request.memory = 1000;
    EXPECT_THROW(plan_mrf(c.request), Error);
    c.request.memory = whole / 2;
    c.request.mrf.mu = 5; // its range exceeds every halo
    c.request.mrf.iterations = 5000;
    try {
        plan_mrf(c.request);
        FAIL() << "a field without end was cut";
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("reaches too far for tiles"), std::string::npos) << e.what();
    }
}

/// Returns the least number of pixels that tiles of one size compute within the budget, including windows. It
/// tries every division.
int64_t fewest_computed(const MrfRequest& r, int64_t halo, uint64_t budget) {
    const int64_t samples = r.shape.samples, lines = r.shape.lines;
    const auto k = static_cast<uint64_t>(r.classes);
    int64_t least = 0;
    for (int64_t columns = 1; columns <= (samples + 15) / 16; ++columns) {
        const int64_t w = (samples + columns - 1) / columns, window_w = std::min(w + 2 * halo, samples);
        for (int64_t rows = 1; rows <= lines; ++rows) {
            const int64_t window_h = std::min((lines + rows - 1) / rows + 2 * halo, lines);
            const auto pixels = static_cast<uint64_t>(window_w * window_h);
            const uint64_t bytes =
                pixels * (4 * (2 * k + 1) + 2) + r.host_bytes({r.classes, window_h, window_w});
            if (bytes > budget) continue;
            const int64_t computed = columns * rows * window_w * window_h;
            if (least == 0 || computed < least) least = computed;
            break;
        }
    }
    return least;
}

TEST(MrfScene, IsCutSoThatTheFewestPixelsAreComputedTwice) {
    const Scene scene(3, 300, 300, 2);
    for (const auto& [samples, lines] :
         {std::pair<int64_t, int64_t>{300, 300}, {1000, 277}, {4001, 140}, {333, 900}})
        for (const int share : {2, 3}) {
            Case c(scene);
            c.request.shape.samples = samples;
            c.request.shape.lines = lines;
            c.request.memory = plan_mrf(c.request).host_bytes / static_cast<uint64_t>(share);
            const MrfPlan plan = plan_mrf(c.request);
            const uint64_t store = static_cast<uint64_t>(samples * lines) * 4 * 4;
            const int64_t w = plan.tiles.max_core_samples(), h = plan.tiles.max_core_lines();
            const int64_t computed =
                plan.tiles.size() * std::min(w + 2 * plan.halo, samples) * std::min(h + 2 * plan.halo, lines);
            EXPECT_EQ(computed, fewest_computed(c.request, plan.halo,
                                                c.request.memory - (plan.store_in_memory ? store : 0)))
                << samples << "x" << lines << ", 1/" << share;
        }
}

TEST(MrfScene, OfAVeryWideSceneIsPlannedWithFewTrials) {
    const Scene scene(3, 300, 300, 2);
    Case c(scene);
    c.request.shape.samples = 1000000000;
    c.request.shape.lines = 10;
    c.request.memory = uint64_t{4} << 30;
    int64_t trials = 0;
    const auto bytes = c.request.host_bytes;
    c.request.host_bytes = [&](const MrfLimits& limits) {
        ++trials;
        return bytes(limits);
    };
    const MrfPlan plan = plan_mrf(c.request);
    EXPECT_GT(plan.tiles.size(), 1);
    EXPECT_LT(trials, 100000);
}

} // namespace
} // namespace hsi::sahic
