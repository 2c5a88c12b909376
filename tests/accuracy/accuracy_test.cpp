// SPDX-License-Identifier: MIT
#include "accuracy/accuracy.h"
#include "core/error.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hsi::accuracy {
namespace {

/// Returns pixels with this confusion matrix: rows are the reference, columns the map.
Confusion from(const std::vector<std::vector<int>>& matrix, std::vector<Class> map = {},
               std::vector<Class> reference = {}) {
    Confusion c(std::move(map), std::move(reference));
    for (size_t i = 0; i < matrix.size(); ++i)
        for (size_t j = 0; j < matrix[i].size(); ++j)
            for (int k = 0; k < matrix[i][j]; ++k) {
                const auto m = static_cast<uint16_t>(j + 1), r = static_cast<uint16_t>(i + 1);
                c.add(&m, &r, nullptr, 1);
            }
    return c;
}

TEST(Accuracy, MatchesAWorkedExample) {
    // Two classes: 20, 5 / 10, 15. OA is 35/50, the chance agreement (25*30 + 25*20)/2500 = 0.5, and kappa
    // 0.4.
    const Result r = from({{20, 5}, {10, 15}}).result(false);
    EXPECT_DOUBLE_EQ(r.overall.value, 0.7);
    EXPECT_DOUBLE_EQ(r.average.value, (0.8 + 0.6) / 2);
    EXPECT_NEAR(r.kappa.value, 0.4, 1e-15);
    EXPECT_DOUBLE_EQ(r.by_class[0].producer.value, 0.8);
    EXPECT_DOUBLE_EQ(r.by_class[0].user.value, 20.0 / 30);
    EXPECT_DOUBLE_EQ(r.by_class[0].f1, 40.0 / 55);
    EXPECT_DOUBLE_EQ(r.by_class[1].user.value, 0.75);
    // Wilson's interval for 35 of 50, by hand: centre (0.7 + z2/100)/(1 + z2/50), z2 = 3.841459.
    EXPECT_NEAR(r.overall.low, 0.5624965, 1e-6);
    EXPECT_NEAR(r.overall.high, 0.8089645, 1e-6);
    // The delta method for a 2x2 table, with a variance from numerical derivatives.
    const auto kappa = [](double a, double b, double c, double d) {
        const double n = a + b + c + d, o = (a + d) / n,
                     e = ((a + b) * (a + c) + (c + d) * (b + d)) / (n * n);
        return (o - e) / (1 - e);
    };
    const double cell[] = {20, 5, 10, 15};
    double mean = 0, square = 0;
    for (int k = 0; k < 4; ++k) {
        double up[] = {20, 5, 10, 15}, down[] = {20, 5, 10, 15};
        up[k] += 1e-4;
        down[k] -= 1e-4;
        const double slope =
            (kappa(up[0], up[1], up[2], up[3]) - kappa(down[0], down[1], down[2], down[3])) / 2e-4;
        mean += cell[k] * slope;
        square += cell[k] * slope * slope;
    }
    const double half = 1.959963984540054 * std::sqrt(square - mean * mean / 50);
    EXPECT_NEAR(r.kappa.high - r.kappa.value, half, 1e-6);
    EXPECT_NEAR(r.kappa.value - r.kappa.low, half, 1e-6);
}

TEST(Accuracy, ManyClassesInAnyOrderOfAppearance) {
    Confusion c({}, {});
    int64_t agreed = 0, total = 0;
    for (int i = 40; i >= 1; --i)
        for (int j = 1; j <= 40; ++j) {
            const auto m = static_cast<uint16_t>(i * 7), r = static_cast<uint16_t>(j * 7);
            for (int k = 0; k < (i * j) % 5; ++k)
                c.add(&m, &r, nullptr, 1);
            total += (i * j) % 5;
            agreed += i == j ? (i * j) % 5 : 0;
        }
    const Result result = c.result(false);
    EXPECT_EQ(result.pixels, total);
    EXPECT_DOUBLE_EQ(result.overall.value, static_cast<double>(agreed) / static_cast<double>(total));
    for (size_t i = 0; i < result.classes.size(); ++i)
        for (size_t j = 0; j < result.classes.size(); ++j)
            EXPECT_EQ(result.at(i, j), (result.classes[i].value / 7 * (result.classes[j].value / 7)) % 5);
}

TEST(Accuracy, UnlabelledUnclassifiedAndMaskedPixels) {
    Confusion c({}, {});
    const uint16_t map[] = {1, 0, 2, 1, 2, 0}, reference[] = {1, 1, 0, 2, 2, 0}, mask[] = {1, 1, 1, 1, 0, 1};
    c.add(map, reference, mask, 6);
    const Result left_out = c.result(false);
    EXPECT_EQ(left_out.pixels, 2);
    EXPECT_EQ(left_out.unclassified, 1);
    EXPECT_EQ(left_out.unlabelled, 2);
    EXPECT_EQ(left_out.masked, 1);
    EXPECT_DOUBLE_EQ(left_out.overall.value, 0.5);
    EXPECT_DOUBLE_EQ(left_out.by_class[0].producer.value, 1.0);
    const Result counted = c.result(true);
    EXPECT_DOUBLE_EQ(counted.overall.value, 1.0 / 3);
    EXPECT_DOUBLE_EQ(counted.by_class[0].producer.value, 0.5);
    EXPECT_EQ(counted.pixels, 3); // the pixels on which the accuracies are based
    EXPECT_EQ(counted.unclassified, 1);
    EXPECT_NE(text(left_out).find("Pixels: 2 compared, 1 labelled but unclassified (left out), 2 unlabelled"),
              std::string::npos)
        << text(left_out);
    EXPECT_NE(
        text(counted).find("Pixels: 3 compared, of which 1 labelled but unclassified (counted as errors)"),
        std::string::npos)
        << text(counted);
}

TEST(Accuracy, ClassesMatchByNameWhenBothHaveNames) {
    // The map numbers the classes in reverse order.
    const Result named =
        from({{0, 9}, {8, 1}}, {{1, "woods"}, {2, "corn"}}, {{1, "corn"}, {2, "woods"}}).result(false);
    EXPECT_DOUBLE_EQ(named.overall.value, 17.0 / 18);
    EXPECT_TRUE(
        from({{0, 9}, {8, 1}}, {{1, "woods"}, {2, "corn"}}, {{1, "corn"}, {2, "woods"}}).renumbered());
    const Result by_value = from({{0, 9}, {8, 1}}, {{1, "woods"}}, {{1, "corn"}, {2, "woods"}}).result(false);
    EXPECT_DOUBLE_EQ(by_value.overall.value, 1.0 / 18);
    // A class of the map that the reference lacks is always wrong.
    const Result foreign = from({{5, 3}}, {{1, "corn"}, {2, "lake"}}, {{1, "corn"}}).result(false);
    EXPECT_EQ(foreign.classes.size(), 2u);
    EXPECT_DOUBLE_EQ(foreign.overall.value, 5.0 / 8);
    EXPECT_TRUE(std::isnan(foreign.by_class[1].producer.value));
    EXPECT_DOUBLE_EQ(foreign.average.value, 5.0 / 8); // the average covers classes of the reference
}

TEST(Accuracy, OtherNamesOfTheSameNumbersAreListed) {
    const auto pairs =
        from({{4, 0}, {0, 5}}, {{1, "kaolinite"}, {2, "corn"}}, {{1, "corn"}, {2, "woods"}}).named_pairs();
    EXPECT_TRUE(pairs.by_name); // "corn" is in both, so the numbers do not count
    EXPECT_EQ(pairs.agreeing, 1u);
    const auto other =
        from({{4, 0}, {0, 5}}, {{1, "kaolinite"}, {2, "alunite"}}, {{1, "corn"}, {2, "woods"}}).named_pairs();
    EXPECT_FALSE(other.by_name);
    EXPECT_EQ(other.agreeing, 0u);
    ASSERT_EQ(other.differing.size(), 2u);
    EXPECT_EQ(other.differing[1].first.name, "alunite");
    EXPECT_EQ(other.differing[1].second.name, "woods");
    EXPECT_TRUE(from({{4, 0}, {0, 5}}, {}, {{1, "corn"}, {2, "woods"}}).named_pairs().differing.empty());
}

TEST(Accuracy, NothingToCompareIsAnError) {
    Confusion c({}, {});
    const uint16_t zero = 0, one = 1;
    c.add(&one, &zero, nullptr, 1);
    EXPECT_THROW(c.result(false), Error);
    c.add(&zero, &one, nullptr, 1);
    EXPECT_THROW(c.result(true), Error);
}

TEST(Accuracy, PerfectAgreementOfOneClassHasNoKappa) {
    const Result r = from({{4}}).result(false);
    EXPECT_DOUBLE_EQ(r.overall.value, 1.0);
    EXPECT_TRUE(std::isnan(r.kappa.value));
    EXPECT_NE(text(r).find("Kappa: - (not defined: map and reference have only one class)"),
              std::string::npos);
}

// The agreement equals the chance agreement for any classes on the other side, so the formula gives 0.
TEST(Accuracy, OneClassOnEitherSideHasNoKappa) {
    const Result reference = from({{7, 3}, {0, 0}}).result(false), map = from({{7, 0}, {3, 0}}).result(false);
    EXPECT_TRUE(std::isnan(reference.kappa.value) && std::isnan(map.kappa.value));
    EXPECT_NE(text(reference).find("the reference has only one class"), std::string::npos);
    EXPECT_NE(text(map).find("the map has only one class"), std::string::npos);
    EXPECT_FALSE(std::isnan(from({{7, 3}, {0, 1}}).result(false).kappa.value));
}

TEST(Accuracy, CsvQuotesNames) {
    const std::string table = csv(from({{4, 1}}, {}, {{1, "corn, \"early\""}}).result(false));
    EXPECT_NE(table.find("1,\"corn, \"\"early\"\"\",4,1,5,4,0.8"), std::string::npos) << table;
}

} // namespace
} // namespace hsi::accuracy
