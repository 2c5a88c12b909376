// SPDX-License-Identifier: MIT
// Rules on pixels whose fit, depth, continuum and position are known in closed form. The pass has equal bits
// for every tiling, thread count and number of ranks.
#include "identify/identify.h"

#include "core/error.h"
#include "parallel/thread_job.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace hsi::test {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr int bands = 11;
/// Continuum 1 in the windows [2000, 2010] and [2090, 2100], symmetric about 2050 nm, 0.4 deep.
const std::vector<double> dip{1, 1, .9, .8, .7, .6, .7, .8, .9, 1, 1};
/// Antisymmetric about 2050 nm, so it is orthogonal to a dip. Its squares add up to 4.
const std::vector<double> ripple{0, 0, 1, -1, 0, 0, 0, 1, -1, 0, 0};

std::vector<double> wavelengths() {
    std::vector<double> nm;
    for (int b = 0; b < bands; ++b)
        nm.push_back(2000 + 10 * b);
    return nm;
}
std::vector<double> bump() {
    auto v = dip;
    for (double& one : v)
        one = 2 - one;
    return v;
}
/// Returns a parabola under a continuum of 1, with its vertex at `centre` (nm).
std::vector<double> bowl(double centre) {
    std::vector<double> v(bands, 1);
    for (int b = 2; b < bands - 2; ++b)
        v[static_cast<size_t>(b)] = 0.6 + 1e-4 * std::pow(2000 + 10 * b - centre, 2);
    return v;
}

struct Pixel {
    double depth = 1; ///< factor on the dip's depth
    double ripples = 0, level = 0.5, slope = 0;
    std::vector<double> shape = dip;

    std::vector<float> values() const {
        std::vector<float> v;
        for (size_t b = 0; b < shape.size(); ++b)
            v.push_back(static_cast<float>(level * (1 + slope * (10.0 * static_cast<double>(b) - 50)) *
                                           (1 - depth * (1 - shape[b]) + ripples * ripple[b])));
        return v;
    }
};

std::vector<identify::Reference> references() {
    return {{"dip", dip}, {"bump", bump()}, {"early", bowl(2044)}, {"late", bowl(2058)}};
}

std::shared_ptr<const identify::Plan> plan_of(const std::string& rules, const identify::Choice& choice = {},
                                              std::vector<double> nm = wavelengths(), double unit = 1) {
    return std::make_shared<const identify::Plan>(identify::plan_rules(
        identify::read_rules(rules, "rules"), choice, {std::move(nm), {}, {}, unit}, references()));
}
std::string file_of(const std::string& rules, const std::string& more = "") {
    return R"({"format": "gdal_hsi_rules", "version": 1, )" + more + R"("rules": [)" + rules + "]}";
}
const std::string windows = R"("windows": [2000, 2010, 2090, 2100])";
std::string rule(const std::string& name, const std::string& more = "", const std::string& feature = "") {
    return R"({"name": ")" + name + R"(", "features": [{)" + windows + feature + "}]" + more + "}";
}

/// Returns the maps of the pixels of one line, one row per group.
std::vector<std::vector<int>> maps(const identify::Plan& plan, const std::vector<Pixel>& pixels) {
    Cube cube(static_cast<int64_t>(pixels.size()), 1, static_cast<int>(plan.used.size()));
    for (size_t p = 0; p < pixels.size(); ++p) {
        const auto values = pixels[p].values();
        for (size_t b = 0; b < plan.used.size(); ++b)
            cube.at(static_cast<int>(b), 0, static_cast<int64_t>(p)) =
                values[static_cast<size_t>(plan.used[b])];
    }
    identify::Outputs outputs;
    outputs.stacked = true;
    const auto operation =
        identify::make_identification(std::make_shared<const identify::Plan>(plan), outputs);
    MemorySource source(cube);
    MemorySink sink(cube.shape.samples, 1, operation->output_bands().front());
    stream::run_pass(source, *operation, {&sink}, {});
    std::vector<std::vector<int>> all;
    for (int g = 0; g < sink.cube.shape.bands; ++g) {
        all.emplace_back();
        for (int64_t p = 0; p < cube.shape.samples; ++p)
            all.back().push_back(static_cast<int>(sink.cube.at(g, 0, p)));
    }
    return all;
}

