// SPDX-License-Identifier: MIT
#include "stream/pipeline.h"

#include "core/cancel_scope.h"
#include "stream/empty_source.h"
#include "stream/plane_store.h"
#include "stream/resident_source.h"
#include "stream/statistics_scan.h"
#include "support/cancelled_tile.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

namespace hsi::test {
namespace {

/// Computes in + the mean of the 3x3 neighbourhood of band 0 (needs a halo of 1), and a second output with
/// the line number.
class Neighbours final : public stream::Operation {
  public:
    explicit Neighbours(int bands) : m_bands(bands) {}
    int64_t halo() const override { return 1; }
    std::vector<int> output_bands() const override { return {m_bands, 1}; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        ++started;
        return std::make_unique<Work>();
    }
    void stop(stream::Worker&) override { ++stopped; }
    std::atomic<int> started{0}, stopped{0};

  private:
    class Work final : public stream::Worker {
      public:
        void process(const Tile& t, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            for (int64_t l = 0; l < t.core.h; ++l)
                for (int64_t s = 0; s < t.core.w; ++s) {
                    const int64_t y = l + t.core.y - t.window.y, x = s + t.core.x - t.window.x;
                    float sum = 0;
                    for (int64_t i = std::max<int64_t>(0, y - 1); i <= std::min(in.lines - 1, y + 1); ++i)
                        for (int64_t j = std::max<int64_t>(0, x - 1); j <= std::min(in.samples - 1, x + 1);
                             ++j)
                            sum += in.at(0, i, j);
                    for (int b = 0; b < in.bands; ++b)
                        out[0].at(b, l, s) = in.at(b, y, x) + sum;
                    out[1].at(0, l, s) = static_cast<float>(t.core.y + l);
                }
        }
    };
    int m_bands;
};

stream::PassOptions tiles(int64_t samples, int64_t lines, int lanes) {
    stream::PassOptions o;
    o.name = "test";
    o.tile_samples = samples;
    o.tile_lines = lines;
    o.lanes = lanes;
    return o;
}

TEST(Pipeline, GivesTheSameForEveryTilingAndNumberOfLanes) {
    const Cube scene = random_scene(53, 41, 4);
    const MemorySource source(scene);
    Cube whole;
    for (const auto& o :
         {tiles(53, 41, 1), tiles(8, 8, 3), tiles(53, 1, 2), tiles(7, 41, 4), tiles(1, 1, 2)}) {
        for (bool concurrent : {true, false}) {
            Neighbours operation(4);
            MemorySink a(53, 41, 4, concurrent), b(53, 41, 1, true);
            const auto report = stream::run_pass(source, operation, {&a, &b}, o);
            if (whole.values.empty()) whole = a.cube;
            EXPECT_TRUE(identical(whole, a.cube));
            for (int64_t l = 0; l < 41; ++l)
                EXPECT_EQ(b.cube.at(0, l, 5), static_cast<float>(l));
            EXPECT_EQ(report.bytes_written, uint64_t{53} * 41 * 5 * 4);
            EXPECT_GE(report.bytes_read, uint64_t{53} * 41 * 4 * 4);
            EXPECT_EQ(operation.started, operation.stopped);
            EXPECT_EQ(operation.started, report.lanes);
        }
    }
}

TEST(Pipeline, WritesInOrderToSinksThatAreNotConcurrent) {
    const Cube scene = random_scene(40, 64, 2);
    const MemorySource source(scene);
    Neighbours operation(2);
    MemorySink a(40, 64, 2, false), b(40, 64, 1, true);
    int64_t last = -1;
    std::atomic<int> inside{0};
    a.on_write = [&](const Rect& r) {
        EXPECT_EQ(inside.fetch_add(1), 0);
        EXPECT_GT(r.y, last);
        last = r.y;
        --inside;
    };
    stream::run_pass(source, operation, {&a, &b}, tiles(40, 2, 4));
    EXPECT_EQ(last, 62);
}

TEST(Pipeline, ReportsTheTileOfAReadError) {
    const Cube scene = random_scene(20, 60, 2);
    MemorySource source(scene);
    source.on_read = [](const Rect& r) {
        if (r.y >= 30) throw Error("the disk is gone", "Find it.");
    };
    Neighbours operation(2);
    MemorySink a(20, 60, 2, false), b(20, 60, 1, false);
    try {
        stream::run_pass(source, operation, {&a, &b}, tiles(20, 5, 3));
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("the disk is gone, tile at sample 0, line "), std::string::npos)
            << e.what();
        EXPECT_EQ(e.advice(), "Find it.");
    }
    EXPECT_EQ(operation.stopped, 0);
}

TEST(Pipeline, ReportsAWriteErrorAndEndsAllLanes) {
    const Cube scene = random_scene(20, 200, 2);
    const MemorySource source(scene);
    for (bool concurrent : {true, false}) {
        Neighbours operation(2);
        MemorySink a(20, 200, 2, concurrent), b(20, 200, 1, concurrent);
        a.on_write = [](const Rect& r) {
            if (r.y == 20) throw Error("No space left on device");
        };
        EXPECT_THROW(stream::run_pass(source, operation, {&a, &b}, tiles(20, 5, 4)), Error);
    }
}

TEST(Pipeline, CanBeCancelled) {
    const Cube scene = random_scene(20, 200, 2);
    const MemorySource source(scene);
    Neighbours operation(2);
    MemorySink a(20, 200, 2), b(20, 200, 1);
    CancelFlag cancel;
    std::atomic<int> written{0};
    a.on_write = [&](const Rect&) {
        if (++written == 3) cancel.request();
    };
    auto o = tiles(20, 1, 2);
    o.cancel = &cancel;
    EXPECT_THROW(stream::run_pass(source, operation, {&a, &b}, o), Cancelled);
    EXPECT_LT(written, 10);
}

/// Checks for cancellation within a tile, as long operations do.
class Asking final : public stream::Operation {
  public:
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Work>();
    }

