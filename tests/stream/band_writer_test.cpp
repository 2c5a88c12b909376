// SPDX-License-Identifier: MIT
#include "stream/band_writer.h"

#include "core/error.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

using stream::BandWriter;

class Taker final : public stream::BandTaker {
  public:
    Taker(int64_t samples, int64_t lines, int bands) : cube(samples, lines, bands, -1.0f) {}
    bool takes_bands() const override { return true; }
    void write_band(int band, const Rect& core, const CubeView<float>& src) override {
        if (on_write) on_write(band, core);
        ASSERT_EQ(src.bands, 1);
        for (int64_t y = 0; y < core.h; ++y)
            for (int64_t x = 0; x < core.w; ++x) {
                cube.at(band, core.y + y, core.x + x) = src.at(0, y, x);
                src.at(0, y, x) = 1e9f; // a sink may change its input
            }
        const std::lock_guard lock(mutex);
        if (core.bottom() == cube.shape.lines) complete.push_back(band);
    }
    Cube cube;
    std::function<void(int, const Rect&)> on_write;
    std::mutex mutex;
    std::vector<int> complete; ///< bands in the order of completion
};

float value_of(int band, int64_t pixel) { return static_cast<float>(band * 1000 + pixel % 991); }

void fill(int band, const CubeView<float>& plane) {
    for (int64_t y = 0; y < plane.lines; ++y)
        for (int64_t x = 0; x < plane.samples; ++x)
            plane.at(0, y, x) = value_of(band, y * plane.samples + x);
}

void expect_bands(const Cube& cube, int first, int last) {
    const int64_t pixels = cube.shape.pixels();
    for (int band = first; band < last; ++band)
        for (int64_t i = 0; i < pixels; ++i)
            ASSERT_EQ(cube.values[static_cast<size_t>(band * pixels + i)], value_of(band, i))
                << "band " << band;
}

TEST(BandWriter, EveryBandIsWrittenWholeWhateverThePlanes) {
    for (const auto& [samples, lines] : {std::pair<int64_t, int64_t>{7, 5}, {600, 1000}, {300001, 2}})
        for (const int planes : {1, 2, 5}) {
            constexpr int bands = 9;
            Taker taker(samples, lines, bands);
            double share = 0;
            BandWriter writer(taker, taker.cube.shape, planes, nullptr, [&](double now) {
                EXPECT_GT(now, share);
                share = now;
            });
            for (int band = 0; band < bands; ++band) {
                const auto plane = writer.take();
                fill(band, plane);
                writer.give(band, plane);
            }
            writer.finish();
            EXPECT_EQ(share, 1);
            EXPECT_EQ(writer.written(), bands);
            EXPECT_EQ(taker.complete.size(), static_cast<size_t>(bands));
            expect_bands(taker.cube, 0, bands);
        }
}

TEST(BandWriter, BandsLeaveInTheOrderInWhichTheyWereGiven) {
    const std::vector<int> order{3, 0, 4, 1, 2};
    Taker taker(40, 30, 5);
    // So few buffers that the thread has written all bands except the last two
    BandWriter writer(taker, taker.cube.shape, 2);
    for (const int band : order) {
        const auto plane = writer.take();
        fill(band, plane);
        writer.give(band, plane);
    }
    writer.finish();
    EXPECT_TRUE(std::equal(order.begin(), order.begin() + 3, taker.complete.begin()));
    expect_bands(taker.cube, 0, 5);
}

TEST(BandWriter, WritesWhileTheCallerWorks) {
    Taker taker(10, 10, 2);
    BandWriter writer(taker, taker.cube.shape, 2);
    const auto first = writer.take();
    fill(0, first);
    writer.give(0, first);
    while (writer.written() < 1) // without a request
        std::this_thread::yield();
    const auto second = writer.take();
    fill(1, second);
    writer.give(1, second);
    writer.finish();
    expect_bands(taker.cube, 0, 2);
}

