// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "sahic/sahic.h"
#include "sahic/sahic_reference.h"
#include "sahic/sahic_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace hsi::sahic {
namespace {

double largest_difference(const std::vector<float>& q, const std::vector<reference::Plane>& truth) {
    double largest = 0;
    for (size_t k = 0; k < truth.size(); ++k)
        for (size_t i = 0; i < truth[k].size(); ++i)
            largest =
                std::max(largest, std::fabs(static_cast<double>(q[k * truth[k].size() + i]) - truth[k][i]));
    return largest;
}

struct Case {
    int classes;
    int64_t lines, samples;
    bool periodic, anisotropic;
};

class AgainstReference : public testing::TestWithParam<Case> {};

// 200 iterations at the default penalty, with holes and training pixels. Differences up to 1e-4 are allowed;
// single precision reaches about 3e-6.
TEST_P(AgainstReference, ProbabilitiesAndResiduals) {
    const Case c = GetParam();
    const Scene scene(c.classes, c.lines, c.samples, 7);
    MrfOptions o;
    o.anisotropic = c.anisotropic;
    MrfResiduals r;
    const auto q = scene.solve(o, c.periodic, 2, &r);
    const auto truth = reference::mrf(scene.problem(c.periodic), o);
    EXPECT_LT(largest_difference(q, truth.q), 1e-5);
    const auto& t = truth.residuals;
    EXPECT_EQ(r.entries, t.entries);
    const auto near = [](double ours, double theirs) {
        return std::fabs(ours - theirs) <= 1e-3 * theirs + 1e-9;
    };
    EXPECT_TRUE(near(r.v1, t.v1)) << r.v1 << " " << t.v1;
    EXPECT_TRUE(near(r.v2, t.v2)) << r.v2 << " " << t.v2;
    EXPECT_TRUE(near(r.v3, t.v3)) << r.v3 << " " << t.v3;
    EXPECT_TRUE(near(r.v4, t.v4)) << r.v4 << " " << t.v4;
    EXPECT_TRUE(near(r.v5, t.v5)) << r.v5 << " " << t.v5;
    EXPECT_TRUE(near(r.change, t.change)) << r.change << " " << t.change;
    EXPECT_TRUE(near(r.objective, t.objective)) << r.objective << " " << t.objective;
}

INSTANTIATE_TEST_SUITE_P(Borders, AgainstReference,
                         testing::Values(Case{5, 40, 37, false, false}, Case{5, 40, 37, true, false},
                                         Case{4, 21, 50, false, true}, Case{4, 21, 50, true, true},
                                         Case{2, 1, 30, false, false}, Case{3, 30, 1, true, false},
                                         Case{3, 2, 2, true, false}, Case{3, 17, 64, false, false}));

TEST(Mrf, ConvergedPenalty) {
    const Scene scene(3, 24, 24, 3);
    MrfOptions o;
    o.mu = 10;
    o.iterations = 300;
    EXPECT_LT(largest_difference(scene.solve(o, false), reference::mrf(scene.problem(), o).q), 1e-5);
}

TEST(Mrf, TheSameForAnyNumberOfThreads) {
    const Scene scene(6, 53, 71, 11);
    const auto one = scene.solve({}, false, 1);
    for (const int threads : {2, 5})
        EXPECT_EQ(one, scene.solve({}, false, threads));
}

TEST(Mrf, TrainingPixelsKeepTheirClassAndTheSimplexHolds) {
    const Scene scene(6, 40, 45, 5);
    auto q = scene.solve({}, false);
    const auto pixels = static_cast<int64_t>(scene.weight.size());
    project_on_simplex(q.data(), scene.classes, pixels, pixels);
    for (int64_t i = 0; i < pixels; ++i) {
        double sum = 0;
        for (int k = 0; k < scene.classes; ++k) {
            const float v = q[static_cast<size_t>(k * pixels + i)];
            EXPECT_GE(v, 0.0f);
            sum += static_cast<double>(v);
            const int fixed = scene.fixed[static_cast<size_t>(i)];
            if (fixed > 0 && !std::isnan(scene.p[static_cast<size_t>(i)])) {
                EXPECT_EQ(v, fixed - 1 == k ? 1.0f : 0.0f);
            }
        }
        EXPECT_NEAR(sum, 1.0, 1e-6);
    }
}

class Halo : public testing::TestWithParam<MrfOptions> {};

// mrf_halo() guarantees this for every penalty and number of iterations for which it returns a halo.
TEST_P(Halo, WindowAgreesWithTheWhole) {
    const MrfOptions o = GetParam();
    const Scene scene(4, 90, 100, 9);
    const auto whole = scene.solve(o, false);
    const auto halo = mrf_halo(o);
    ASSERT_TRUE(halo);
    EXPECT_EQ(*halo, 24);
    const Rect core{38, 30, 20, 25}, window = grow(core, *halo);
    const Scene part = scene.part(window);
    const auto q = part.solve(o, false);
    float largest = 0;
    for (int64_t y = 0; y < core.h; ++y)
        for (int64_t x = 0; x < core.w; ++x)
            for (size_t k = 0; k < 4; ++k)
                largest = std::max(
                    largest,
                    std::fabs(
                        q[k * part.weight.size() + static_cast<size_t>((*halo + y) * window.w + *halo + x)] -
                        whole[k * scene.weight.size() +
                              static_cast<size_t>((core.y + y) * scene.samples + core.x + x)]));
    EXPECT_LT(largest, 1e-4f);
}

INSTANTIATE_TEST_SUITE_P(Options, Halo,
                         testing::Values(MrfOptions{}, MrfOptions{2, 0.02, 200, false},
                                         MrfOptions{2, 0.001, 200, false}, MrfOptions{0.05, 0.05, 200, false},
                                         MrfOptions{50, 0.05, 200, true}, MrfOptions{2, 0.05, 37, true}));

TEST(Mrf, NoHaloForAPenaltyThatReachesFar) {
    MrfOptions o;
    o.mu = 10;
    EXPECT_FALSE(mrf_halo(o));
}

TEST(Mrf, CancelledBetweenIterations) {
    const Scene scene(3, 20, 20, 2);
    CancelFlag cancel;
    cancel.request();
    std::vector<float> q(scene.p.size());
    const auto solver = make_mrf_solver({}, {3, 20, 20}, 1);
    EXPECT_THROW(solver->solve(scene.problem(), q.data(), &cancel), Cancelled);
}

TEST(Simplex, KnownProjections) {
    // Three pixels of three classes: inside the simplex, outside on one side, far outside.
    std::vector<float> q{0.2f, 0.8f, 5.0f, 0.3f, 0.5f, -1.0f, 0.5f, -0.1f, -2.0f};
    project_on_simplex(q.data(), 3, 3, 3);
    EXPECT_FLOAT_EQ(q[0], 0.2f);
    EXPECT_FLOAT_EQ(q[3], 0.3f);
    EXPECT_FLOAT_EQ(q[1], 0.65f);
    EXPECT_FLOAT_EQ(q[4], 0.35f);
    EXPECT_FLOAT_EQ(q[7], 0.0f);
    EXPECT_FLOAT_EQ(q[2], 1.0f);
    EXPECT_FLOAT_EQ(q[5], 0.0f);
}

} // namespace
} // namespace hsi::sahic
