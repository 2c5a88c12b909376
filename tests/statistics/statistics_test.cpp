// SPDX-License-Identifier: MIT
#include "statistics/statistics.h"

#include "core/error.h"
#include "core/valid_pixel.h"
#include "parallel/thread_job.h"
#include "stream/pipeline.h"
#include "stream/statistics_sums.h"
#include "support/memory_cube.h"
#include "support/simd_targets.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

using statistics::SceneRecord;
using statistics::Statistics;
using statistics::Sums;

struct Found {
    Sums sums;
    statistics::Extremes extremes;
};

Found scan(const Cube& cube, int64_t tile_lines = 0, int lanes = 1) {
    const MemorySource source(cube);
    stream::PassOptions options;
    options.lanes = lanes;
    options.tile_samples = tile_lines > 0 ? cube.shape.samples : 0;
    options.tile_lines = tile_lines;
    statistics::ExactScan operation(cube.shape);
    stream::run_pass(source, operation, {}, options);
    Found found{Sums(cube.shape.bands), operation.extremes()};
    found.sums.add(operation.sums());
    return found;
}

/// Returns all members of sums as bits.
std::vector<double> bits_of(const Sums& sums) {
    std::vector<double> all{static_cast<double>(sums.valid), static_cast<double>(sums.invalid),
                            static_cast<double>(sums.pairs)};
    all.insert(all.end(), sums.finite.begin(), sums.finite.end());
    for (const auto* const one : {&sums.sum, &sums.product, &sums.difference})
        for (const auto& part : statistics::parts_of(*one)) {
            all.insert(all.end(), part.begin(), part.end());
            all.push_back(-1);
        }
    return all;
}

/// Computes the definition, one product at a time, with the rounding error of each product.
Sums reference(const Cube& cube) {
    const auto [samples, lines, all_bands] = cube.shape;
    const int bands = all_bands;
    const auto n = static_cast<size_t>(bands);
    Sums sums(bands);
    const auto add = [&](math::ExactSums& to, const std::vector<double>& x) {
        for (size_t a = 0; a < n; ++a)
            for (size_t b = 0; b <= a; ++b) {
                const double product = x[a] * x[b], rest = std::fma(x[a], x[b], -product);
                const size_t at = stream::at_lower(static_cast<int>(a), static_cast<int>(b));
                to.add(at, &product, 1);
                to.add(at, &rest, 1);
            }
    };
    const auto pixel = [&](int64_t line, int64_t sample) {
        std::vector<double> x;
        for (int b = 0; b < bands; ++b)
            x.push_back(static_cast<double>(cube.at(b, line, sample)));
        return x;
    };
    for (int64_t line = 0; line < lines; ++line) {
        bool before = false;
        for (int64_t sample = 0; sample < samples; ++sample) {
            const auto x = pixel(line, sample);
            for (size_t b = 0; b < n; ++b)
                sums.finite[b] += std::isfinite(x[b]);
            const bool valid = is_valid_pixel(x.data(), bands, 1);
            valid ? ++sums.valid : ++sums.invalid;
            if (valid) {
                sums.sum.add(0, x.data(), n);
                add(sums.product, x);
            }
            if (valid && before) {
                ++sums.pairs;
                auto d = x;
                const auto left = pixel(line, sample - 1);
                for (size_t b = 0; b < n; ++b)
                    d[b] -= left[b];
                add(sums.difference, d);
            }
            before = valid;
        }
    }
    return sums;
}

Cube cut(const Cube& whole, int64_t first, int64_t count) {
    Cube piece(whole.shape.samples, count, whole.shape.bands);
    for (int b = 0; b < whole.shape.bands; ++b)
        for (int64_t line = 0; line < count; ++line)
            for (int64_t s = 0; s < whole.shape.samples; ++s)
                piece.at(b, line, s) = whole.at(b, first + line, s);
    return piece;
}