  private:
    class Work final : public stream::Worker {
        void process(const Tile&, const CubeView<float>&, const std::vector<CubeView<float>>&) override {
            check_cancelled();
            FAIL() << "the flag that was set has not been seen";
        }
    };
};

TEST(Pipeline, WorkersSeeTheFlagWithinATile) {
    Asking operation;
    EXPECT_TRUE(ends_within_its_tile(random_scene(20, 4, 2), operation));
    EXPECT_FALSE(CancelScope::cancelled()); // the caller's thread does not belong to the pass
}

TEST(Pipeline, ShowsProgressFromZeroToOne) {
    const Cube scene = random_scene(20, 40, 2);
    const MemorySource source(scene);
    Neighbours operation(2);
    MemorySink a(20, 40, 2), b(20, 40, 1);
    std::vector<double> seen;
    auto o = tiles(20, 4, 3);
    o.progress = [&](double share) { seen.push_back(share); };
    stream::run_pass(source, operation, {&a, &b}, o);
    EXPECT_EQ(seen.front(), 0.0);
    EXPECT_EQ(seen.back(), 1.0);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(seen.size(), 12u);
}

TEST(Pipeline, VisitsChosenTilesOnly) {
    const Cube scene = random_scene(20, 40, 2);
    MemorySource source(scene);
    std::mutex mutex;
    std::vector<int64_t> lines;
    source.on_read = [&](const Rect& r) {
        const std::lock_guard lock(mutex);
        lines.push_back(r.y);
    };
    stream::StatisticsScan scan(source.shape(), stream::Statistics::means);
    auto o = tiles(128, 16, 1);
    const std::vector<int64_t> only{2};
    o.only = &only;
    stream::run_pass(source, scan, {}, o);
    EXPECT_EQ(lines, (std::vector<int64_t>{32}));
    EXPECT_EQ(scan.result().valid_pixels, 20 * 8);
}

/// Records the addresses of its tiles.
class InPlace final : public stream::Operation {
  public:
    explicit InPlace(bool asks) : m_asks(asks) {}
    bool reads_in_place() const override { return m_asks; }
    std::vector<int> output_bands() const override { return {2}; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Work>(*this);
    }
    std::mutex mutex;
    std::vector<const float*> at;

