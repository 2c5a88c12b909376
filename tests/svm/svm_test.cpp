// SPDX-License-Identifier: MIT
// Everything that must equal LIBSVM, compared with LIBSVM.
#include "core/error.h"
#include "core/system.h"
#include "stream/pipeline.h"
#include "svm/gather.h"
#include "svm/svm_math.h"
#include "svm/svm_trained.h"

#include <gtest/gtest.h>
#include <svm.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>

namespace hsi::test {
namespace {

using Libsvm = std::unique_ptr<::svm_model, void (*)(::svm_model*)>;

/// On 64-bit ARM, compilers fuse products and sums by default, so a distribution's LIBSVM contains fused
/// operations. Our code never fuses them, so that its results are equal everywhere.
#ifdef __FP_FAST_FMA
constexpr double libsvm_differs_by = 1e-12;
#else
constexpr double libsvm_differs_by = 0;
#endif

void silence() {
    ::svm_set_print_string_function([](const char*) {});
}

/// Loads the model with LIBSVM from LIBSVM's own text format.
Libsvm load(const svm::Model& model) {
    const auto path =
        std::filesystem::temp_directory_path() / ("hsi_svm_test_" + std::to_string(getpid()) + ".model");
    std::ofstream(path) << svm::to_libsvm(model);
    Libsvm m(::svm_load_model(path.c_str()), [](::svm_model* p) { ::svm_free_and_destroy_model(&p); });
    std::filesystem::remove(path);
    return m;
}

std::vector<::svm_node> nodes(const svm::Model& model, const Cube& cube, int64_t pixel) {
    std::vector<::svm_node> x;
    for (int f = 0; f < model.features(); ++f) {
        const float v = svm::scaled(cube.at(f, pixel / cube.shape.samples, pixel % cube.shape.samples),
                                    model.minimum[static_cast<size_t>(f)], model.factor(f));
        if (v != 0.0f) x.push_back({f + 1, static_cast<double>(v)}); // as svm-predict reads a sparse file
    }
    x.push_back({-1, 0});
    return x;
}

struct Maps {
    Cube labels, probabilities, confidence;
    int64_t repeated = 0, invalid = 0, classified = 0;
    std::vector<int64_t> by_class;
};

Maps classify(const svm::Model& model, const Cube& cube, bool estimates, int64_t tile_samples = 0,
              int64_t tile_lines = 0, int lanes = 1) {
    const auto shape = cube.shape;
    const MemorySource source(cube);
    svm::ClassifyOptions options;
    options.probabilities = options.confidence = estimates;
    const auto operation = svm::make_classification(std::make_shared<svm::Model>(model), options);
    MemorySink labels(shape.samples, shape.lines, 1),
        probabilities(shape.samples, shape.lines, model.class_count()),
        confidence(shape.samples, shape.lines, 1);
    std::vector<stream::CubeSink*> sinks{&labels};
    if (estimates) sinks = {&labels, &probabilities, &confidence};
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.tile_samples = tile_samples;
    pass.tile_lines = tile_lines;
    stream::run_pass(source, *operation, sinks, pass);
    return {labels.cube,
            probabilities.cube,
            confidence.cube,
            operation->repeated(),
            operation->invalid(),
            operation->classified(),
            operation->pixels_by_class()};
}

/// Returns true if a decision value is so close to zero that a LIBSVM with fused operations may decide
/// differently.
bool may_turn(const Libsvm& reference, const std::vector<::svm_node>& x, size_t classes) {
    std::vector<double> decision(classes * (classes - 1) / 2);
    ::svm_predict_values(reference.get(), x.data(), decision.data());
    return std::any_of(decision.begin(), decision.end(),
                       [](double d) { return std::fabs(d) < libsvm_differs_by; });
}

/// Checks that labels are equal on every pixel, and probabilities within 1e-5.
void expect_libsvm(const svm::Model& model, const Cube& cube, const Maps& got, bool estimates) {
    const Libsvm reference = load(model);
    ASSERT_TRUE(reference);
    const auto k = static_cast<size_t>(model.class_count());
    int64_t wrong = 0;
    double worst = 0;
    std::vector<double> p(k);
    for (int64_t i = 0; i < cube.shape.pixels(); ++i) {
        const auto x = nodes(model, cube, i);
        const double label = ::svm_predict(reference.get(), x.data());
        wrong += label != static_cast<double>(got.labels.values[static_cast<size_t>(i)]) &&
                 !may_turn(reference, x, k);
        if (!estimates) continue;
        ::svm_predict_probability(reference.get(), x.data(), p.data());
        for (size_t c = 0; c < k; ++c) {
            const auto mine = static_cast<double>(
                got.probabilities.at(static_cast<int>(c), i / cube.shape.samples, i % cube.shape.samples));
            worst = std::max(worst, std::fabs(mine - p[c]));
            if (model.classes[c].value == static_cast<int>(label)) {
                EXPECT_EQ(got.confidence.values[static_cast<size_t>(i)], static_cast<float>(mine));
            }
        }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(worst, 1e-6);
}

TEST(SvmExact, IsLibsvmToTheLastBit) {
    silence();
    for (const int classes : {2, 3, 7}) {
        const auto scene = class_scene(30, 20, 12, classes, 1.5, static_cast<uint32_t>(classes));
        const auto model = trained(scene, 3, 32, 0.5, true).model;
        const Libsvm reference = load(model);
        ASSERT_TRUE(reference);
        std::vector<double> decision(static_cast<size_t>(model.pair_count())),
            p(static_cast<size_t>(classes));
        for (int64_t i = 0; i < scene.cube.shape.pixels(); ++i) {
            const auto x = nodes(model, scene.cube, i);
            std::vector<float> dense;
            for (int f = 0; f < model.features(); ++f)
                dense.push_back(svm::scaled(scene.cube.at(f, i / 30, i % 30),
                                            model.minimum[static_cast<size_t>(f)], model.factor(f)));
            const auto mine = svm::predict_exactly(model, dense.data());
            const double label = ::svm_predict_values(reference.get(), x.data(), decision.data());
            ASSERT_EQ(mine.decision.size(), decision.size());
            for (size_t d = 0; d < decision.size(); ++d)
                EXPECT_NEAR(mine.decision[d], decision[d], libsvm_differs_by);
            EXPECT_EQ(model.classes[static_cast<size_t>(mine.label)].value, static_cast<int>(label));
            ::svm_predict_probability(reference.get(), x.data(), p.data());
            for (size_t c = 0; c < p.size(); ++c)
                EXPECT_NEAR(mine.probabilities[c], p[c], std::max(libsvm_differs_by, 1e-14));
        }
    }
}

TEST(SvmClassify, LabelsAndProbabilitiesAreLibsvms) {
    silence();
    struct Case {
        int bands, classes;
        double spread, c, gamma;
    };
    // The last cases have only bounded support vectors, with coefficients up to 32768, so decisions suffer
    // from cancellation.
    for (const Case& t : {Case{5, 2, 1, 8, 1}, Case{20, 4, 1.2, 128, 0.125}, Case{63, 9, 2, 2, 0.03125},
                          Case{9, 6, 4, 32768, 8}, Case{3, 3, 3, 32768, 0.001}}) {
        const auto scene = class_scene(61, 40, t.bands, t.classes, t.spread, 7);
        const auto model = trained(scene, 7, t.c, t.gamma, true).model;
        const auto maps = classify(model, scene.cube, true);
        expect_libsvm(model, scene.cube, maps, true);
        EXPECT_LT(maps.repeated, scene.cube.shape.pixels() / 20) << t.c;
    }
}

TEST(SvmClassify, TiesAndBoundariesAreDecidedAsLibsvmDoes) {
    silence();
    // Pixels are exactly between the support vectors of two classes, so the decision value is zero except for
    // rounding.
    ClassScene scene{Cube(64, 64, 4), {}};
    std::mt19937 random(3);
    for (int64_t i = 0; i < 64 * 64; ++i) {
        scene.truth.push_back(static_cast<uint16_t>(1 + i % 4));
        for (int b = 0; b < 4; ++b) {
            const double centre = (b < 2) == (i % 2 == 0) ? 1.0 : 0.0;
            // The values of the pixels to classify are multiples of a half or a quarter.
            scene.cube.at(b, i / 64, i % 64) =
                i < 40 ? static_cast<float>(centre) + 0.25f * static_cast<float>((i / 4) % 3)
                       : 0.25f * static_cast<float>(1 + random() % 6);
        }
    }
    ClassScene training = scene;
    training.truth.resize(40);
    const auto model = trained(training, 1, 10, 0.7, false).model;
    const auto maps = classify(model, scene.cube, false);
    EXPECT_GT(maps.repeated, 0) << "no pixel was near to a boundary: this test tests nothing";
    expect_libsvm(model, scene.cube, maps, false);
}

TEST(SvmClassify, FarAwayPixels) {
    silence();
    auto scene = class_scene(40, 10, 6, 3, 1, 5);
    const auto model = trained(scene, 3, 100, 1, false).model;
    const float far[] = {-9999.0f, 65535.0f, 1e10f, -3e38f, 3e38f, 1e-30f};
    for (int64_t i = 0; i < 60; ++i)
        for (int b = 0; b < 6; ++b)
            if ((i + b) % 3) scene.cube.at(b, i / 40, i % 40) = far[static_cast<size_t>((i + b) % 6)];
    expect_libsvm(model, scene.cube, classify(model, scene.cube, false), false);
}

TEST(SvmClassify, TilesAndThreadsChangeNothing) {
    const auto scene = class_scene(53, 47, 10, 5, 1.5, 11);
    const auto model = trained(scene, 9, 16, 0.5, true).model;
    const auto whole = classify(model, scene.cube, true);
    struct Cut {
        int64_t samples, lines;
        int lanes;
    };
    for (const Cut& cut : {Cut{7, 5, 3}, Cut{53, 1, 2}, Cut{1, 1, 4}, Cut{16, 47, 1}}) {
        const auto maps = classify(model, scene.cube, true, cut.samples, cut.lines, cut.lanes);
        EXPECT_TRUE(identical(maps.labels, whole.labels));
        EXPECT_TRUE(identical(maps.probabilities, whole.probabilities));
        EXPECT_TRUE(identical(maps.confidence, whole.confidence));
        EXPECT_EQ(maps.repeated, whole.repeated);
        EXPECT_EQ(maps.by_class, whole.by_class);
    }
}

TEST(SvmClassify, InvalidPixelsHaveNoClass) {
    auto scene = class_scene(20, 10, 6, 3, 1, 5);
    const auto model = trained(scene, 3, 1, 1, true).model;
    make_invalid(scene.cube, 2, 3, 4);
    make_invalid(scene.cube, 2, 4, 0, std::numeric_limits<float>::infinity());
    for (int b = 0; b < 6; ++b)
        scene.cube.at(b, 9, 19) = 0.0f;
    const auto maps = classify(model, scene.cube, true);
    EXPECT_EQ(maps.invalid, 3);
    EXPECT_EQ(maps.classified, 197);
    for (const auto& [l, s] : {std::pair{2, 3}, std::pair{2, 4}, std::pair{9, 19}}) {
        EXPECT_TRUE(std::isnan(maps.labels.at(0, l, s)));
        EXPECT_TRUE(std::isnan(maps.confidence.at(0, l, s)));
        EXPECT_TRUE(std::isnan(maps.probabilities.at(2, l, s)));
    }
    EXPECT_FALSE(std::isnan(maps.labels.at(0, 2, 5)));
}

TEST(SvmClassify, EstimatesNeedAModelThatHasThem) {
    const auto scene = class_scene(20, 10, 6, 3, 1, 5);
    const auto model = std::make_shared<svm::Model>(trained(scene, 3, 1, 1, false).model);
    svm::ClassifyOptions options;
    options.confidence = true;
    EXPECT_THROW(svm::make_classification(model, options), Error);
}

TEST(SvmTrain, IsSvmTrain) {
    silence();
    const auto scene = class_scene(40, 10, 8, 3, 1.2, 21);
    const auto set = training_set(scene, 2);
    const auto model = trained(scene, 2, 4, 0.5, false).model;
    // The same by hand: classes in order, features scaled to [0, 1] over the training set.
    std::vector<std::vector<::svm_node>> rows;
    std::vector<double> y;
    for (const auto& c : model.classes)
        for (size_t i = 0; i < set.label.size(); ++i) {
            if (set.label[i] != c.value) continue;
            y.push_back(set.label[i]);
            rows.emplace_back();
            for (int f = 0; f < 8; ++f) {
                double low = 1e30, high = -1e30;
                for (size_t j = 0; j < set.label.size(); ++j) {
                    low = std::min(low, static_cast<double>(set.values[j * 8 + static_cast<size_t>(f)]));
                    high = std::max(high, static_cast<double>(set.values[j * 8 + static_cast<size_t>(f)]));
                }
                const double v = (static_cast<double>(set.values[i * 8 + static_cast<size_t>(f)]) - low) *
                                 (1.0 / (high - low));
                EXPECT_GE(v, 0.0);
                EXPECT_LE(v, 1.0 + 1e-12);
                rows.back().push_back({f + 1, static_cast<double>(static_cast<float>(v))});
            }
            rows.back().push_back({-1, 0});
        }
    std::vector<::svm_node*> x;
    for (auto& r : rows)
        x.push_back(r.data());
    ::svm_problem problem{static_cast<int>(y.size()), y.data(), x.data()};
    ::svm_parameter parameter{};
    parameter.svm_type = C_SVC;
    parameter.kernel_type = RBF;
    parameter.C = 4;
    parameter.gamma = 0.5;
    parameter.eps = 1e-3;
    parameter.cache_size = 100;
    parameter.shrinking = 1;
    ::svm_model* by_hand = ::svm_train(&problem, &parameter);
    ASSERT_EQ(model.vector_count(), by_hand->l);
    for (int p = 0; p < 3; ++p)
        EXPECT_EQ(model.rho[static_cast<size_t>(p)], by_hand->rho[p]);
    for (int v = 0; v < by_hand->l; ++v)
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ(model.coefficients[static_cast<size_t>(i * by_hand->l + v)], by_hand->sv_coef[i][v]);
    ::svm_free_and_destroy_model(&by_hand);
}

TEST(SvmTrain, GridSearchFindsTheSameWithAndWithoutKernelTables) {
    const auto scene = class_scene(40, 10, 8, 3, 1.5, 22);
    const auto set = training_set(scene, 2);
    svm::TrainOptions options;
    options.c = {0.125, 2, 128};
    options.gamma = {0.001, 0.1, 4};
    const auto with = svm::train(set, options);
    options.memory = 100000;
    options.threads = 3;
    const auto without = svm::train(set, options);
    EXPECT_TRUE(with.kernel_tables);
    EXPECT_FALSE(without.kernel_tables);
    ASSERT_EQ(with.grid.size(), 9u);
    EXPECT_EQ(with.grid[1].gamma, 0.1); // C is the outer loop
    for (size_t i = 0; i < 9; ++i)
        EXPECT_NEAR(with.grid[i].accuracy, without.grid[i].accuracy, 1.01 / 200) << i;
    EXPECT_EQ(with.folds, 5);
    double best = 0;
    for (const auto& g : with.grid)
        best = std::max(best, g.accuracy);
    EXPECT_EQ(svm::best_of(with.grid).accuracy, best);
    EXPECT_EQ(with.model.cv_accuracy, best); // over single pixels
    options.fold = with.fold;
    const auto by_groups = svm::train(set, options);
    EXPECT_EQ(by_groups.model.c, svm::simplest_of_best(by_groups.grid, by_groups.guess).c);
    EXPECT_EQ(by_groups.model.cv_accuracy, svm::simplest_of_best(by_groups.grid, by_groups.guess).accuracy);
    EXPECT_GT(best, 0.6);
}

TEST(SvmTrain, TheSmallestCWithinOneStandardErrorIsTaken) {
    const std::vector<svm::GridPoint> grid{{1, 0.1, 0.50, 0.10}, {1, 1, 0.78, 0.20},    {4, 0.1, 0.79, 0.20},
                                           {4, 1, 0.76, 0.20},   {16, 0.1, 0.81, 0.02}, {16, 1, 0.81, 0.50}};
    struct Case {
        double error, guess; // of the most accurate point; the share of the largest class
        size_t chosen;
    };
    for (const Case& one : {Case{0, 0.4, 4}, Case{0.015, 0.4, 4}, Case{0.025, 0.4, 2}, Case{0.035, 0.4, 1},
                            Case{0.2, 0.4, 1}, Case{0.4, 0.4, 0}, Case{0.4, 0.5, 1}, Case{0.4, 0.78, 2},
                            Case{0.4, 0.8, 4}, Case{0.4, 0.81, 0}, Case{0.015, 0.9, 4}}) {
        auto points = grid;
        points[4].error = one.error;
        EXPECT_EQ(&svm::simplest_of_best(points, one.guess), &points[one.chosen])
            << one.error << " " << one.guess;
        EXPECT_EQ(&svm::best_of(points), &points[4]);
    }
}

TEST(SvmTrain, RefinedSearchFindsWhatTheFullGridFinds) {
    const auto scene = class_scene(40, 10, 8, 3, 1.5, 22);
    const auto set = training_set(scene, 2);
    svm::TrainOptions options;
    const auto full = svm::train(set, options);
    options.refine = true;
    size_t steps = 0;
    options.searched = [&](const std::vector<svm::GridPoint>& grid) {
        ++steps;
        EXPECT_LE(svm::best_of(grid).accuracy, 1);
    };
    const auto refined = svm::train(set, options);
    EXPECT_EQ(full.grid.size(), 110u);
    EXPECT_LT(refined.grid.size(), 60u);
    EXPECT_GE(steps, 2u);
    EXPECT_GE(svm::best_of(refined.grid).accuracy, svm::best_of(full.grid).accuracy - 0.01);
    for (const auto& one : refined.grid) // each candidate is equal to that of the full grid
        for (const auto& other : full.grid)
            if (one.c == other.c && one.gamma == other.gamma) {
                EXPECT_EQ(one.accuracy, other.accuracy);
            }
    options.threads = 3;
    EXPECT_EQ(svm::to_json(svm::train(set, options).model), svm::to_json(refined.model));
}

TEST(SvmTrain, FoldsThatAreGivenAreUsed) {
    const auto scene = class_scene(40, 10, 8, 3, 1.5, 22);
    const auto set = training_set(scene, 2);
    svm::TrainOptions options;
    options.c = {1};
    options.gamma = {0.1};
    options.always_validate = true;
    options.folds = 3;
    // One class has its own fold. No other fold trains this class, so its pixels are not counted.
    int64_t counted = 0, largest = 0;
    std::map<uint16_t, int64_t> of_class;
    for (size_t i = 0; i < set.label.size(); ++i) {
        const bool alone = set.label[i] == set.classes.front().value;
        options.fold.push_back(alone ? 0 : 1 + static_cast<int>(i % 2));
        if (!alone) largest = std::max(largest, ++of_class[set.label[i]]);
        counted += !alone;
    }
    const auto result = svm::train(set, options);
    EXPECT_EQ(result.folds, 3);
    EXPECT_EQ(result.fold, options.fold);
    EXPECT_EQ(result.samples, counted);
    EXPECT_EQ(result.guess, static_cast<double>(largest) / static_cast<double>(counted));
    EXPECT_GT(result.grid.front().error, 0);
}

TEST(SvmTrain, CrossValidationHoldsFoldsOut) {
    // Random labels cannot be learned: held-out accuracy is near chance, although the model fits its own
    // samples.
    auto scene = class_scene(40, 20, 8, 2, 1, 23);
    std::mt19937 random(1);
    for (auto& t : scene.truth)
        t = static_cast<uint16_t>(1 + random() % 2);
    svm::TrainOptions options;
    options.c = {1000};
    options.gamma = {20};
    options.always_validate = true;
    const auto result = svm::train(training_set(scene, 2), options);
    EXPECT_NEAR(result.model.cv_accuracy, 0.5, 0.12);
    const auto maps = classify(result.model, scene.cube, false);
    int right = 0;
    for (size_t i = 0; i < scene.truth.size(); i += 2)
        right += static_cast<float>(scene.truth[i]) == maps.labels.values[i];
    EXPECT_GT(right, 380);
}

TEST(SvmTrain, ThreadsChangeNothingAndTiesGoToTheSmallest) {
    // Separated so well that many grid points are perfect
    const auto scene = class_scene(30, 10, 6, 3, 0.05, 24);
    const auto set = training_set(scene, 2);
    svm::TrainOptions options;
    options.probability = true;
    const auto one = svm::train(set, options);
    options.threads = 4;
    const auto four = svm::train(set, options);
    EXPECT_EQ(svm::to_json(one.model), svm::to_json(four.model));
    EXPECT_EQ(one.model.cv_accuracy, 1.0);
    for (const auto& g : one.grid) {
        if (g.accuracy < 1.0) continue;
        EXPECT_EQ(g.c, one.model.c); // the grid is ordered, so the first perfect point wins
        EXPECT_EQ(g.gamma, one.model.gamma);
        break;
    }
}

TEST(SvmTrain, FoldsAreStratified) {
    std::vector<uint16_t> label;
    for (int i = 0; i < 103; ++i)
        label.push_back(static_cast<uint16_t>(i < 60 ? 1 : i < 97 ? 5 : 9));
    const auto fold = svm::stratified_folds(label, 5, 1);
    EXPECT_EQ(fold, svm::stratified_folds(label, 5, 1));
    EXPECT_NE(fold, svm::stratified_folds(label, 5, 2));
    for (const int value : {1, 5, 9, 0}) { // 0 predicts all together
        std::vector<int> count(5, 0);
        for (size_t i = 0; i < label.size(); ++i)
            if (value == 0 || label[i] == value) ++count[static_cast<size_t>(fold[i])];
        EXPECT_LE(
            *std::max_element(count.begin(), count.end()) - *std::min_element(count.begin(), count.end()), 1);
    }
}

TEST(SvmTrain, WeightsShiftTheDecision) {
    const auto scene = class_scene(40, 20, 4, 2, 3, 25);
    auto set = training_set(scene, 2);
    svm::TrainOptions options;
    options.c = {1};
    options.gamma = {0.5};
    const auto plain = classify(svm::train(set, options).model, scene.cube, false);
    set.classes[0].weight = 10;
    const auto weighted = classify(svm::train(set, options).model, scene.cube, false);
    EXPECT_GT(weighted.by_class[0], plain.by_class[0] + 20);
    svm::ModelClass a, b;
    a.pixels = 10;
    b.pixels = 30;
    EXPECT_EQ(svm::balanced_weights({a, b}), (std::vector<double>{2.0, 40.0 / 60}));
}

TEST(SvmTrain, WarningsOfLibsvmAreHandedOnAndNotPrinted) {
    // Classes that cannot be separated, and a penalty for which the steps never become small.
    svm::TrainingSet set = training_set(class_scene(12, 10, 1, 2, 3, 25), 2);
    std::mt19937 random(5);
    for (float& value : set.values)
        value = static_cast<float>(random() % 10000) / 10000;
    for (size_t i = 0; i < set.label.size(); ++i)
        set.label[i] = static_cast<uint16_t>(set.classes[i * 7 / 3 % 2].value);
    svm::TrainOptions options;
    options.c = {1e300};
    options.gamma = {0.5};
    testing::internal::CaptureStderr();
    const auto result = svm::train(set, options);
    const std::string printed = testing::internal::GetCapturedStderr();
    if (system::portable()) GTEST_SKIP() << "only Linux redirects a thread's standard error";
    EXPECT_EQ(printed, "");
    EXPECT_EQ(result.warnings, (std::map<std::string, int64_t>{{"reaching max number of iterations", 1}}));
    // Standard error must be restored.
    testing::internal::CaptureStderr();
    std::fputs("here", stderr);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "here");
    options.c = {1};
    EXPECT_TRUE(svm::train(set, options).warnings.empty());
}

TEST(SvmTrain, BadSets) {
    auto scene = class_scene(20, 10, 4, 1, 1, 26);
    svm::TrainOptions options;
    EXPECT_THROW(svm::train(training_set(scene, 2), options), Error); // one class
    scene = class_scene(20, 10, 4, 3, 1, 26);
    auto set = training_set(scene, 2);
    for (size_t i = 0; i < set.label.size(); ++i)
        if (set.label[i] == 5 && i != 7) set.label[i] = 2;
    set.label[7] = 5;
    try {
        svm::train(set, options);
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("class 5"), std::string::npos);
        EXPECT_NE(std::string(e.what()).find("has 1 training pixel"), std::string::npos);
    }
    options.c = {1};
    options.gamma = {1};
    EXPECT_NO_THROW(svm::train(set, options)); // no validation is needed
    options.c = svm::default_c();
    CancelFlag cancel;
    cancel.request();
    options.cancel = &cancel;
    EXPECT_THROW(svm::train(training_set(scene, 2), options), Cancelled);
}

TEST(SvmGather, ReadsTheWantedPixelsFromTheirTilesOnly) {
    auto scene = class_scene(50, 40, 3, 2, 1, 27);
    make_invalid(scene.cube, 39, 49, 1);
    std::vector<int64_t> index{0, 49, 50 * 7 + 13, 50 * 7 + 14, 50 * 39 + 49};
    MemorySource source(scene.cube);
    svm::Gather gather(3, 50, index);
    stream::PassOptions options;
    options.tile_samples = 10;
    options.tile_lines = 8;
    options.lanes = 2;
    const auto plan = stream::plan_pass(source, gather, options);
    const auto tiles = gather.tiles(plan);
    EXPECT_EQ(tiles.size(), 4u);
    options.only = &tiles;
    stream::run_pass(source, gather, {}, plan, options);
    for (size_t i = 0; i < index.size(); ++i)
        for (int b = 0; b < 2; b += 2)
            EXPECT_EQ(gather.spectra()[i * 3 + static_cast<size_t>(b)],
                      scene.cube.at(b, index[i] / 50, index[i] % 50));
    EXPECT_TRUE(gather.valid(0));
    EXPECT_FALSE(gather.valid(4));
}

} // namespace
} // namespace hsi::test