/// Returns scenes with numbers of all types, and holes.
std::vector<std::pair<std::string, Cube>> scenes() {
    std::vector<std::pair<std::string, Cube>> all;
    const auto whole_numbers = [](Cube cube) {
        for (auto& x : cube.values)
            x = std::round(x);
        return cube;
    };
    all.emplace_back("counts", whole_numbers(random_scene(150, 61, 13, 1, 0.02, 20000)));
    all.emplace_back("reflectance", random_scene(131, 83, 7, 2));
    Cube wide = random_scene(97, 90, 5, 3);
    std::mt19937 random(4);
    std::uniform_int_distribution<int> exponent(-120, 100);
    for (size_t i = 0; i < wide.values.size(); i += 3) // many more digits than slices hold
        wide.values[i] = std::ldexp(i % 2 ? wide.values[i] : -wide.values[i], exponent(random));
    all.emplace_back("of all magnitudes", wide);
    Cube ends = random_scene(40, 20, 4, 5);
    for (size_t i = 0; i < ends.values.size(); i += 7)
        ends.values[i] =
            i % 2 ? std::numeric_limits<float>::max() / 8 : std::numeric_limits<float>::denorm_min();
    all.emplace_back("at the ends", ends);
    Cube dark = random_scene(70, 41, 6, 6);
    for (int64_t line = 0; line < 41; ++line)
        for (int64_t s = 0; s < 70; ++s)
            dark.at(2, line, s) = 0; // a band of zeros
    all.emplace_back("a dark band", dark);
    all.emplace_back("one column", random_scene(1, 30, 3, 7));
    for (auto& [name, cube] : all) {
        const auto [samples, lines, bands] = cube.shape;
        for (int64_t i = 0; i < samples * lines; i += 17) {
            make_invalid(cube, i / samples, i % samples, static_cast<int>(i % bands));
            if (i % 3 == 0)
                make_invalid(cube, (i / 3) / samples, (i / 3) % samples, 0,
                             std::numeric_limits<float>::infinity());
        }
        for (int b = 0; b < bands; ++b)
            cube.at(b, lines / 2, samples / 2) = 0; // all zero
    }
    return all;
}

TEST(ExactStatistics, AreThoseOfTheDefinitionToTheLastBit) {
    for (const auto& [name, cube] : scenes())
        EXPECT_EQ(bits_of(scan(cube).sums), bits_of(reference(cube))) << name;
}

TEST(ExactStatistics, AreTheSameForEveryTileAndNumberOfLanes) {
    for (const auto& [name, cube] : scenes()) {
        const auto whole = bits_of(scan(cube).sums);
        for (const auto& [lines, lanes] : {std::pair{1, 1}, {3, 2}, {8, 3}, {1000, 1}})
            EXPECT_EQ(bits_of(scan(cube, lines, lanes).sums), whole) << name << ", " << lines << " lines";
    }
}

TEST(ExactStatistics, AreTheSameInEveryInstructionSet) {
    for (const auto& [name, cube] : scenes()) {
        std::vector<double> first;
        for_every_simd([&, &name = name, &cube = cube](const std::string& set) {
            const auto bits = bits_of(scan(cube).sums);
            if (first.empty()) first = bits;
            EXPECT_EQ(bits, first) << name << " with " << set;
        });
    }
}

TEST(ExactStatistics, RanksComeToTheBitsOfOneProcess) {
    for (const auto& [name, cube] : scenes()) {
        const auto alone = scan(cube);
        for (const int size : {2, 3, 5})
            on_ranks(size, [&, &scene_name = name, &scene = cube](parallel::Ranks& ranks, CancelFlag&) {
                const parallel::ThreadJob job(ranks);
                const auto together = scan(scene, 4, 2);
                EXPECT_EQ(bits_of(together.sums), bits_of(alone.sums)) << scene_name;
                EXPECT_EQ(together.extremes.low, alone.extremes.low) << scene_name;
                EXPECT_EQ(together.extremes.high, alone.extremes.high) << scene_name;
            });
    }
}

SceneRecord record_of(const std::string& name, const Cube& cube, const Found& found) {
    SceneRecord r;
    r.name = name;
    r.samples = cube.shape.samples;
    r.lines = cube.shape.lines;
    r.valid = found.sums.valid;
    r.invalid = found.sums.invalid;
    r.digest = found.sums.digest();
    r.extremes = found.extremes;
    return r;
}

Statistics empty_of(int bands) {
    Statistics s(bands);
    s.bands.bands.resize(static_cast<size_t>(bands));
    std::iota(s.bands.bands.begin(), s.bands.bands.end(), 1);
    for (int b = 0; b < bands; ++b)
        s.bands.wavelengths_nm.push_back(400 + 10.5 * b);
    return s;
}