TEST(Identify, FitAndDepthInClosedForm) {
    double mean = 0, squares = 0;
    for (const double v : dip)
        mean += v / bands;
    for (const double v : dip)
        squares += (v - mean) * (v - mean);
    for (const bool root : {false, true}) {
        const auto plan = plan_of(file_of(rule("dip") + "," + rule("bump"), root ? R"("fit": "r",)" : ""));
        for (const auto& pixel :
             {Pixel{}, Pixel{0.1}, Pixel{2, 0, 0.01}, Pixel{0.5, 0, 0.3, 0.004}, Pixel{0.5, 0.05},
              Pixel{0.3, 0.1, 0.8, -0.003}, Pixel{-0.5}, Pixel{-1, 0.02, 0.2, 0.002}}) {
            const auto verdicts = identify::explain(*plan, pixel.values());
            ASSERT_EQ(verdicts.size(), 2u);
            const bool absorption = pixel.depth > 0;
            const auto &one = verdicts[absorption ? 0 : 1], &other = verdicts[absorption ? 1 : 0];
            const double signal = pixel.depth * pixel.depth * squares,
                         r2 = signal / (signal + 4 * pixel.ripples * pixel.ripples),
                         fit = root ? std::sqrt(r2) : r2, depth = 0.4 * std::abs(pixel.depth);
            EXPECT_TRUE(one.accepted);
            EXPECT_NEAR(one.fit, fit, 3e-6) << pixel.depth;
            EXPECT_NEAR(one.depth, depth, 3e-6 * depth) << pixel.depth;
            EXPECT_NEAR(one.fd, fit * depth, 3e-6) << pixel.depth;
            EXPECT_FALSE(other.accepted);
            EXPECT_EQ(other.fit, 0);
            EXPECT_EQ(other.failed, "feature 1: not present");
        }
    }
}

/// Limits on a pixel of level 0.5, depth 0.2 and fit 1, and the first condition that fails, if any.
TEST(Identify, LimitsAndWhatFailsFirst) {
    const struct {
        const char *feature, *rule, *failed;
        double value;
    } rows[] = {
        {R"("left": [0.5, 0.5], "mean": [0.5, null], "right": [null, 0.5])", "", "", 0},
        {R"("left": [0.51, null], "depth": [0.3, null])", "", "feature 1: left", 0.5},
        {R"("mean": [null, 0.49])", "", "feature 1: mean", 0.5},
        {R"("right": [null, 0.49])", "", "feature 1: right", 0.5},
        {R"("ratio": [1, 1], "slope": [0, 0])", "", "", 0},
        {R"("ratio": [1.01, null])", "", "feature 1: ratio", 1},
        {R"("slope": [0.01, null])", "", "feature 1: slope", 0},
        {R"("depth": [0.19, 0.21], "fit": [0.99, null], "fd": [0.19, 0.21])", "", "", 0},
        {R"("depth": [0.21, null])", "", "feature 1: depth", 0.2},
        {R"("fit": [null, 0.9])", "", "feature 1: fit", 1},
        {R"("depth/1": [1, 1])", "", "", 0},
        {R"("depth/1": [1.5, null])", "", "feature 1: depth/1", 1},
        {R"("left/1": [null, 0.5])", "", "feature 1: left/1", 1},
        {"", R"("fd": [0.19, 0.21], "depth": [null, 0.21], "fit": [0.9, null])", "", 0},
        {"", R"("depth": [0.21, null])", "depth", 0.2},
        {"", R"("fd": [null, 0.19])", "fd", 0.2},
    };
    for (const auto& row : rows)
        for (const double unit : {1.0, 10000.0}) {
            const auto plan = plan_of(file_of(rule("dip", std::string(R"(, "limits": {)") + row.rule + "}",
                                                   std::string(R"(, "limits": {)") + row.feature + "}")),
                                      {}, wavelengths(), unit);
            const auto one = identify::explain(*plan, Pixel{0.5, 0, 0.5 * unit}.values()).front();
            EXPECT_EQ(one.failed, row.failed) << row.feature << row.rule;
            EXPECT_EQ(one.accepted, *row.failed == 0) << row.feature << row.rule;
            EXPECT_NEAR(*row.failed != 0 ? one.value : row.value, row.value, 1e-6) << row.feature << row.rule;
        }
}

