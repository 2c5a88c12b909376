// SPDX-License-Identifier: MIT
#include "stream/computed_source.h"

#include "core/error.h"
#include "pca/pca.h"
#include "spp/spp.h"
#include "stream/copy_operation.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

namespace hsi::test {
namespace {

constexpr int bands = 9;

std::shared_ptr<stream::Operation> displacement(int window) {
    std::vector<double> centroid(bands);
    std::iota(centroid.begin(), centroid.end(), 0.25);
    spp::Options options;
    options.window = window;
    return spp::make_displacement(options, centroid);
}

std::shared_ptr<stream::Operation> projection(int inputs, int outputs) {
    pca::Transform t;
    t.inputs = inputs;
    t.outputs = outputs;
    for (int i = 0; i < inputs * outputs; ++i)
        t.matrix.push_back(0.01 * ((i * 7) % 23) - 0.1);
    t.offset.assign(static_cast<size_t>(outputs), 0.5);
    return pca::make_transform(t);
}

stream::PassOptions pass(int64_t samples, int64_t lines, int lanes, uint64_t memory = uint64_t{1} << 30) {
    stream::PassOptions options;
    options.name = "test";
    options.tile_samples = samples;
    options.tile_lines = lines;
    options.lanes = lanes;
    options.memory = memory;
    return options;
}

/// Returns the result of a pass, in tiles of any size.
Cube stored(const stream::CubeSource& source, stream::Operation& operation,
            const stream::PassOptions& options) {
    MemorySink sink(source.shape().samples, source.shape().lines, operation.output_bands().front());
    stream::run_pass(source, operation, {&sink}, options);
    return std::move(sink.cube);
}

Cube scene() {
    Cube cube = random_scene(83, 61, bands);
    make_invalid(cube, 0, 0, 3);
    make_invalid(cube, 30, 40, 0);
    for (int b = 0; b < bands; ++b)
        cube.at(b, 59, 82) = 0;
    return cube;
}

/// Returns a pointer that does not own the source.
std::shared_ptr<const stream::CubeSource> share(const stream::CubeSource& source) {
    return {std::shared_ptr<void>(), &source};
}

TEST(ComputedSource, GivesTheBitsOfCubesThatWereStored) {
    const Cube cube = scene();
    const MemorySource source(cube);
    const auto whole = pass(83, 61, 1);
    const Cube first = stored(source, *displacement(5), whole);
    const MemorySource after_first(first);
    const Cube second = stored(after_first, *displacement(7), whole);
    const MemorySource after_second(second);
    const Cube third = stored(after_second, *projection(bands, 4), whole);

    const auto one = std::make_shared<stream::ComputedSource>(share(source), displacement(5));
    const auto two = std::make_shared<stream::ComputedSource>(one, displacement(7));
    const auto three = std::make_shared<stream::ComputedSource>(two, projection(bands, 4));
    EXPECT_EQ(three->shape().bands, 4);
    for (const auto& [w, h] :
         std::vector<std::pair<int64_t, int64_t>>{{83, 61}, {1, 1}, {7, 5}, {83, 2}, {16, 61}})
        for (const int lanes : {1, 3}) {
            stream::CopyOperation copy(bands, false), components(4, false);
            EXPECT_TRUE(identical(stored(*two, copy, pass(w, h, lanes)), second)) << w << "x" << h;
            EXPECT_TRUE(identical(stored(*three, components, pass(w, h, lanes)), third)) << w << "x" << h;
        }
}

stream::LinkWork displacement_with_numbers(int window) {
    std::vector<double> centroid(bands);
    std::iota(centroid.begin(), centroid.end(), 0.25);
    stream::LinkWork work(displacement(window));
    work.finding = spp::make_finding_displacement(window, centroid);
    work.repeating = spp::make_repeated_displacement(centroid);
    return work;
}

/// Results from a pixel's surroundings are kept: the next pass reads each pixel once, and computes the same
/// bits.
TEST(ComputedSource, LooksAroundAPixelOnce) {
    const Cube cube = scene();
    MemorySource source(cube);
    const Cube expected = stored(source, *displacement(7), pass(83, 61, 1));
    for (const int lanes : {1, 3}) {
        stream::ComputedSource computed(share(source), displacement_with_numbers(7));
        EXPECT_EQ(computed.take_memory(1000, ""), 0u); // a plane needs more memory
        EXPECT_EQ(computed.kept(), nullptr);
        EXPECT_EQ(computed.take_memory(1 << 20, ""), 83u * 61u * sizeof(float));
        EXPECT_STREQ(computed.kept(), "numbers");
        stream::CopyOperation copy(bands, false);
        EXPECT_TRUE(identical(stored(computed, copy, pass(83, 10, lanes)), expected));
        for (const auto& [w, h] : std::vector<std::pair<int64_t, int64_t>>{{83, 61}, {7, 5}, {83, 2}}) {
            std::atomic<int64_t> pixels{0};
            source.on_read = [&](const Rect& window) { pixels += window.area(); };
            EXPECT_TRUE(identical(stored(computed, copy, pass(w, h, lanes)), expected)) << w << "x" << h;
            EXPECT_EQ(pixels.load(), 83 * 61);
            source.on_read = nullptr;
        }
    }
}

/// Parts of lines are computed but not kept. If some lines are kept, samples outside them are computed.
TEST(ComputedSource, GivesTheSameWhereSomeLinesAreThere) {
    const Cube cube = scene();
    const MemorySource source(cube);
    const Cube expected = stored(source, *displacement(5), pass(83, 61, 1));
    stream::ComputedSource computed(share(source), displacement_with_numbers(5));
    computed.take_memory(1 << 20, "");
    stream::CopyOperation copy(bands, false);
    EXPECT_TRUE(identical(stored(computed, copy, pass(20, 20, 2)), expected));
    const auto reader = computed.open_reader();
    Cube part(83, 9, bands);
    reader->read({0, 11, 83, 9}, part.view());
    EXPECT_TRUE(identical(stored(computed, copy, pass(83, 7, 2)), expected));
}

/// With a store in memory or in a file, the second of two sources computes nothing.
TEST(ComputedSource, LeavesValuesForTheNext) {
    const Cube cube = scene();
    MemorySource source(cube);
    const Cube expected = stored(source, *projection(bands, 4), pass(83, 61, 1));
    for (const bool file : {false, true}) {
        const auto store = std::make_shared<stream::LinkStore>();
        const auto open = [&] {
            stream::LinkWork work(projection(bands, 4));
            work.dear = true;
            auto made = std::make_shared<stream::ComputedSource>(share(source), work, 0, store);
            EXPECT_EQ(made->take_memory(file ? 10 : 1 << 20, ::testing::TempDir()),
                      file ? 0 : 83u * 61u * 4 * sizeof(float));
            EXPECT_STREQ(made->kept(), file ? "file" : "memory");
            return made;
        };
        stream::CopyOperation copy(4, false);
        EXPECT_TRUE(identical(stored(*open(), copy, pass(83, 8, 2)), expected));
        source.on_read = [&](const Rect&) { ADD_FAILURE() << "it was read again"; };
        EXPECT_TRUE(identical(stored(*open(), copy, pass(83, 8, 2)), expected));
        EXPECT_TRUE(identical(stored(*open(), copy, pass(30, 20, 2)), expected));
        source.on_read = nullptr;
    }
}

/// If the disk is full, nothing more is kept, and results are still right.
TEST(ComputedSource, GivesTheSameWhenTheDiskIsFull) {
    const Cube cube = scene();
    MemorySource source(cube);
    const Cube expected = stored(source, *projection(bands, 4), pass(83, 61, 1));
    const auto store = std::make_shared<stream::LinkStore>();
    const auto open = [&] {
        stream::LinkWork work(projection(bands, 4));
        work.dear = true;
        auto made = std::make_shared<stream::ComputedSource>(share(source), work, 0, store);
        made->take_memory(10, ::testing::TempDir());
        EXPECT_STREQ(made->kept(), "file");
        return made;
    };
    struct rlimit before {};
    ::getrlimit(RLIMIT_FSIZE, &before);
    auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit less = before;
    less.rlim_cur = 20 * 83 * 4 * sizeof(float); // a third of the lines
    ::setrlimit(RLIMIT_FSIZE, &less);
    stream::CopyOperation copy(4, false);
    const Cube first = stored(*open(), copy, pass(83, 8, 2));
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    EXPECT_TRUE(identical(first, expected));
    std::atomic<int64_t> pixels{0};
    source.on_read = [&](const Rect& window) { pixels += window.area(); };
    EXPECT_TRUE(identical(stored(*open(), copy, pass(83, 8, 2)), expected));
    EXPECT_GE(pixels.load(), 40 * 83);
    EXPECT_LT(pixels.load(), 61 * 83);
}

/// Checks halos of links together with the halo of an operation.
TEST(ComputedSource, AddsUpHalos) {
    const Cube cube = scene();
    MemorySource source(cube);
    const auto one = std::make_shared<stream::ComputedSource>(share(source), displacement(5));
    std::vector<Rect> windows;
    source.on_read = [&](const Rect& window) { windows.push_back(window); };
    auto chained = displacement(9);
    MemorySink sink(83, 61, bands);
    stream::run_pass(*one, *chained, {&sink}, pass(20, 20, 1));
    // The tile at (20, 20) needs 4 pixels for the operation and 2 for the link.
    EXPECT_TRUE(std::any_of(windows.begin(), windows.end(), [](const Rect& w) {
        return w == Rect{14, 14, 32, 32};
    }));
}

TEST(ComputedSource, IsReadOnceWhereItHasNoHalo) {
    const Cube cube = random_scene(70, 50, bands);
    MemorySource source(cube);
    int64_t pixels = 0;
    source.on_read = [&](const Rect& window) { pixels += window.area(); };
    const auto computed = std::make_shared<stream::ComputedSource>(share(source), projection(bands, bands));
    const stream::ComputedSource twice(computed, projection(bands, 3));
    stream::CopyOperation copy(3, false);
    stored(twice, copy, pass(70, 20, 1));
    EXPECT_EQ(pixels, 70 * 50);
}

TEST(ComputedSource, CountsItsMemoryInThePlan) {
    const Cube cube = random_scene(200, 300, bands);
    MemorySource source(cube);
    const auto chain = std::make_shared<stream::ComputedSource>(
        std::make_shared<stream::ComputedSource>(share(source), displacement(5)), displacement(7));
    // The window of the outer link, and the larger window of the inner link.
    EXPECT_GE(chain->window_bytes(40, 40), (46 * 46 + 50 * 50) * bands * sizeof(float));
    stream::CopyOperation copy(bands, false);
    auto options = pass(0, 0, 2, 600 << 10);
    const auto plan = stream::plan_pass(*chain, copy, options);
    EXPECT_LE(stream::plan_bytes(*chain, copy, plan), uint64_t{600} << 10);
    options.memory = 20 << 10;
    EXPECT_THROW(stream::plan_pass(*chain, copy, options), Error);
}

TEST(ComputedSource, FillsViewsOfAnyStride) {
    const Cube cube = scene();
    const MemorySource source(cube);
    const stream::ComputedSource computed(share(source), projection(bands, 2));
    Cube large(20, 20, 2, 7), packed(6, 4, 2);
    const auto reader = computed.open_reader();
    reader->read({10, 12, 6, 4}, large.view().cut(3, 5, 6, 4));
    reader->read({10, 12, 6, 4}, packed.view());
    for (int b = 0; b < 2; ++b)
        for (int64_t y = 0; y < 4; ++y)
            for (int64_t x = 0; x < 6; ++x)
                EXPECT_EQ(large.at(b, 5 + y, 3 + x), packed.at(b, y, x));
    EXPECT_EQ(large.at(0, 5, 2), 7);
    EXPECT_EQ(large.at(1, 9, 3), 7);
}

/// Memory "of device 3" in this process. It records the addresses of its blocks.
class DeviceMemory final : public HostAllocator {
  public:
    void* allocate(size_t bytes) override {
        void* const block = paged_allocator()->allocate(bytes);
        const std::lock_guard lock(m_mutex);
        m_blocks[static_cast<const char*>(block)] = bytes;
        return block;
    }
    void release(void* block, size_t bytes) noexcept override {
        {
            const std::lock_guard lock(m_mutex);
            m_blocks.erase(static_cast<const char*>(block));
        }
        paged_allocator()->release(block, bytes);
    }
    bool holds(const float* at) {
        const auto* const byte = reinterpret_cast<const char*>(at);
        const std::lock_guard lock(m_mutex);
        auto next = m_blocks.upper_bound(byte);
        return next != m_blocks.begin() && byte < std::prev(next)->first + std::prev(next)->second;
    }