TEST(BandWriter, SeveralPlanesMayBeTakenAtOnce) {
    Taker taker(50, 20, 6);
    BandWriter writer(taker, taker.cube.shape, 3);
    for (int group = 0; group < 2; ++group) {
        std::vector<CubeView<float>> planes;
        for (int i = 0; i < 3; ++i)
            planes.push_back(writer.take());
        for (int i = 0; i < 3; ++i)
            fill(3 * group + i, planes[static_cast<size_t>(i)]);
        for (int i = 0; i < 3; ++i)
            writer.give(3 * group + i, planes[static_cast<size_t>(i)]);
    }
    writer.finish();
    expect_bands(taker.cube, 0, 6);
}

TEST(BandWriter, MorePlanesThanThereAreIsAnErrorAndNoStandstill) {
    Taker taker(10, 10, 3);
    BandWriter writer(taker, taker.cube.shape, 1);
    writer.take();
    EXPECT_THROW(writer.take(), Error);
}

/// Writes bands until an exception is thrown, and returns its text.
std::string fault_of(BandWriter& writer, int bands) {
    try {
        for (int band = 0; band < bands; ++band) {
            const auto plane = writer.take();
            fill(band, plane);
            writer.give(band, plane);
        }
        writer.finish();
    } catch (const Cancelled&) {
        return "cancelled";
    } catch (const Error& e) {
        return std::string(e.what()) + " / " + e.advice();
    }
    return "";
}

TEST(BandWriter, AnErrorComesOutWithItsBandAndIsTheLastThatIsWritten) {
    for (const int failing : {0, 3, 8}) {
        Taker taker(600, 1000, 9);
        taker.on_write = [&](int band, const Rect& core) {
            if (band >= failing && core.y > 0) throw Error("no room", "Make some.");
        };
        BandWriter writer(taker, taker.cube.shape, 2);
        const std::string fault = fault_of(writer, 9);
        EXPECT_EQ(fault, "no room, band " + std::to_string(failing + 1) + " / Make some.");
        EXPECT_LE(writer.written(), failing);
        // The last two are written in parallel, so one of them may continue
        EXPECT_GE(writer.written(), failing - 1);
        EXPECT_THROW(writer.take(), Error); // the error persists
        EXPECT_THROW(writer.finish(), Error);
    }
}

TEST(BandWriter, ARequestedEndIsMetBetweenPieces) {
    CancelFlag cancel;
    Taker taker(600, 3000, 9);
    std::atomic<int> pieces{0};
    taker.on_write = [&](int band, const Rect&) {
        if (band == 4) {
            ++pieces;
            cancel.request();
        }
    };
    BandWriter writer(taker, taker.cube.shape, 1, &cancel);
    EXPECT_EQ(fault_of(writer, 9), "cancelled");
    EXPECT_EQ(pieces, 1);
    EXPECT_EQ(writer.written(), 4);
}

TEST(BandWriter, AnEndRequestedBeforeTheLastPlaneIsNoSuccess) {
    CancelFlag cancel;
    Taker taker(6, 3, 1);
    BandWriter writer(taker, taker.cube.shape, 1, &cancel);
    writer.give(0, writer.take());
    while (writer.written() < 1)
        std::this_thread::yield();
    cancel.request();
    EXPECT_THROW(writer.finish(), Cancelled);
}

TEST(BandWriter, WhatWasGivenAndNotWrittenIsDroppedInTheEnd) {
    Taker taker(600, 3000, 50);
    std::atomic<bool> began{false}, ends{false};
    taker.on_write = [&](int, const Rect&) {
        began = true;
        while (!ends)
            std::this_thread::yield();
    };
    {
        BandWriter writer(taker, {600, 3000, 50}, 5);
        for (int band = 0; band < 5; ++band)
            writer.give(band, writer.take());
        while (!began)
            std::this_thread::yield();
        EXPECT_EQ(writer.written(), 0);
        ends = true;
    }
    EXPECT_LE(taker.complete.size(), 5u); // and it ended
}

TEST(BandWriter, WhatTheProgressThrowsComesOut) {
    Taker taker(6, 3, 3);
    BandWriter writer(taker, taker.cube.shape, 1, nullptr, [](double) { throw Error("no bar"); });
    EXPECT_EQ(fault_of(writer, 3), "no bar / ");
}

} // namespace
} // namespace hsi::test