// A scene may be divided anywhere, added in any order, in files that are merged in any order. Pieces of
// another scene are added and removed in between.
TEST(ExactStatistics, NeitherCutsNorOrderLeaveATrace) {
    std::mt19937 random(11);
    for (const auto& [name, cube] : scenes()) {
        const auto whole = bits_of(scan(cube).sums);
        const Cube other = random_scene(33, 12, cube.shape.bands, 99, 0.3, 1e6);
        const auto of_other = scan(other);
        for (int round = 0; round < 12; ++round) {
            std::vector<int64_t> cuts{0, cube.shape.lines};
            for (int k = 0; k < round % 7; ++k)
                cuts.push_back(static_cast<int64_t>(random() % static_cast<uint32_t>(cube.shape.lines)));
            std::sort(cuts.begin(), cuts.end());
            cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
            std::vector<size_t> order(cuts.size() - 1);
            std::iota(order.begin(), order.end(), size_t{0});
            std::shuffle(order.begin(), order.end(), random);
            Statistics first = empty_of(cube.shape.bands), second = empty_of(cube.shape.bands),
                       guest = empty_of(cube.shape.bands);
            guest.add(record_of("guest", other, of_other), of_other.sums);
            first.add(guest, "guest.stat");
            for (const size_t k : order) {
                const Cube piece = cut(cube, cuts[k], cuts[k + 1] - cuts[k]);
                const auto found = scan(piece);
                (random() % 2 ? first : second)
                    .add(record_of("piece" + std::to_string(k), piece, found), found.sums);
            }
            second.add(first, "first.stat");
            second.remove(guest, "guest.stat");
            EXPECT_EQ(bits_of(second.sums), whole) << name << ", round " << round;
            EXPECT_EQ(second.result().covariance, [&cube = cube] {
                Statistics one = empty_of(cube.shape.bands);
                const auto found = scan(cube);
                one.add(record_of("whole", cube, found), found.sums);
                return one.result().covariance;
            }());
        }
    }
}

TEST(ExactStatistics, AddingAndTakingAwayLeavesTheSameFile) {
    const Cube a = random_scene(50, 20, 6, 1), b = random_scene(40, 30, 6, 2, 0.5, 1e4);
    const auto of_a = scan(a), of_b = scan(b);
    Statistics one = empty_of(6), other = empty_of(6);
    one.add(record_of("a", a, of_a), of_a.sums);
    other.add(record_of("b", b, of_b), of_b.sums);
    const std::string before = to_json(one, "test");
    one.add(other, "b.stat");
    EXPECT_NE(to_json(one, "test"), before);
    Statistics turned = empty_of(6);
    turned.add(other, "b.stat");
    turned.add(record_of("a", a, of_a), of_a.sums);
    EXPECT_EQ(to_json(turned, "test"), to_json(one, "test"));
    one.remove(other, "b.stat");
    EXPECT_EQ(to_json(one, "test"), before);
}

TEST(ExactStatistics, RefuseWhatIsThereTwiceOrWasNeverAdded) {
    const Cube a = random_scene(50, 20, 6, 1), b = random_scene(50, 20, 6, 2);
    const auto of_a = scan(a), of_b = scan(b);
    Statistics one = empty_of(6), other = empty_of(6);
    one.add(record_of("a", a, of_a), of_a.sums);
    other.add(record_of("b", b, of_b), of_b.sums);
    EXPECT_THROW(one.add(record_of("copy of a", a, of_a), of_a.sums), Error);
    const std::string before = to_json(one, "test");
    EXPECT_THROW(one.remove(other, "b.stat"), Error);
    EXPECT_EQ(to_json(one, "test"), before);
    Statistics copy = empty_of(6);
    copy.add(record_of("again", a, of_a), of_a.sums);
    EXPECT_THROW(one.add(copy, "copy.stat"), Error);
}

// Any program can write a file with these counts: 128 such files exceed 64 bits.
TEST(ExactStatistics, RefuseCountsThatAreTooLargeTogether) {
    const Cube a = random_scene(50, 20, 6, 1);
    const auto of_a = scan(a);
    for (int64_t Sums::*const count : {&Sums::valid, &Sums::invalid}) {
        Statistics one = empty_of(6), other = empty_of(6);
        Sums most(6), single(6);
        most.*count = statistics::pixel_limit;
        single.*count = 1;
        one.add(record_of("a", a, of_a), most);
        const std::string before = to_json(one, "test");
        SceneRecord record = record_of("b", a, of_a);
        record.digest += 1;
        other.add(record, single);
        EXPECT_THROW(one.add(other, "b.stat"), Error);
        EXPECT_THROW(one.add(record, single), Error);
        EXPECT_EQ(to_json(one, "test"), before);
    }
}

