// SPDX-License-Identifier: MIT
// Model files: a model that was written can be read, and any other text is refused with a message.
#include "core/error.h"
#include "svm/svm_trained.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hsi::test {
namespace {

svm::Model sample_model(bool probability) {
    const auto scene = class_scene(12, 10, 5, 3, 1.5, 31);
    auto model = trained(scene, 3, 3.7, 0.3, probability).model;
    model.bands = {1, 2, 3, 7, 9};
    model.band_names = {"a", "b \"quoted\"", "c", "d", "e"};
    model.wavelengths_nm = {400.5, std::numeric_limits<double>::quiet_NaN(), 600, 700, 800.123456789012345};
    model.classes[1].colour = std::array<uint8_t, 4>{1, 2, 250, 255};
    model.seed = 18446744073709551615ull;
    model.origin.history = "gdal_hsi_svm_train 'a b' \\ \xC3\xA9";
    model.trained_on = "scene.img";
    model.folds = 4;
    model.cv_accuracy = 0.1 + 0.2;
    model.value_scale.assign(5, 0.1);
    model.value_offset = {0, 0, 1, 0, -0.3};
    model.value_unit = "W/(m\xC2\xB2 sr \xC2\xB5m)";
    model.mean = {1, 2, 3, 0.1 + 0.2, -5};
    return model;
}

TEST(SvmModel, ComesBackToTheLastBit) {
    for (const bool probability : {false, true}) {
        const auto model = sample_model(probability);
        const std::string text = svm::to_json(model);
        const auto back = svm::from_json(text, "memory");
        EXPECT_EQ(svm::to_json(back), text);
        EXPECT_EQ(back.support_vectors, model.support_vectors);
        EXPECT_EQ(back.coefficients, model.coefficients);
        EXPECT_EQ(back.rho, model.rho);
        EXPECT_EQ(back.prob_a, model.prob_a);
        EXPECT_EQ(back.minimum, model.minimum);
        EXPECT_EQ(back.maximum, model.maximum);
        EXPECT_EQ(back.c, model.c);
        EXPECT_EQ(back.gamma, model.gamma);
        EXPECT_EQ(back.bands, model.bands);
        EXPECT_EQ(back.band_names, model.band_names);
        EXPECT_EQ(back.classes[0].name, model.classes[0].name);
        EXPECT_EQ(back.classes[1].colour, model.classes[1].colour);
        EXPECT_FALSE(back.classes[0].colour.has_value());
        EXPECT_EQ(back.wavelengths_nm[4], model.wavelengths_nm[4]);
        EXPECT_TRUE(std::isnan(back.wavelengths_nm[1]));
        EXPECT_EQ(back.seed, model.seed);
        EXPECT_EQ(back.origin.history, model.origin.history);
        EXPECT_EQ(back.cv_accuracy, model.cv_accuracy);
        EXPECT_EQ(back.value_scale, model.value_scale);
        EXPECT_EQ(back.value_offset, model.value_offset);
        EXPECT_EQ(back.value_unit, model.value_unit);
        EXPECT_EQ(back.mean, model.mean);
    }
}

/// Checks that reading works or throws Error, and that a model that was read can be used.
void try_text(const std::string& text, int& accepted) {
    try {
        const auto model = svm::from_json(text, "mutant");
        std::vector<float> x(static_cast<size_t>(model.features()), 0.5f);
        const auto p = svm::predict_exactly(model, x.data());
        EXPECT_GE(p.label, 0);
        EXPECT_LT(p.label, model.class_count());
        ++accepted;
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("mutant"), std::string::npos);
    }
}

/// Returns the text of an older version. Without a checksum, damage may go unnoticed and reach the code after
/// the parser.
std::string without_checksum(std::string text) {
    const size_t at = text.find(",\n\"checksum\"");
    return text.erase(at, text.find('\n', at + 2) - at);
}

