// SPDX-License-Identifier: MIT
// The bands of a scene that a model selects: by wavelength, in order, by number; and mismatches.
#include "core/error.h"
#include "model/band_match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace hsi;
using model::match_bands;
using Places = std::vector<int>;

model::ModelBands model_of(std::vector<int> bands, std::vector<double> wavelengths) {
    model::ModelBands m;
    m.bands = std::move(bands);
    m.wavelengths_nm = std::move(wavelengths);
    return m;
}

Places match(const model::ModelBands& m, const model::SceneBands& scene, bool ignored = false) {
    return match_bands("m.json", m, "scene.img", scene, ignored);
}

std::string complaint(const model::ModelBands& m, const model::SceneBands& scene) {
    try {
        match(m, scene);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(BandMatch, TheNearestWavelengthIsTaken) {
    const auto m = model_of({1, 2, 3}, {500, 510, 530});
    EXPECT_EQ(match(m, {{1, 2, 3, 4}, {530.4, 490, 500.1, 512}}), (Places{2, 3, 0}));
    EXPECT_EQ(match(m, {{7, 8, 9}, {500, 510, 530}}), (Places{0, 1, 2})) << "numbers do not matter then";
    const std::string far = complaint(m, {{1, 2, 3}, {500, 513, 530}}); // 3 nm off, with a spacing of 10
    EXPECT_NE(far.find("'m.json' was made for other bands"), std::string::npos) << far;
    EXPECT_NE(far.find("510.0 nm"), std::string::npos) << far;
    EXPECT_NE(far.find("513.0 nm"), std::string::npos) << far;
}

/// Implements the documented rule of match_bands() for nearest bands.
Places nearest_of_each(const std::vector<double>& wanted, const std::vector<double>& scene) {
    Places places;
    std::vector<bool> used(scene.size());
    for (size_t b = 0; b < wanted.size(); ++b) {
        size_t best = 0;
        double spacing = HUGE_VAL;
        for (size_t k = 0; k < scene.size(); ++k)
            if (std::fabs(scene[k] - wanted[b]) < std::fabs(scene[best] - wanted[b])) best = k;
        for (size_t k = 0; k < wanted.size(); ++k)
            if (k != b) spacing = std::min(spacing, std::fabs(wanted[k] - wanted[b]));
        const double limit = std::isfinite(spacing) ? std::max(0.5, spacing / 4) : 0.5;
        for (size_t k = best; k < scene.size() && used[best]; ++k)
            if (scene[k] == scene[best] && !used[k]) best = k; // the detectors overlap
        if (used[best] || std::fabs(scene[best] - wanted[b]) > limit) return {};
        used[best] = true;
        places.push_back(static_cast<int>(best));
    }
    return places;
}

TEST(BandMatch, AsByTheDefinition) {
    std::mt19937 random(1);
    int matched = 0;
    for (int turn = 0; turn < 3000; ++turn) {
        const auto number = [&](int most) {
            return static_cast<int>(random() % static_cast<unsigned>(most));
        };
        std::vector<double> wanted, scene;
        for (int k = number(4) + 1; k > 0; --k)
            wanted.push_back(500 + 5.0 * number(8));
        for (int k = number(8) + static_cast<int>(wanted.size()); k > 0; --k)
            scene.push_back(500 + 2.5 * number(17));
        std::vector<int> bands(wanted.size()), numbers(scene.size());
        std::iota(bands.begin(), bands.end(), 1);
        std::iota(numbers.begin(), numbers.end(), 1);
        const Places expected = nearest_of_each(wanted, scene);
        Places found;
        try {
            found = match(model_of(bands, wanted), {numbers, scene});
        } catch (const Error&) {
            found.clear();
        }
        EXPECT_EQ(found, expected) << turn;
        matched += !expected.empty();
    }
    EXPECT_GT(matched, 300);
}

/// Tables from strangers may be long: this took a minute when each band was compared with all others.
TEST(BandMatch, LongLists) {
    constexpr size_t count = 60000;
    std::vector<int> bands(count);
    std::iota(bands.begin(), bands.end(), 1);
    std::vector<double> nm;
    for (size_t b = 0; b < count; ++b)
        nm.push_back(400 + static_cast<double>(b));
    const Places places = match(model_of(bands, nm), {bands, nm});
    EXPECT_EQ(places.back(), static_cast<int>(count) - 1);
    EXPECT_EQ(model::common_numbers(bands, bands), places);
    EXPECT_EQ(model::common_bands(nm, nm), places);
}

TEST(BandMatch, TheFirstBandWithoutAPartnerIsNamedAndTheOthersAreCounted) {
    const auto m = model_of({4, 6, 7, 9}, {500, 510, 530, 540});
    EXPECT_EQ(complaint(m, {{1, 2, 3, 4}, {500, 510, 535, 540}}),
              "'m.json' was made for other bands than scene.img: the model's band 7 (530.0 nm) has no "
              "match: the nearest in the scene, at 535.0 nm, is too far away");
    EXPECT_EQ(complaint(m, {{1, 2, 3, 4}, {500, 515, 525, 540}}),
              "'m.json' was made for other bands than scene.img: 2 of the model's 4 bands have no match; "
              "the first is band 6 (510.0 nm): the nearest in the scene, at 515.0 nm, is too far away");
    EXPECT_EQ(
        complaint(m, {{1, 2, 3}, {500, 530, 540}}),
        "'m.json' was made for 4 bands, but scene.img has 3: the model's band 6 (510.0 nm) has no match: "
        "the nearest in the scene, at 500.0 nm, is too far away");
}

TEST(BandMatch, NoBandStandsForTwo) {
    const auto m = model_of({1, 2}, {500, 500.2});
    EXPECT_NE(complaint(m, {{1, 2}, {500.1, 600}}).find("already"), std::string::npos);
    EXPECT_EQ(match(m, {{1, 2}, {500.19, 500}}), (Places{1, 0}));
    EXPECT_EQ(match(model_of({1, 2, 3}, {500, 519.7, 519.7}), {{1, 2, 3, 4}, {519.7, 400, 519.7, 500}}),
              (Places{3, 0, 2}))
        << "detectors overlap";
}

TEST(BandMatch, WithoutWavelengthsTheOrderCountsAndThenTheNumbers) {
    const auto m = model_of({2, 3, 7}, {});
    EXPECT_EQ(match(m, {{1, 2, 3}, {}}), (Places{0, 1, 2})) << "as many as it wants";
    EXPECT_EQ(match(m, {{1, 2, 3, 4, 5, 6, 7, 8}, {}}), (Places{1, 2, 6}));
    EXPECT_EQ(match(m, {{7, 2, 3, 1}, {}}), (Places{1, 2, 0}));
    const std::string none = complaint(m, {{1, 2, 3, 4}, {}});
    EXPECT_NE(none.find("not include its band 7"), std::string::npos) << none;
    const std::string few = complaint(m, {{1, 2}, {}});
    EXPECT_NE(few.find("was made for 3 bands, but scene.img has 2"), std::string::npos) << few;
}

TEST(BandMatch, AsManyBandsAreFoundByTheirNumbersWhereTheyAreTheModels) {
    const auto m = model_of({2, 3, 7}, {});
    EXPECT_EQ(match(m, {{7, 3, 2}, {}}), (Places{2, 1, 0}));
    EXPECT_EQ(match(m, {{7, 3, 2}, {}}, true), (Places{0, 1, 2})) << "as they come";
    EXPECT_EQ(match(m, {{1, 2, 4}, {}}), (Places{0, 1, 2})) << "a file's own numbers may be others";
    model::SceneBands told{{1, 2, 4}, {}, true};
    EXPECT_NE(complaint(m, told).find("its band 3 is missing"), std::string::npos) << complaint(m, told);
    EXPECT_EQ(match(m, told, true), (Places{0, 1, 2}));
    told.numbers = {3, 7, 2};
    EXPECT_EQ(match(m, told), (Places{2, 0, 1}));
}

TEST(BandMatch, NumbersThatMeanTheSameAreNotTakenInTheirOrder) {
    auto m = model_of({3, 7}, {});
    m.file_bands = 10;
    EXPECT_EQ(match(m, {{7, 3}, {}, false, 10}), (Places{1, 0}));
    EXPECT_EQ(match(m, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {}, false, 10}), (Places{2, 6}));
    EXPECT_EQ(complaint(m, {{3, 8}, {}, false, 10}),
              "'m.json' was made for other bands than scene.img: its band 7 is missing, by the band "
              "numbers");
    EXPECT_EQ(match(m, {{3, 8}, {}, false, 10}, true), (Places{0, 1})) << "as they come";
    EXPECT_EQ(match(m, {{1, 2}, {}, false, 2}), (Places{0, 1})) << "of another file: nothing is known";
    EXPECT_EQ(match(m, {{3, 8}, {}, false, 12}), (Places{0, 1})) << "likewise";
    m.file_bands = 0; // an older document, whose numbers do not refer to a file of two bands
    EXPECT_NE(complaint(m, {{3, 8}, {}, false, 12}).find("its band 7"), std::string::npos);
    EXPECT_EQ(match(m, {{1, 2}, {}, false, 2}), (Places{0, 1}));
    m.bands = {1, 2}; // numbers that fit any file
    EXPECT_EQ(match(m, {{3, 8}, {}, false, 12}), (Places{0, 1}));
    m.numbers_told = true;
    EXPECT_NE(complaint(m, {{3, 8}, {}, false, 12}).find("its band 1"), std::string::npos);
}

TEST(BandMatch, NumbersAreComparedWhereTheyMeanTheSame) {
    using model::SceneBands;
    const SceneBands whole{{1, 2, 3, 4}, {}, false, 4}, some{{1, 4}, {}, false, 4},
        other{{1, 2, 3}, {}, false, 3};
    const SceneBands told{{1, 2, 4}, {}, true, 3};
    EXPECT_TRUE(model::comparable_numbers(whole, some));
    EXPECT_FALSE(model::comparable_numbers(whole, other)) << "files with other numbers of bands";
    EXPECT_TRUE(model::comparable_numbers(told, whole));
    EXPECT_TRUE(model::comparable_numbers(some, told));
    EXPECT_FALSE(model::comparable_numbers(told, other)) << "the file has no band 4";
    EXPECT_TRUE(model::comparable_numbers(told, told));
    EXPECT_FALSE(model::comparable_numbers({{1}, {}}, {{1}, {}})) << "nothing is known";
    EXPECT_EQ(model::common_numbers({5, 1, 9}, {1, 2, 9}), (Places{-1, 0, 2}));
}

TEST(BandMatch, AnUnknownWavelengthOrAWishLeavesWavelengthsOut) {
    const auto m = model_of({1, 2}, {500, 510});
    EXPECT_EQ(match(m, {{4, 5}, {500, std::nan("")}}), (Places{0, 1}));
    EXPECT_EQ(match(m, {{4, 5}, {900, 910}}, true), (Places{0, 1}));
    EXPECT_THROW(match(m, {{4, 5}, {900, 910}}), Error);
    EXPECT_THROW(match(m, {{4}, {500}}, true), Error);
}

TEST(BandMatch, AnotherSceneIsNoModel) {
    const auto m = model_of({4, 6, 7}, {500, 510, 530});
    const auto error = [&](const model::SceneBands& scene) {
        try {
            match_bands("a.img", m, "b.img", scene, false, model::BandsOf::scenes);
        } catch (const Error& e) {
            return std::string(e.what()) + " | " + e.advice();
        }
        return std::string();
    };
    for (const auto& scene :
         {model::SceneBands{{1, 2, 3}, {500, 510, 560}}, model::SceneBands{{1, 2}, {500, 510}}}) {
        const std::string text = error(scene);
        EXPECT_EQ(text.find("'a.img' has "), 0U) << text;
        EXPECT_EQ(text.find("made"), std::string::npos) << text;
        EXPECT_EQ(text.find("-any-wavelengths"), std::string::npos) << text;
    }
}

TEST(SameScale, WhatSaysNothingHasScaleOne) {
    model::ModelBands m;
    EXPECT_TRUE(same_scale(m, {}));
    EXPECT_TRUE(same_scale(m, {{1, 1}, {0, 0}, "W"}));
    EXPECT_FALSE(same_scale(m, {{2, 2}, {0, 0}, ""}));
    EXPECT_FALSE(same_scale(m, {{1, 1}, {0, 3}, ""}));
    m.value_scale = {1e-4, 1e-4};
    m.value_offset = {0, 0};
    EXPECT_FALSE(same_scale(m, {}));
    EXPECT_TRUE(same_scale(m, {{static_cast<double>(1e-4F), 1e-4}, {0, 0}, ""})) << "in single precision";
    EXPECT_FALSE(same_scale(m, {{1e-4, 2e-4}, {0, 0}, ""}));
    EXPECT_FALSE(same_scale(m, {{1e-4, 1e-4}, {0, -0.1}, ""}));
    m.value_unit = "W";
    EXPECT_TRUE(same_scale(m, {{1e-4, 1e-4}, {0, 0}, ""}));
    EXPECT_FALSE(same_scale(m, {{1e-4, 1e-4}, {0, 0}, "mW"}));
}

} // namespace