TEST(ExactStatistics, FindBandsThatAreConstant) {
    Cube cube = random_scene(50, 20, 5, 1);
    for (int64_t line = 0; line < 20; ++line)
        for (int64_t s = 0; s < 50; ++s) {
            cube.at(1, line, s) = 7;
            cube.at(3, line, s) = line < 10 ? 2.0f : 3.0f;
        }
    const Cube upper = cut(cube, 0, 10), lower = cut(cube, 10, 10);
    Statistics all = empty_of(5);
    const auto of_upper = scan(upper), of_lower = scan(lower);
    all.add(record_of("upper", upper, of_upper), of_upper.sums);
    EXPECT_EQ(all.result().constant, (std::vector<int>{1, 3}));
    all.add(record_of("lower", lower, of_lower), of_lower.sums);
    EXPECT_EQ(all.result().constant, (std::vector<int>{1}));
}

// As a file
// ----------------------------------------------------------------------------------------------------------

std::string file_of_two() {
    const Cube a = random_scene(50, 20, 6, 1), b = random_scene(40, 30, 6, 2, 0.5, 1e4);
    const auto of_a = scan(a), of_b = scan(b);
    Statistics s = empty_of(6);
    s.bands.value_scale.assign(6, 0.0001);
    s.bands.value_offset.assign(6, 0);
    s.bands.value_unit = "W/m2";
    s.add(record_of("a", a, of_a), of_a.sums);
    s.add(record_of("b", b, of_b), of_b.sums);
    return to_json(s, "test");
}

TEST(StatisticsFile, ComesBackToTheLastBit) {
    for (const auto& [name, cube] : scenes()) {
        const auto found = scan(cube);
        Statistics s = empty_of(cube.shape.bands);
        s.add(record_of(name, cube, found), found.sums);
        const std::string text = to_json(s, "test");
        const auto back = statistics::from_json(text, "file");
        EXPECT_EQ(to_json(back, "test"), text) << name;
        EXPECT_EQ(bits_of(back.sums), bits_of(found.sums)) << name;
        EXPECT_EQ(back.scenes.front().extremes.low, found.extremes.low);
        EXPECT_TRUE(statistics::is_statistics(text.substr(0, 64)));
    }
}

TEST(StatisticsFile, TellsOfAChangedNumber) {
    const std::string text = file_of_two();
    std::mt19937 random(3);
    int changed = 0, refused = 0;
    while (changed < 300) {
        std::string other = text;
        const size_t at = random() % other.size();
        if (other[at] < '0' || other[at] > '9') continue;
        other[at] = other[at] == '9' ? '3' : '9';
        if (other == text) continue;
        ++changed;
        try { // a digit that a float cannot have does not change the sum
            EXPECT_EQ(to_json(statistics::from_json(other, "file"), "test"), text) << "at " << at;
        } catch (const Error&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 250);
}

TEST(StatisticsFile, IsRefusedWhenItIsCutOffForeignOrNewer) {
    const std::string text = file_of_two();
    for (size_t size = 0; size + 2 < text.size(); size += 101)
        EXPECT_THROW(statistics::from_json(text.substr(0, size), "file"), Error);
    const auto message = [](const std::string& of) {
        try {
            statistics::from_json(of, "lines.stat");
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_NE(message("{\"format\": \"gdal_hsi_pca\"}").find("is not a statistics file"), std::string::npos);
    EXPECT_NE(message("hello").find("'lines.stat' is not a statistics file"), std::string::npos);
    std::string newer = text;
    newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 2");
    EXPECT_NE(message(newer).find("version 2"), std::string::npos);
    std::string other = text;
    other.replace(other.find("W/m2"), 4, "W/m3");
    EXPECT_NE(message(other).find("damaged"), std::string::npos);
}

// 224 bands of floats that use all their digits.
TEST(StatisticsFile, IsSmall) {
    const Cube cube = random_scene(30, 20, 224, 8, 0.3);
    const auto found = scan(cube);
    Statistics s = empty_of(224);
    s.add(record_of("a", cube, found), found.sums);
    EXPECT_LT(to_json(s, "test").size(), size_t{12} << 20);
}

} // namespace
} // namespace hsi::test
