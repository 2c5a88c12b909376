// SPDX-License-Identifier: MIT
#include "stream/plane_store.h"

#include "core/error.h"
#include "core/system.h"
#include "support/memory_cube.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace hsi::stream {
namespace {

std::unique_ptr<PlaneStore> store_of(const CubeShape& shape, bool in_memory) {
    return in_memory ? std::make_unique<PlaneStore>(shape)
                     : std::make_unique<PlaneStore>(shape, testing::TempDir());
}

TEST(PlaneStore, GivesBackWhatWasPutIn) {
    auto cube = test::random_scene(31, 17, 4, 3);
    for (const bool in_memory : {true, false}) {
        const auto store = store_of(cube.shape, in_memory);
        EXPECT_EQ(store->in_memory(), in_memory);
        EXPECT_EQ(store->data() != nullptr, in_memory);
        // Planes in a different order, in two tiles.
        const auto sink = store->sink({2, 0, 3, 1});
        EXPECT_TRUE(sink->concurrent());
        for (const Rect part : {Rect{0, 0, 20, 17}, Rect{20, 0, 11, 17}})
            sink->write(part, cube.view().cut(part.x, part.y, part.w, part.h));
        const auto source = store->source({2, 0, 3, 1});
        EXPECT_EQ(source->shape().bands, 4);
        test::Cube back(31, 17, 4);
        source->open_reader()->read({0, 0, 31, 17}, back.view());
        EXPECT_TRUE(test::identical(back, cube));
        test::Cube one(5, 6, 1);
        store->source({3})->open_reader()->read({7, 8, 5, 6}, one.view());
        for (int64_t l = 0; l < 6; ++l)
            for (int64_t s = 0; s < 5; ++s)
                EXPECT_EQ(one.at(0, l, s), cube.at(2, 8 + l, 7 + s));
    }
}

TEST(PlaneStore, EachRankHasInTheEndWhatAllHaveWritten) {
    // More data than one message, in tiles that the ranks take in turn.
    auto cube = test::random_scene(1500, 1100, 3, 4);
    const CubeView<float> all = cube.view();
    for (const bool in_memory : {true, false})
        for (const int size : {1, 2, 3})
            test::on_ranks(size, [&](parallel::Ranks& ranks, CancelFlag&) {
                const auto store = store_of(cube.shape, in_memory);
                const auto sink = store->sink({1, 2, 0});
                auto* const gathering = dynamic_cast<GatheringSink*>(sink.get());
                ASSERT_NE(gathering, nullptr);
                int turn = 0;
                for (int64_t y = 0; y < 1100; y += 500)
                    for (int64_t x = 0; x < 1500; x += 700)
                        if (const Rect part{x, y, std::min<int64_t>(700, 1500 - x),
                                            std::min<int64_t>(500, 1100 - y)};
                            turn++ % ranks.size() == ranks.rank())
                            sink->write(part, all.cut(part.x, part.y, part.w, part.h));
                gathering->gather(ranks);
                test::Cube back(1500, 1100, 3);
                store->source({1, 2, 0})->open_reader()->read({0, 0, 1500, 1100}, back.view());
                EXPECT_TRUE(test::identical(back, cube)) << ranks.rank() << " of " << size;
            });
}

TEST(PlaneStore, EachRankHasInTheEndItsRowsOfPlanes) {
    auto cube = test::random_scene(1500, 1100, 5, 4);
    const CubeView<float> all = cube.view();
    const Rect whole{0, 0, 1500, 1100};
    constexpr int64_t rows = 130;
    for (const bool in_memory : {true, false})
        for (const int size : {1, 2, 3})
            test::on_ranks(size, [&](parallel::Ranks& ranks, CancelFlag&) {
                const auto store = store_of(cube.shape, in_memory);
                std::vector<PlaneStore::Part> mine;
                for (int plane = 0; plane < 5; ++plane)
                    if (plane % size == ranks.rank()) {
                        store->sink({plane})->write(
                            whole, CubeView<float>::packed(all.row(plane, 0), 1, 1100, 1500));
                        mine.push_back({{plane}, whole});
                    }
                store->share(ranks, mine, rows);
                const auto source = store->source({0, 1, 2, 3, 4});
                const auto reader = source->open_reader();
                for (int64_t y = 0; y < 1100; y += rows) {
                    if (PlaneStore::owner(y, rows, size) != ranks.rank()) continue;
                    const Rect part{0, y, 1500, std::min<int64_t>(rows, 1100 - y)};
                    test::Cube back(1500, part.h, 5);
                    reader->read(part, back.view());
                    for (int b = 0; b < 5; ++b)
                        for (int64_t l = 0; l < part.h; ++l)
                            ASSERT_EQ(
                                std::memcmp(back.view().row(b, l), all.row(b, y + l), 1500 * sizeof(float)),
                                0)
                                << ranks.rank() << " of " << size << ", line " << y + l;
                }
            });
}

TEST(PlaneStore, RanksOfOneHostHaveItInCommon) {
    auto cube = test::random_scene(300, 200, 5, 4);
    const CubeView<float> all = cube.view();
    for (const int hosts : {1, 2})
        test::on_ranks(
            3,
            [&](parallel::Ranks& ranks, CancelFlag&) {
                const auto store = PlaneStore::in_memory_of(ranks, cube.shape);
                ASSERT_TRUE(store->in_memory());
                std::vector<PlaneStore::Part> mine;
                for (int plane = 0; plane < 5; ++plane)
                    if (plane % 3 == ranks.rank()) {
                        const Rect whole{0, 0, 300, 200};
                        store->sink({plane})->write(whole,
                                                    CubeView<float>::packed(all.row(plane, 0), 1, 200, 300));
                        mine.push_back({{plane}, whole});
                    }
                store->share(ranks, mine);
                test::Cube back(300, 200, 5);
                store->source({0, 1, 2, 3, 4})->open_reader()->read({0, 0, 300, 200}, back.view());
                EXPECT_TRUE(test::identical(back, cube)) << ranks.rank() << " of " << hosts << " hosts";
                // Each rank's values until all ranks have read them. On one host, all ranks see a rank's
                // changes.
                ranks.sum("read", 0);
                test::Cube changed(300, 200, 1, 7.0f);
                if (ranks.root()) store->sink({0})->write({0, 0, 300, 200}, changed.view());
                ranks.sum("changed", 0);
                const bool common = hosts == 1 && !system::portable();
                EXPECT_EQ(store->data()[0], ranks.root() || common ? 7.0f : cube.values[0]);
                ranks.sum("looked at", 0);
            },
            hosts);
}

TEST(PlaneStore, ShowsNeighbouringPlanesWhereTheyLie) {
    auto cube = test::random_scene(31, 17, 4, 3);
    const auto store = store_of(cube.shape, true);
    store->sink({0, 1, 2, 3})->write({0, 0, 31, 17}, cube.view());
    const auto view = store->source({1, 2, 3})->open_reader()->view({4, 5, 20, 6});
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(view->bands, 3);
    EXPECT_EQ(view->lines, 6);
    EXPECT_EQ(view->samples, 20);
    EXPECT_EQ(view->row(0, 0), store->data() + (1 * 17 + 5) * 31 + 4); // without a copy
    for (int b = 0; b < 3; ++b)
        for (int64_t l = 0; l < 6; ++l)
            for (int64_t s = 0; s < 20; ++s)
                EXPECT_EQ(view->at(b, l, s), cube.at(1 + b, 5 + l, 4 + s));
    EXPECT_FALSE(store->source({1, 3})->open_reader()->view({0, 0, 31, 17}).has_value());
    EXPECT_FALSE(store->source({1, 0})->open_reader()->view({0, 0, 31, 17}).has_value());
    EXPECT_FALSE(
        store_of(cube.shape, false)->source({0, 1})->open_reader()->view({0, 0, 31, 17}).has_value());
}

TEST(PlaneStore, WindowsWrapRoundTheScene) {
    auto cube = test::random_scene(13, 9, 2, 5);
    for (const bool in_memory : {true, false}) {
        const auto store = store_of(cube.shape, in_memory);
        store->sink({0, 1})->write({0, 0, 13, 9}, cube.view());
        const Rect window{-5, -20, 30, 40}; // exceeds the scene on every side
        test::Cube seen(window.w, window.h, 2);
        store->read(window, seen.values.data());
        for (int b = 0; b < 2; ++b)
            for (int64_t l = 0; l < window.h; ++l)
                for (int64_t s = 0; s < window.w; ++s)
                    ASSERT_EQ(seen.at(b, l, s),
                              cube.at(b, ((window.y + l) % 9 + 9) % 9, ((window.x + s) % 13 + 13) % 13));
    }
}

TEST(PlaneStore, LeavesNoFileAndSaysWhereItCannotBe) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(testing::TempDir()) / ("hsi_planes_" + std::to_string(getpid()));
    fs::create_directory(folder);
    {
        const PlaneStore store({8, 8, 1}, folder.string());
        EXPECT_TRUE(fs::is_empty(folder)); // the file has no name, even while it is used
    }
    fs::remove_all(folder);
    EXPECT_THROW(PlaneStore({8, 8, 1}, folder.string()), Error);
    EXPECT_EQ(folder_beside("x.tif"), ".");
    EXPECT_EQ(folder_beside(testing::TempDir() + "x.tif"),
              fs::path(testing::TempDir() + "x.tif").parent_path().string());
    EXPECT_EQ(folder_beside("/vsimem/x.tif"), fs::temp_directory_path().string());
}

} // namespace
} // namespace hsi::stream