  private:
    std::mutex m_mutex;
    std::map<const char*, size_t> m_blocks;
};

/// Runs an operation on device 3, and records where it found its tiles.
class OnDevice final : public stream::Operation {
  public:
    OnDevice(std::shared_ptr<stream::Operation> inner, std::shared_ptr<DeviceMemory> memory)
        : m_inner(std::move(inner)), m_memory(std::move(memory)) {}
    int64_t halo() const override { return m_inner->halo(); }
    std::vector<int> output_bands() const override { return m_inner->output_bands(); }
    uint64_t device_bytes(const stream::TileLimits& l) const override {
        return static_cast<uint64_t>(100 * l.window_samples * l.window_lines);
    }
    int takes_from() const override { return 3; }
    int puts_on() const override { return 3; }
    std::shared_ptr<HostAllocator> device_allocator() const override { return m_memory; }
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override {
        return std::make_unique<Work>(*this, m_inner->start(lane, limits));
    }
    std::atomic<int> there{0}, elsewhere{0};

  private:
    struct Work final : stream::Worker {
        Work(OnDevice& o, std::unique_ptr<stream::Worker> w) : owner(o), inner(std::move(w)) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            ++(owner.m_memory->holds(in.data) ? owner.there : owner.elsewhere);
            inner->process(tile, in, out);
        }
        OnDevice& owner;
        std::unique_ptr<stream::Worker> inner;
    };
    const std::shared_ptr<stream::Operation> m_inner;
    const std::shared_ptr<DeviceMemory> m_memory;
};

/// With links on one device, a tile is copied there once. Each link, and the pass, reads the tile where the
/// previous link wrote it.
TEST(ComputedSource, LinksOfADeviceHandTilesOverThere) {
    const Cube cube = scene();
    const MemorySource source(cube);
    const auto whole = pass(83, 61, 1);
    const Cube first = stored(source, *displacement(5), whole);
    const MemorySource after_first(first);
    const Cube second = stored(after_first, *displacement(7), whole);
    const MemorySource after_second(second);
    const Cube third = stored(after_second, *projection(bands, 4), whole);

    const auto memory = std::make_shared<DeviceMemory>();
    std::vector<std::shared_ptr<OnDevice>> made;
    const auto link = [&](stream::LinkWork work) {
        work.on_devices = [&made, memory, operation = work.operation](const std::vector<CudaDevice>&) {
            return made.emplace_back(std::make_shared<OnDevice>(operation, memory));
        };
        return work;
    };
    const auto one =
        std::make_shared<stream::ComputedSource>(share(source), link(displacement_with_numbers(5)));
    const auto two = std::make_shared<stream::ComputedSource>(one, link(displacement(7)));
    one->take_memory(1 << 20, "");
    EXPECT_STREQ(one->kept(), "numbers");
    EXPECT_EQ(two->computes_on(), -1);
    EXPECT_TRUE(one->compute_on({}) && two->compute_on({}));
    EXPECT_EQ(one->kept(), nullptr);
    EXPECT_EQ(two->computes_on(), 3);
    for (const int lanes : {1, 3}) {
        OnDevice last(projection(bands, 4), memory);
        EXPECT_TRUE(identical(stored(*two, last, pass(30, 17, lanes)), third));
        EXPECT_GT(last.there, 0);
        EXPECT_EQ(last.elsewhere, 0);
        stream::CopyOperation copy(bands, false); // it reads host memory
        EXPECT_TRUE(identical(stored(*two, copy, pass(30, 17, lanes)), second));
    }
    EXPECT_EQ(made[0]->there, 0);
    EXPECT_GT(made[0]->elsewhere, 0);
    EXPECT_GT(made[1]->there, 0);
    EXPECT_EQ(made[1]->elsewhere, 0);

    // The plan includes their memory there: 100 bytes per pixel for each link, and their results.
    OnDevice last(projection(bands, 4), memory);
    auto options = pass(0, 0, 1);
    options.device_memory = 200000;
    const auto plan = stream::plan_pass(*two, last, options);
    EXPECT_LE(stream::plan_device_bytes(*two, last, plan), 200000u);
    EXPECT_GE(two->device_bytes(10, 10), uint64_t{100} * (16 * 16 + 20 * 20) + 4 * bands * (100 + 16 * 16));
}

/// Values for other readers are kept in host memory, and read from there.
TEST(ComputedSource, KeepsWhatADeviceHasComputed) {
    const Cube cube = scene();
    MemorySource source(cube);
    const Cube expected = stored(source, *projection(bands, 4), pass(83, 61, 1));
    const auto memory = std::make_shared<DeviceMemory>();
    const auto store = std::make_shared<stream::LinkStore>();
    const auto open = [&] {
        stream::LinkWork work(projection(bands, 4));
        work.on_devices = [memory, operation = work.operation](const std::vector<CudaDevice>&) {
            return std::make_shared<OnDevice>(operation, memory);
        };
        auto made = std::make_shared<stream::ComputedSource>(share(source), work, 0, store);
        made->take_memory(1 << 20, "");
        EXPECT_TRUE(made->compute_on({}));
        EXPECT_EQ(made->computes_on(), -1);
        return made;
    };
    OnDevice copy(std::make_shared<stream::CopyOperation>(4, false), memory);
    EXPECT_TRUE(identical(stored(*open(), copy, pass(83, 8, 2)), expected));
    source.on_read = [&](const Rect&) { ADD_FAILURE() << "it was read again"; };
    EXPECT_TRUE(identical(stored(*open(), copy, pass(83, 8, 2)), expected));
}

TEST(ComputedSource, RefusesScans) {
    const Cube cube = random_scene(20, 20, bands);
    const MemorySource source(cube);
    EXPECT_THROW(stream::ComputedSource(share(source), displacement(5), 1), Error);
}

} // namespace
} // namespace hsi::test
