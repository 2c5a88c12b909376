// SPDX-License-Identifier: MIT
#include "stream/pipeline.h"
#include "stream/pixel_mask.h"
#include "stream/resident_source.h"
#include "stream/statistics_scan.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

namespace hsi::test {
namespace {

using stream::MaskedSource;
using stream::PixelMask;

/// Returns runs of every length and single pixels, at every position in a word.
std::shared_ptr<PixelMask> some_pixels(int64_t samples, int64_t lines) {
    auto mask = std::make_shared<PixelMask>(samples, lines);
    std::mt19937 random(7);
    for (int64_t i = 0; i < samples * lines;) {
        const auto gap = static_cast<int64_t>(random() % 90), run = static_cast<int64_t>(1 + random() % 150);
        for (int64_t k = i + gap; k < std::min(i + gap + run, samples * lines); ++k)
            mask->set(k / samples, k % samples);
        i += gap + run;
    }
    return mask;
}

TEST(PixelMask, FindsWhatABitByBitSearchFinds) {
    const int64_t samples = 131, lines = 17;
    const auto mask = some_pixels(samples, lines);
    int64_t inside = 0;
    for (int64_t y = 0; y < lines; ++y)
        for (int64_t x = 0; x < samples; ++x) {
            inside += mask->at(y, x);
            EXPECT_EQ(mask->at(y, x), mask->at(y * samples + x));
            for (const int64_t to : {x, x + 1, std::min(x + 70, samples), samples})
                for (const bool wanted : {false, true}) {
                    int64_t found = x;
                    while (found < to && mask->at(y, found) != wanted)
                        ++found;
                    ASSERT_EQ(mask->find(y, x, to, wanted), found) << y << ' ' << x << ' ' << to;
                }
        }
    EXPECT_EQ(mask->count(), inside);
    EXPECT_EQ(mask->bytes(), PixelMask::bytes(samples, lines));
    PixelMask others = *mask;
    others.invert();
    EXPECT_EQ(others.count(), samples * lines - inside);
    EXPECT_NE(others.at(3, 5), mask->at(3, 5));
    others.keep_only(*mask);
    EXPECT_EQ(others.count(), 0);
    others.set(16, 130);
    EXPECT_TRUE(others.at(16, 130));
    others.clear(16, 130);
    EXPECT_EQ(others.count(), 0);
}

TEST(MaskedSource, TakesTheValuesOfOtherPixelsAway) {
    const Cube cube = random_scene(133, 21, 5, 3);
    const auto mask = some_pixels(133, 21);
    const MemorySource memory(cube);
    const MaskedSource source(memory, mask);
    EXPECT_GT(source.reader_bytes(), memory.reader_bytes());
    const auto reader = source.open_reader();
    for (const Rect& window :
         {Rect{0, 0, 133, 21}, Rect{60, 3, 7, 9}, Rect{1, 20, 131, 1}, Rect{132, 0, 1, 21}}) {
        std::vector<float> values(static_cast<size_t>(5 * window.area()), -1.0f);
        const auto view = CubeView<float>::packed(values.data(), 5, window.h, window.w);
        reader->read(window, view);
        for (int b = 0; b < 5; ++b)
            for (int64_t y = 0; y < window.h; ++y)
                for (int64_t x = 0; x < window.w; ++x) {
                    const float got = view.row(b, y)[x];
                    if (mask->at(window.y + y, window.x + x))
                        ASSERT_EQ(got, cube.at(b, window.y + y, window.x + x));
                    else
                        ASSERT_TRUE(std::isnan(got));
                }
    }
}

/// A source whose pixels are in memory that readers can view.
class ViewedSource final : public stream::CubeSource {
  public:
    explicit ViewedSource(Cube& cube) : m_cube(cube) {}
    stream::CubeShape shape() const override { return m_cube.shape; }
    stream::BlockLayout layout() const override { return {}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(m_cube);
    }

  private:
    struct Reader final : stream::CubeReader {
        explicit Reader(Cube& from) : cube(from) {}
        void read(const Rect&, const CubeView<float>&) override {}
        std::optional<CubeView<float>> view(const Rect& w) override {
            return cube.view().cut(w.x, w.y, w.w, w.h);
        }
        Cube& cube;
    };
    Cube& m_cube;
};

TEST(MaskedSource, LetsLookAtMemoryOnlyWhereTheMaskChangesNothing) {
    Cube cube = random_scene(70, 9, 2, 3);
    auto mask = std::make_shared<PixelMask>(70, 9);
    mask->invert();
    mask->clear(4, 66);
    const ViewedSource viewed(cube);
    const auto reader = MaskedSource(viewed, mask).open_reader();
    EXPECT_TRUE(reader->view({0, 0, 70, 4}));
    EXPECT_TRUE(reader->view({0, 0, 66, 9}));
    EXPECT_FALSE(reader->view({66, 4, 1, 1}));
    EXPECT_FALSE(reader->view({0, 0, 70, 9}));
}

TEST(MaskedSource, LeavesASceneInMemoryWhole) {
    const Cube cube = random_scene(90, 40, 4, 11);
    const auto mask = some_pixels(90, 40);
    const auto kept = std::make_shared<stream::ResidentSource>(std::make_shared<MemorySource>(cube));
    const MaskedSource masked(kept, mask);
    Cube cut = cube;
    for (int b = 0; b < 4; ++b)
        for (int64_t y = 0; y < 40; ++y)
            for (int64_t x = 0; x < 90; ++x)
                if (!mask->at(y, x)) cut.at(b, y, x) = std::numeric_limits<float>::quiet_NaN();
    const auto scan = [](const stream::CubeSource& source, int lanes) {
        stream::StatisticsScan operation(source.shape(), stream::Statistics::covariance);
        stream::PassOptions pass;
        pass.lanes = lanes;
        stream::run_pass(source, operation, {}, pass);
        return operation.result();
    };
    const auto expected = scan(MemorySource(cut), 1);
    for (const int lanes : {3, 1}) { // the first pass fills, the second reads the kept values
        const auto got = scan(masked, lanes);
        EXPECT_EQ(got.valid_pixels, mask->count());
        EXPECT_EQ(got.mean, expected.mean);
        EXPECT_EQ(got.covariance, expected.covariance);
        if (!kept->sealed()) kept->seal();
    }
    const auto whole = kept->view();
    for (int b = 0; b < 4; ++b)
        for (int64_t y = 0; y < 40; ++y)
            for (int64_t x = 0; x < 90; ++x)
                ASSERT_EQ(whole.row(b, y)[x], cube.at(b, y, x));
}

} // namespace
} // namespace hsi::test