/// Rules, conditions and families, and the maps of five pixels: a dip, a weak dip, a bump, a bowl at about
/// 2044 nm and a bowl at about 2058 nm.
TEST(Identify, Arbitration) {
    const std::vector<Pixel> pixels{{1}, {0.2}, {-1}, {1, 0, 0.5, 0, bowl(2044)}, {1, 0, 0.5, 0, bowl(2058)}};
    const std::string deep = R"(, "limits": {"depth": [0.2, null]})";
    const auto named = [](const char* name, const char* group) {
        return std::string(R"(, "spectrum": ")") + name + R"(", "group": )" + group;
    };
    const struct {
        const char* what;
        std::string rules, groups;
        std::vector<std::vector<int>> expected;
        identify::Best best = identify::Best::fit;
    } rows[] = {
        {"the better fit", rule("dip") + "," + rule("bump"), "", {{1, 1, 2, 1, 1}}},
        {"equal fits: the first",
         rule("a", R"(, "spectrum": "dip")") + "," + rule("dip"),
         "",
         {{1, 1, 0, 1, 1}}},
        {"equal fits: the weight",
         rule("a", R"(, "spectrum": "dip")", R"(, "weight": 1)") + "," +
             rule("dip", "", R"(, "weight": 1.000001)"),
         "",
         {{2, 2, 0, 2, 2}}},
        {"positions change the winner",
         rule("early", R"(, "family": "bowls", "centre": [2030, 2050])") + "," +
             rule("late", R"(, "family": "BOWLS", "centre": [2.050, 2.070])") + "," + rule("bump"),
         "",
         {{2, 2, 3, 1, 2}}},
        {"families part it",
         rule("dip", R"(, "family": "dips", "centre": [2000, 2010])") + "," +
             rule("late", R"(, "family": "bowls", "centre": [2000, 2100])"),
         "",
         {{1, 1, 0, 2, 2}}},
        {"ranges that overlap decide nothing",
         rule("dip", R"(, "family": "x", "centre": [2040, 2060])") + "," +
             rule("late", R"(, "family": "x", "centre": [2040, 2060])"),
         "",
         {{1, 1, 0, 2, 2}}},
        {"groups of their own",
         rule("dip", named("dip", R"("a")") + deep) + "," + rule("bump", named("bump", R"("b")")),
         "",
         {{1, 0, 0, 1, 1}, {0, 0, 2, 0, 0}}},
        {"unless",
         rule("strong", named("dip", R"("a")") + deep) + "," + rule("any", named("dip", R"("b")")),
         R"("groups": [{"name": "A"}, {"name": "b", "unless": "STRONG"}],)",
         {{1, 0, 0, 1, 1}, {0, 2, 0, 0, 0}}},
        {"where",
         rule("strong", named("dip", R"("a")") + deep) + "," + rule("any", named("dip", R"("b")")),
         R"("groups": [{"name": "a"}, {"name": "b", "where": ["strong"]}],)",
         {{1, 0, 0, 1, 1}, {2, 0, 0, 2, 2}}},
        {"every group",
         rule("dip", named("dip", R"(["a", "b"])")) + "," + rule("bump", named("bump", R"("*")")),
         "",
         {{1, 1, 2, 1, 1}, {1, 1, 2, 1, 1}}},
        {"NOT",
         rule("dip", R"(, "not": [{"spectrum": "dip", )" + windows + deep + "}]"),
         "",
         {{0, 1, 0, 0, 0}}},
        {"the depth wins",
         rule("late", "", R"(, "weight": 0.1)") + "," + rule("dip", "", R"(, "weight": 0.2)"),
         "",
         {{2, 2, 0, 2, 2}},
         identify::Best::depth},
    };
    for (const auto& row : rows) {
        identify::Choice choice;
        choice.best = row.best;
        EXPECT_EQ(maps(*plan_of(file_of(row.rules, row.groups), choice), pixels), row.expected) << row.what;
    }
}

/// If the scene does not cover a rule, the rule is skipped, or parts of it are omitted, with the reason.
TEST(Identify, Coverage) {
    const std::string far = R"({"windows": [2200, 2210, 2290, 2300])";
    const auto two = [&](const std::string& more) {
        return R"({"name": "dip", "features": [{)" + windows + R"(, "weight": 0.5}, )" + far +
               R"(, "weight": 0.5)" + more + "}]}";
    };
    const struct {
        std::string rules;
        std::vector<int> bad;
        const char* reason;
        bool used;
    } rows[] = {
        {rule("dip"), {}, "", true},
        {rule("dip"), {0}, "", true},
        {rule("dip"), {0, 1}, "no good band is in its left window", false},
        {rule("dip"), {9, 10}, "no good band is in its right window", false},
        {rule("dip"), {2, 3, 4, 5, 6, 7, 8}, "no good band is between its windows", false},
        {rule("dip"), {0, 3, 4, 5, 6, 7, 8, 10}, "3 good bands of at least 4", false},
        {rule("dip"), {4, 5, 6}, "no good band is between 2030 and 2070 nm", false},
        {two(""), {}, "the scene has no good band there; its bands are at 2000-2100 nm", false},
        {two(R"(, "role": "diagnostic")"), {}, "feature 2 (2200-2300 nm)", true},
        {two(R"(, "role": "optional")"), {}, "feature 2 (2200-2300 nm)", true},
        {R"({"name": "dip", "features": [{"windows": [2000, 2001, 2009, 2020]}]})", {}, "good band", false},
    };
    for (const auto& row : rows) {
        auto nm = wavelengths();
        for (const int b : row.bad)
            nm[static_cast<size_t>(b)] = unknown;
        try {
            const auto plan = plan_of(file_of(row.rules), {}, nm);
            EXPECT_TRUE(row.used) << row.reason;
            if (*row.reason != 0) {
                ASSERT_EQ(plan->left_out.size(), 1u);
                EXPECT_NE(plan->left_out.front().second.find(row.reason), std::string::npos);
                EXPECT_EQ(plan->rules.front().features.front().weight, 1); // weight of both
            }
        } catch (const Error& e) {
            EXPECT_FALSE(row.used) << e.what();
            EXPECT_NE(std::string(e.what()).find(row.reason), std::string::npos) << e.what();
            EXPECT_NE(std::string(e.what()).find("'dip' (line 1)"), std::string::npos) << e.what();
        }
    }
}

/// A cube that all ranks write their tiles to.
class JointSink final : public stream::SharedSink {
  public:
    explicit JointSink(Cube& cube) : m_cube(cube) {}
    stream::CubeShape shape() const override { return m_cube.shape; }
    bool concurrent() const override { return true; }
    void write(const Rect& core, const CubeView<float>& src) override {
        for (int b = 0; b < src.bands; ++b)
            for (int64_t l = 0; l < core.h; ++l)
                std::copy_n(src.row(b, l), core.w, m_cube.view().row(b, core.y + l) + core.x);
    }

  private:
    Cube& m_cube;
};

TEST(Identify, SameBitsForEveryTilingThreadAndRank) {
    const auto plan =
        plan_of(file_of(rule("dip", R"(, "group": "a", "limits": {"fit": [0.3, null]})") + "," +
                            rule("bump", R"(, "group": "a")") + "," +
                            rule("early", R"(, "group": "b", "family": "f", "centre": [2030, 2050])") + "," +
                            rule("late", R"(, "group": "b", "family": "f", "centre": [2050, 2070])"),
                        R"("groups": [{"name": "a"}, {"name": "b", "unless": "bump"}],)"));
    constexpr int64_t samples = 131, lines = 23;
    auto cube = random_scene(samples, lines, bands, 3, 0.1);
    make_invalid(cube, 3, 7, 2);
    for (int b = 0; b < bands; ++b)
        cube.at(b, 20, 100) = 0;
    std::vector<double> areas;
    for (int64_t y = 0; y < lines; ++y)
        areas.push_back(100 + 0.1 * static_cast<double>(y));
    const auto made = [&](int lanes, int64_t wide, int64_t high, std::vector<Cube>& cubes) {
        const MemorySource source(cube);
        identify::Outputs outputs;
        outputs.scores = outputs.centre = outputs.materials = outputs.accepted = true;
        const auto operation = identify::make_identification(plan, outputs, areas);
        std::vector<std::unique_ptr<JointSink>> sinks;
        std::vector<stream::CubeSink*> list;
        for (size_t k = 0; k < cubes.size(); ++k) {
            sinks.push_back(std::make_unique<JointSink>(cubes[k]));
            EXPECT_EQ(cubes[k].shape.bands, operation->output_bands()[k]);
            list.push_back(sinks.back().get());
        }
        stream::PassOptions pass;
        pass.lanes = lanes;
        pass.tile_samples = wide;
        pass.tile_lines = high;
        stream::run_pass(source, *operation, list, pass);
        EXPECT_EQ(operation->valid(), samples * lines - 2);
        EXPECT_EQ(operation->invalid(), 2);
        std::vector<double> sums;
        for (size_t g = 0; g < 2; ++g)
            for (size_t label = 0; label <= 4; ++label) {
                const auto t = operation->tally(g, label);
                for (const double v : {static_cast<double>(t.pixels), t.area, t.fit, t.depth, t.fd})
                    sums.push_back(v);
            }
        return sums;
    };
    const auto empty = [&] {
        std::vector<Cube> cubes;
        for (const int n : {1, 1, 6, 2, 4}) // maps, scores, centres, materials
            cubes.emplace_back(samples, lines, n, -12345.0f);
        return cubes;
    };
    auto whole = empty();
    const auto sums = made(1, samples, lines, whole);
    // Tallies equal the counts in the maps, and sums equal the sums of the scores.
    for (size_t g = 0; g < 2; ++g)
        for (int label = 1; label <= 4; ++label) {
            double pixels = 0, area = 0, fit = 0;
            for (int64_t y = 0; y < lines; ++y)
                for (int64_t x = 0; x < samples; ++x) {
                    if (whole[g].at(0, y, x) != static_cast<float>(label)) continue;
                    ++pixels;
                    area += areas[static_cast<size_t>(y)];
                    fit += whole[2].at(static_cast<int>(3 * g), y, x);
                }
            const double* const tally = sums.data() + 5 * (5 * g + static_cast<size_t>(label));
            EXPECT_EQ(tally[0], pixels);
            EXPECT_NEAR(tally[1], area, 1e-9 * area);
            EXPECT_NEAR(tally[2], fit, 1e-6 * fit);
            EXPECT_TRUE(label != (g == 0 ? 1 : 3) || pixels > 10);
        }
    const auto same = [&](const std::vector<Cube>& other) {
        return std::equal(whole.begin(), whole.end(), other.begin(), identical);
    };
    for (const auto& [lanes, wide, high] :
         {std::tuple(2, 131, 1), std::tuple(3, 1, 23), std::tuple(2, 17, 5), std::tuple(1, 128, 16)}) {
        auto cubes = empty();
        EXPECT_EQ(made(lanes, wide, high, cubes), sums) << wide;
        EXPECT_TRUE(same(cubes)) << wide;
    }
    for (const int size : {2, 3}) {
        auto cubes = empty();
        on_ranks(size, [&](parallel::Ranks& ranks, CancelFlag&) {
            const parallel::ThreadJob job(ranks);
            EXPECT_EQ(made(2, 40, 4, cubes), sums) << size;
        });
        EXPECT_TRUE(same(cubes)) << size;
    }
}

} // namespace
} // namespace hsi::test