/// Damages a text at a few positions.
std::string damaged(std::string text, std::mt19937& random) {
    static const std::string pieces[] = {
        "null",   "-1",    "1e999", "0", "[]", "{}", "\"x\"",    "99999999999999999999",
        "1.5",    "true",  "[[[[",  "]", "}",  "\0", "\xFF\xFE", "NaN",
        "1e-400", "65536", ","};
    for (unsigned k = 0; k <= random() % 4; ++k) {
        const size_t at = random() % text.size();
        switch (random() % 5) {
        case 0:
            text[at] = static_cast<char>(random() % 256);
            break;
        case 1:
            text.erase(at, 1 + random() % 40);
            break;
        case 2:
            text.insert(at, pieces[random() % std::size(pieces)]);
            break;
        case 3:
            text.insert(at, text.substr(random() % text.size(), random() % 60));
            break;
        default:
            text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
            break;
        }
        if (text.empty()) text = "{";
    }
    return text;
}

TEST(SvmModel, DamageIsSeenByTheChecksum) {
    const std::string good = svm::to_json(sample_model(true));
    const std::string content = without_checksum(good);
    std::mt19937 random(7);
    for (int i = 0; i < 6000; ++i) {
        const std::string text = damaged(good, random);
        std::string back;
        try {
            back = svm::to_json(svm::from_json(text, "mutant"));
        } catch (const Error&) {
            continue;
        }
        EXPECT_EQ(back, good) << text; // whitespace, or a member that is not read
    }
    EXPECT_EQ(svm::to_json(svm::from_json(content, "old")), good);
}

TEST(SvmModel, DamagedFilesAreRefusedInWords) {
    const std::string good = without_checksum(svm::to_json(sample_model(true)));
    std::mt19937 random(5);
    int accepted = 0;
    for (size_t n = 0; n + 1 < good.size(); n += 1 + good.size() / 400)
        try_text(good.substr(0, n), accepted);
    EXPECT_EQ(accepted, 0) << "a truncated file was accepted";
    for (int i = 0; i < 6000; ++i)
        try_text(damaged(good, random), accepted);
    // Many mutations change a digit or a name and leave a valid model, so the test reached the code after the
    // parser.
    EXPECT_GT(accepted, 100);
    std::string deep(200000, '[');
    try_text(deep, accepted);
    try_text("", accepted);
}

TEST(SvmModel, EveryValueReplaced) {
    // Replaces whole values (numbers, lists, texts) by others, one after another.
    const std::string good = without_checksum(svm::to_json(sample_model(true)));
    int accepted = 0, tried = 0;
    for (size_t at = good.find(": "); at != std::string::npos; at = good.find(": ", at + 2)) {
        size_t end = at + 2;
        if (good[end] == '[' || good[end] == '{')
            for (int depth = 0; end < good.size(); ++end) {
                depth += good[end] == '[' || good[end] == '{'   ? 1
                         : good[end] == ']' || good[end] == '}' ? -1
                                                                : 0;
                if (depth == 0) {
                    ++end;
                    break;
                }
            }
        else
            end = good.find_first_of(",\n}", end);
        for (const char* value :
             {"null", "-1", "0", "1e308", "\"x\"", "[]", "{}", "[[]]", "[null]", "[1,2]", "1073741824"}) {
            try_text(good.substr(0, at + 2) + value + good.substr(end), accepted);
            ++tried;
        }
    }
    EXPECT_GT(tried, 100);
}

TEST(SvmModel, SaysWhatIsWrong) {
    const std::string good = svm::to_json(sample_model(false));
    const auto complaint = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        text.replace(at, from.size(), to);
        try {
            svm::from_json(text, "file");
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string("accepted");
    };
    EXPECT_NE(complaint("\"version\": 1", "\"version\": 2").find("has version 2"), std::string::npos);
    EXPECT_NE(complaint("\"rbf\"", "\"linear\"").find("RBF"), std::string::npos);
    EXPECT_NE(complaint("\"bands\": [1,", "\"bands\": [").find("entries instead of"), std::string::npos);
    EXPECT_NE(complaint("gdal_hsi_svm", "other").find("its format is not"), std::string::npos);
    EXPECT_NE(complaint("\"gamma\": 0.3", "\"gamma\": 0").find("above 0"), std::string::npos);
    EXPECT_THROW(svm::read_model("/nonexistent/model.json"), Error);
}

} // namespace
} // namespace hsi::test