  private:
    struct Work final : stream::Worker {
        explicit Work(InPlace& o) : owner(o) {}
        void process(const Tile&, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            const std::lock_guard lock(owner.mutex);
            owner.at.push_back(in.data);
            for (int b = 0; b < 2; ++b)
                for (int64_t l = 0; l < in.lines; ++l)
                    for (int64_t s = 0; s < in.samples; ++s)
                        out[0].at(b, l, s) = 2 * in.at(b, l, s);
        }
        InPlace& owner;
    };
    bool m_asks;
};

TEST(Pipeline, GivesTilesThatLieInMemoryAsTheyAreToThoseWhoAsk) {
    const Cube scene = random_scene(40, 30, 2);
    stream::PlaneStore store(scene.shape);
    Cube copy = scene;
    store.sink({0, 1})->write({0, 0, 40, 30}, copy.view());
    const auto there = store.source({0, 1});
    const MemorySource read(scene); // the source has no view
    const auto inside = [&](const float* p) { return p >= store.data() && p < store.data() + 2 * 40 * 30; };
    std::vector<Cube> results;
    for (const bool asks : {true, false})
        for (const stream::CubeSource* source : {static_cast<const stream::CubeSource*>(there.get()),
                                                 static_cast<const stream::CubeSource*>(&read)}) {
            InPlace operation(asks);
            MemorySink sink(40, 30, 2);
            stream::run_pass(*source, operation, {&sink}, tiles(16, 8, 2));
            EXPECT_EQ(operation.at.size(), 12u);
            for (const float* p : operation.at)
                EXPECT_EQ(inside(p), asks && source == there.get());
            results.push_back(std::move(sink.cube));
        }
    for (const Cube& result : results)
        EXPECT_TRUE(identical(result, results.front()));
    EXPECT_EQ(results.front().at(1, 29, 39), 2 * scene.at(1, 29, 39));
}

/// A scene, an output and an operation "on device 3", all of them in this process's memory.
class DeviceSource final : public stream::CubeSource {
  public:
    explicit DeviceSource(const Cube& cube) : m_cube(cube) {}
    stream::CubeShape shape() const override { return m_cube.shape; }
    stream::BlockLayout layout() const override { return {}; }
    int device() const override { return 3; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this);
    }
    mutable std::atomic<int> reads{0};

  private:
    struct Reader final : stream::CubeReader {
        explicit Reader(const DeviceSource& s) : source(s) {}
        void read(const Rect& r, const CubeView<float>& dst) override {
            ++source.reads;
            const auto from = source.view(r);
            for (int b = 0; b < dst.bands; ++b)
                for (int64_t l = 0; l < r.h; ++l)
                    std::copy_n(from.row(b, l), r.w, dst.row(b, l));
        }
        std::optional<CubeView<float>> view_on(int device, const Rect& r) override {
            return device == 3 ? std::optional(source.view(r)) : std::nullopt;
        }
        const DeviceSource& source;
    };
    CubeView<float> view(const Rect& r) const {
        return const_cast<Cube&>(m_cube).view().cut(r.x, r.y, r.w, r.h);
    }
    const Cube& m_cube;
};

class DeviceSink final : public stream::CubeSink {
  public:
    explicit DeviceSink(const stream::CubeShape& s) : cube(s.samples, s.lines, s.bands, -12345.0f) {}
    stream::CubeShape shape() const override { return cube.shape; }
    bool concurrent() const override { return true; }
    std::optional<CubeView<float>> place_on(int device, const Rect& r) override {
        if (device != 3) return std::nullopt;
        return cube.view().cut(r.x, r.y, r.w, r.h);
    }
    void write(const Rect& r, const CubeView<float>& src) override {
        ++writes;
        for (int b = 0; b < src.bands; ++b)
            for (int64_t l = 0; l < r.h; ++l)
                std::copy_n(src.row(b, l), r.w, cube.view().row(b, r.y + l) + r.x);
    }
    Cube cube;
    std::atomic<int> writes{0};
};

class OnDevice final : public stream::Operation {
  public:
    OnDevice(int takes, int puts, uint64_t bytes) : m_takes(takes), m_puts(puts), m_bytes(bytes) {}
    int64_t halo() const override { return 1; }
    std::vector<int> output_bands() const override { return {2, 1}; }
    int takes_from() const override { return m_takes; }
    int puts_on() const override { return m_puts; }
    uint64_t device_bytes(const stream::TileLimits& l) const override {
        return m_bytes * static_cast<uint64_t>(l.window_samples * l.window_lines);
    }
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override {
        return m_inner.start(lane, limits);
    }

  private:
    Neighbours m_inner{2};
    const int m_takes, m_puts;
    const uint64_t m_bytes;
};

TEST(Pipeline, TakesAndPutsTilesWhereTheyLieOnADevice) {
    const Cube scene = random_scene(50, 40, 2);
    const auto run = [&](std::array<int, 3> how, const stream::PassOptions& options, int reads, int writes) {
        OnDevice operation(how[0], how[1], static_cast<uint64_t>(how[2]));
        const DeviceSource source(scene);
        DeviceSink a({50, 40, 2}), b({50, 40, 1});
        const auto report = stream::run_pass(source, operation, {&a, &b}, options);
        EXPECT_EQ(source.reads > 0, reads > 0);
        EXPECT_EQ(a.writes + b.writes > 0, writes > 0);
        return std::pair(report, a.cube);
    };
    stream::PassOptions o;
    o.name = "test";
    o.lanes = 4;
    o.device_memory = 1 << 20;
    // A scene that fits is one tile, otherwise several; -tile is respected.
    const auto [whole, expected] = run({3, 3, 8}, o, 0, 0);
    EXPECT_EQ(whole.tiles, 1);
    EXPECT_FLOAT_EQ(expected.at(1, 39, 49), [&] {
        return scene.at(1, 39, 49) + scene.at(0, 38, 48) + scene.at(0, 38, 49) + scene.at(0, 39, 48) +
               scene.at(0, 39, 49);
    }());
    const auto [small, in_parts] = run({3, 3, 1000}, o, 0, 0);
    EXPECT_GT(small.tiles, 1);
    EXPECT_TRUE(identical(expected, in_parts));
    auto forced = o;
    forced.tile_samples = 16;
    forced.tile_lines = 8;
    const auto [tiled, in_tiles] = run({3, 3, 8}, forced, 0, 0);
    EXPECT_EQ(tiled.tiles, 4 * 5);
    EXPECT_TRUE(identical(expected, in_tiles));
    // If an operation does not read or write there, data pass through host memory, as for any other device.
    EXPECT_TRUE(identical(expected, run({3, -1, 8}, o, 0, 1).second));
    EXPECT_TRUE(identical(expected, run({-1, 3, 8}, o, 1, 0).second));
    EXPECT_TRUE(identical(expected, run({2, 2, 8}, o, 1, 1).second));
}

TEST(Pipeline, TellsAnOperationItsTilesWithoutReadingFromAnEmptySource) {
    class Fill final : public stream::Operation {
        std::vector<int> output_bands() const override { return {1}; }
        std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
            struct Work final : stream::Worker {
                void process(const Tile& tile, const CubeView<float>& in,
                             const std::vector<CubeView<float>>& out) override {
                    EXPECT_EQ(in.bands, 0);
                    EXPECT_EQ(in.lines, tile.window.h);
                    EXPECT_EQ(in.samples, tile.window.w);
                    for (int64_t l = 0; l < tile.core.h; ++l)
                        std::fill_n(out[0].row(0, l), tile.core.w, static_cast<float>(tile.core.y + l));
                }
            };
            return std::make_unique<Work>();
        }
    } fill;
    MemorySink lines(40, 30, 1);
    const auto report = stream::run_pass(stream::EmptySource({40, 30, 7}), fill, {&lines}, tiles(16, 8, 3));
    EXPECT_EQ(report.bytes_read, 0u);
    for (int64_t l = 0; l < 30; ++l)
        EXPECT_EQ(lines.cube.at(0, l, 39), static_cast<float>(l));
}

TEST(ResidentSource, ReadsTheFileOnceAndGivesTheSameTiles) {
    const Cube scene = random_scene(70, 50, 3);
    auto behind = std::make_shared<MemorySource>(scene);
    std::atomic<int64_t> read{0};
    behind->on_read = [&](const Rect& r) { read += r.area(); };
    stream::ResidentSource kept(behind);
    EXPECT_THROW(kept.seal(), Error);
    stream::StatisticsScan scan(kept.shape(), stream::Statistics::means);
    stream::run_pass(kept, scan, {}, tiles(128, 16, 2));
    kept.seal();
    Neighbours direct(3), again(3);
    MemorySink a(70, 50, 3), b(70, 50, 1), c(70, 50, 3), d(70, 50, 1);
    const auto report = stream::run_pass(kept, again, {&a, &b}, tiles(17, 9, 2));
    EXPECT_EQ(read, 70 * 50);
    EXPECT_EQ(report.bytes_read, 0u);
    const MemorySource plain(scene);
    stream::run_pass(plain, direct, {&c, &d}, tiles(70, 50, 1));
    EXPECT_TRUE(identical(a.cube, c.cube));
}

TEST(BandMeans, AgreesWithAPlainSumAndCountsInvalidPixels) {
    Cube scene = random_scene(300, 70, 5, 3, 0.1, 1000.0);
    make_invalid(scene, 3, 4, 2);
    make_invalid(scene, 69, 299, 0, -std::numeric_limits<float>::infinity());
    make_invalid(scene, 50, 130, 1, 3e38f); // large but valid
    make_invalid(scene, 50, 130, 2, 3e38f);
    for (int b = 0; b < 5; ++b)
        make_invalid(scene, 40, 200, b, 0.0f);
    std::vector<long double> sum(5);
    for (int b = 0; b < 5; ++b)
        for (int64_t l = 0; l < 70; ++l)
            for (int64_t s = 0; s < 300; ++s)
                if (!(l == 3 && s == 4) && !(l == 69 && s == 299))
                    sum[static_cast<size_t>(b)] += scene.at(b, l, s);
    const MemorySource source(scene);
    std::vector<double> first;
    for (const auto& o : {tiles(300, 70, 1), tiles(128, 16, 2), tiles(1, 1, 3), tiles(256, 32, 2)}) {
        stream::StatisticsScan scan(scene.shape, stream::Statistics::means);
        stream::run_pass(source, scan, {}, o);
        const auto r = scan.result();
        EXPECT_EQ(r.valid_pixels, 300 * 70 - 3);
        EXPECT_EQ(r.invalid_pixels, 3);
        EXPECT_EQ(r.finite[2], 300 * 70 - 1);
        EXPECT_EQ(r.finite[4], 300 * 70);
        for (size_t b = 0; b < 5; ++b) {
            const double want = static_cast<double>(sum[b]) / (300 * 70 - 3);
            EXPECT_NEAR(r.mean[b], want, 1e-12 * std::fabs(want));
        }
        if (first.empty()) first = r.mean;
        EXPECT_EQ(r.mean, first);
    }
}

TEST(BandMeans, NamesBandsWithoutAnyValue) {
    Cube scene = random_scene(20, 20, 4);
    for (int64_t l = 0; l < 20; ++l)
        for (int64_t s = 0; s < 20; ++s)
            make_invalid(scene, l, s, 2);
    const MemorySource source(scene);
    stream::StatisticsScan scan(scene.shape, stream::Statistics::means);
    stream::run_pass(source, scan, {}, tiles(20, 16, 1));
    EXPECT_EQ(scan.result().empty_bands(), (std::vector<int>{2}));
    EXPECT_EQ(scan.result().valid_pixels, 0);
}

} // namespace
} // namespace hsi::test
