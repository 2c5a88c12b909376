// SPDX-License-Identifier: MIT
// The plugin's code in a program that sanitizers can check: arguments, slices, nodata, and errors, which must
// all be GDAL errors that name the function. cli/test_pixel_functions.py tests what other programs read
// through the plugin.
#include "core/error.h"
#include "gdal/apply.h"
#include "gdal/arguments.h"
#include "gdal/lanes.h"
#include "gdal/plugin.h"
#include "gdal/processed.h"
#include "raster/text_input.h"
#include "support/raster_fixtures.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>

namespace hsi::plugin {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

CPLStringList list_of(const std::vector<std::pair<std::string, std::string>>& items) {
    CPLStringList list;
    for (const auto& [key, value] : items)
        list.AddNameValue(key.c_str(), value.c_str());
    return list;
}

template <class Call>
std::string complaint(const Call& call) {
    try {
        call();
    } catch (const Error& e) {
        return e.what();
    }
    return "nothing was thrown";
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- Arguments -------------------------------------------------------------------------------------------

TEST(Arguments, ReadsNumbers) {
    const auto list = list_of({{"w", " 1.5,2\t-3e2\n 4 "}, {"n", "7"}, {"l", "1 2; 3,4 ;;5"}});
    const Arguments a("f", list.List(), {});
    EXPECT_EQ(a.numbers("w"), (std::vector<double>{1.5, 2, -300, 4}));
    EXPECT_EQ(a.number("n"), 7);
    EXPECT_EQ(a.number("absent", 3.0), 3);
    EXPECT_EQ(a.whole("n", 0, 7), 7);
    EXPECT_EQ(a.lists("l"), (std::vector<std::vector<double>>{{1, 2}, {3, 4}, {5}}));
}

TEST(Arguments, NamesWhatIsWrong) {
    const auto list = list_of({{"empty", ""},
                               {"gap", " , ; "},
                               {"word", "1 two 3"},
                               {"tail", "1 2x"},
                               {"large", "1e999"},
                               {"nan", "1 nan"},
                               {"half", "2.5"},
                               {"two", "1 2"},
                               {"colour", "red"},
                               {"long", std::string(5000, 'y')}});
    const Arguments a("f", list.List(), {});
    EXPECT_TRUE(holds(complaint([&] { a.text("absent"); }), "'absent' is missing"));
    EXPECT_TRUE(holds(complaint([&] { a.text("empty"); }), "'empty' is missing"));
    EXPECT_TRUE(holds(complaint([&] { a.numbers("gap"); }), "'gap'"));
    EXPECT_TRUE(holds(complaint([&] { a.numbers("word"); }), "'two 3' is not a number"));
    EXPECT_TRUE(holds(complaint([&] { a.numbers("tail"); }), "not a number"));
    EXPECT_TRUE(holds(complaint([&] { a.numbers("large"); }), "value 1 is not finite"));
    EXPECT_TRUE(holds(complaint([&] { a.numbers("nan"); }), "value 2 is not finite"));
    EXPECT_TRUE(holds(complaint([&] { a.number("two"); }), "one number, not 2"));
    EXPECT_TRUE(holds(complaint([&] { a.whole("half", 0, 9); }), "2.5 is not a whole number from 0 to 9"));
    EXPECT_TRUE(holds(complaint([&] { a.whole("two", 0, 9); }), "'two'"));
    EXPECT_TRUE(holds(complaint([&] { a.yes("colour", true); }), "is not yes or no"));
    EXPECT_TRUE(holds(complaint([&] { a.choice("colour", {"blue", "green"}); }), "not one of blue, green"));
    EXPECT_LT(complaint([&] { a.numbers("long"); }).size(), 200u);
}

TEST(Arguments, RefusesWhatNobodyAskedFor) {
    const auto list = list_of({{"known", "1"}, {"unknown", "2"}});
    const Arguments a("f", list.List(), {});
    EXPECT_TRUE(a.has("KNOWN"));
    EXPECT_TRUE(holds(complaint([&] { a.refuse_others(); }), "'unknown'"));
    EXPECT_FALSE(a.has("other"));
    EXPECT_EQ(a.number("unknown"), 2);
    EXPECT_NO_THROW(a.refuse_others());
    const CPLStringList bare(CSLAddString(nullptr, "no equals sign"));
    EXPECT_THROW(Arguments("f", bare.List(), {}).refuse_others(), Error);
    EXPECT_NO_THROW(Arguments("f", nullptr, {}).refuse_others());
}

TEST(Arguments, FindsFiles) {
    const auto list = list_of({{"a", "x.json"}, {"b", "/abs/y.json"}});
    const Arguments inside("f", list.List(), "/folder");
    EXPECT_EQ(inside.path("a"), "/folder/x.json");
    EXPECT_EQ(inside.path("b"), "/abs/y.json");
    EXPECT_EQ(inside.files(), (std::vector<std::string>{"/folder/x.json", "/abs/y.json"}));
    const CPLConfigOptionSetter setter("GDAL_HSI_PATH", "/models", false);
    EXPECT_EQ(Arguments("f", list.List(), {}).path("a"), "/models/x.json");
    EXPECT_TRUE(
        holds(complaint([] { raster::read_file("/vsimem/absent", largest_file::model); }), "/vsimem/absent"));
}

// ---- Slices
// ------------------------------------------------------------------------------------------------

/// Counts its allocations.
class CountingAllocator final : public HostAllocator {
  public:
    void* allocate(size_t bytes) override {
        const size_t now = held += bytes;
        size_t before = most;
        while (before < now && !most.compare_exchange_weak(before, now))
            ;
        return ::operator new(bytes, std::align_val_t(64));
    }
    void release(void* p, size_t bytes) noexcept override {
        held -= bytes;
        ::operator delete(p, std::align_val_t(64));
    }
    std::atomic<size_t> held{0}, most{0};
};

/// Computes the sum of the bands, and a second output with each band twice. Throws at a pixel of -1.
class SumOperation final : public stream::Operation {
  public:
    explicit SumOperation(int bands) : m_bands(bands) {}
    std::vector<int> output_bands() const override { return {1, m_bands}; }
    std::shared_ptr<HostAllocator> allocator() const override { return memory; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        largest = std::max(largest.load(), limits.window_samples * limits.window_lines);
        return std::make_unique<SumWorker>(*this);
    }
    std::shared_ptr<CountingAllocator> memory = std::make_shared<CountingAllocator>();
    std::atomic<int64_t> largest{0}, slices{0};

  private:
    class SumWorker final : public stream::Worker {
      public:
        explicit SumWorker(SumOperation& parent) : m_parent(parent) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            ++m_parent.slices;
            EXPECT_EQ(tile.core.w, in.samples);
            EXPECT_EQ(in.lines, 1);
            EXPECT_EQ(in.band_stride, in.samples); // backends copy a tile in one piece
            EXPECT_EQ(out[1].band_stride, in.samples);
            for (int64_t i = 0; i < in.samples; ++i) {
                float sum = 0;
                for (int b = 0; b < in.bands; ++b) {
                    sum += in.row(b, 0)[i];
                    out[1].row(b, 0)[i] = 2 * in.row(b, 0)[i];
                }
                if (sum == -1) throw Error("the test asked for this");
                out[0].row(0, 0)[i] = sum;
            }
        }

      private:
        SumOperation& m_parent;
    };
    const int m_bands;
};

std::pair<std::shared_ptr<Function>, std::shared_ptr<SumOperation>> sum_function(int bands) {
    auto operation = std::make_shared<SumOperation>(bands);
    auto f = std::make_shared<Function>();
    f->operation = operation;
    f->bands = bands;
    f->nodata.assign(static_cast<size_t>(bands), std::nullopt);
    return {f, operation};
}

/// Sources of type T with a function of band b and pixel i.
template <class T>
struct Sources {
    std::vector<std::vector<T>> bands;
    std::vector<void*> pointers;
    Sources(int count, int64_t pixels, const std::function<T(int, int64_t)>& value) {
        for (int b = 0; b < count; ++b) {
            bands.emplace_back(static_cast<size_t>(pixels));
            for (int64_t i = 0; i < pixels; ++i)
                bands.back()[static_cast<size_t>(i)] = value(b, i);
        }
        for (auto& band : bands)
            pointers.push_back(band.data());
    }
};

template <class T, class Out>
void apply_to(const std::shared_ptr<const Function>& f, Sources<T>& sources, GDALDataType type, int width,
              int height, std::vector<Out>& out, GDALDataType out_type, int step = 1, int64_t line_gap = 0) {
    PixelBuffers b;
    b.sources = sources.pointers.data();
    b.source_type = type;
    b.width = width;
    b.height = height;
    b.out = out.data();
    b.out_type = out_type;
    b.pixel_space = static_cast<int>(sizeof(Out)) * step;
    b.line_space = static_cast<int64_t>(b.pixel_space) * width + line_gap * static_cast<int64_t>(sizeof(Out));
    plugin::apply(f, b);
}

TEST(Slices, BoundTheMemoryOfAnyRequest) {
    for (const int bands : {1, 7, 200, 3000}) {
        const auto [f, operation] = sum_function(bands);
        const int width = 997, height = bands == 3000 ? 2 : bands == 1 ? 300 : 23;
        Sources<float> in(bands, int64_t{width} * height,
                          [](int b, int64_t i) { return static_cast<float>((b * 31 + i) % 97); });
        std::vector<float> out(static_cast<size_t>(width) * static_cast<size_t>(height));
        apply_to(f, in, GDT_Float32, width, height, out, GDT_Float32);
        for (size_t i = 0; i < out.size(); ++i) {
            float sum = 0;
            for (const auto& band : in.bands)
                sum += band[i];
            ASSERT_EQ(out[i], sum) << "band count " << bands << ", pixel " << i;
        }
        // The input of a slice is 1 MB, or 512 pixels if that is larger; here the outputs are as large, plus
        // one band.
        const int64_t slice = slice_pixels(*f);
        EXPECT_LE(slice * bands * 4, std::max<int64_t>(int64_t{1} << 20, int64_t{512} * bands * 4));
        EXPECT_LE(operation->largest, slice);
        EXPECT_GE(operation->slices, (int64_t{width} * height + slice - 1) / slice);
        EXPECT_LE(operation->memory->most,
                  static_cast<size_t>(slice) * static_cast<size_t>(2 * bands + 1) * 4 + 4096);
    }
}

TEST(Slices, KeepNoMoreThanSomeMegabytesAfterwards) {
    std::vector<std::shared_ptr<SumOperation>> all;
    for (int k = 0; k < 60; ++k) {
        const auto [f, operation] = sum_function(64);
        all.push_back(operation);
        Sources<float> in(64, 6000, [](int, int64_t) { return 1.0f; });
        std::vector<float> out(6000);
        apply_to(f, in, GDT_Float32, 100, 60, out, GDT_Float32);
    }
    size_t held = 0;
    for (const auto& operation : all)
        held += operation->memory->held;
    EXPECT_LE(held, size_t{64} << 20);
    EXPECT_GT(held, 0u); // the last buffers are kept for the next call
}

TEST(Slices, HandTheirMemoryOnToOtherFunctions) {
    const auto memory = std::make_shared<CountingAllocator>();
    std::vector<float> out(6000);
    size_t after_first = 0;
    for (int k = 0; k < 40; ++k) { // as the bands of a VRT do
        const auto [f, operation] = sum_function(k % 2 ? 3 : 4);
        operation->memory = memory;
        Sources<float> in(4, 6000, [&](int b, int64_t i) { return static_cast<float>(b + k + i % 7); });
        apply_to(f, in, GDT_Float32, 100, 60, out, GDT_Float32);
        for (size_t i = 0; i < out.size(); ++i)
            ASSERT_EQ(out[i],
                      static_cast<float>(f->bands * (k + static_cast<int>(i) % 7) + (f->bands == 4 ? 6 : 3)));
        if (k == 0) after_first = memory->most;
    }
    EXPECT_EQ(memory->most, after_first);
}

TEST(Slices, WriteWherePixelsBelong) {
    const auto [f, operation] = sum_function(3);
    const int width = 613, height = 411; // several slices; none has whole lines
    Sources<float> in(3, int64_t{width} * height,
                      [](int b, int64_t i) { return static_cast<float>(b + i % 1000); });
    std::vector<double> out(static_cast<size_t>(height) * static_cast<size_t>(3 * width + 5), -7.0);
    apply_to(f, in, GDT_Float32, width, height, out, GDT_Float64, 3, 5);
    for (int y = 0; y < height; ++y)
        for (int i = 0; i < 3 * width + 5; ++i) {
            const int64_t pixel = int64_t{y} * width + i / 3;
            const double wanted =
                i % 3 == 0 && i < 3 * width ? 3.0 * static_cast<double>(pixel % 1000) + 3 : -7.0;
            ASSERT_EQ(
                out[static_cast<size_t>(y) * static_cast<size_t>(3 * width + 5) + static_cast<size_t>(i)],
                wanted)
                << y << " " << i;
        }
}

TEST(Slices, AreSharedAmongThreads) {
    const CPLConfigOptionSetter setter("GDAL_NUM_THREADS", "4", false);
    const auto [f, operation] = sum_function(2);
    f->pixel_cost = 1e5; // worth several threads
    const int width = 700, height = 400;
    Sources<float> in(2, int64_t{width} * height,
                      [](int b, int64_t i) { return static_cast<float>(b + i % 89); });
    std::vector<float> out(static_cast<size_t>(width * height));
    apply_to(f, in, GDT_Float32, width, height, out, GDT_Float32);
    for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], static_cast<float>(2 * (i % 89) + 1));
    in.bands[0][200000] = -1;
    in.bands[1][200000] = 0;
    EXPECT_EQ(complaint([&, &f = f] { apply_to(f, in, GDT_Float32, width, height, out, GDT_Float32); }),
              "the test asked for this");
}

TEST(Slices, AcceptManyCallersAtOnce) {
    const auto [f, operation] = sum_function(5);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t, f = f] {
            for (int round = 0; round < 20; ++round) {
                const int width = 50 + t, height = 10 + round;
                Sources<float> in(5, int64_t{width} * height,
                                  [&](int b, int64_t) { return static_cast<float>(b + t); });
                std::vector<float> out(static_cast<size_t>(width * height));
                apply_to(f, in, GDT_Float32, width, height, out, GDT_Float32);
                for (const float v : out)
                    wrong += v != static_cast<float>(10 + 5 * t);
            }
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
}

// ---- Promotion: a faster method takes over

TEST(Promotion, TakesOverWhenItsStartIsPaidFor) {
    const auto [f, operation] = sum_function(2);
    auto other = std::make_shared<SumOperation>(2);
    std::atomic<int> made{0};
    f->pixel_cost = 10;
    f->no_value = -8;
    f->nodata = {5.0, std::nullopt};
    f->promotion = std::make_shared<const Promotion>(25000, [&] {
        ++made;
        return other;
    });
    Sources<float> in(2, 1000, [](int b, int64_t i) { return static_cast<float>(b + i % 20); });
    std::vector<float> first(1000), out(1000);
    apply_to(f, in, GDT_Float32, 100, 10, first, GDT_Float32); // 10,000 operations
    apply_to(f, in, GDT_Float32, 100, 10, out, GDT_Float32);   // 20,000
    EXPECT_EQ(out, first);
    EXPECT_EQ(made, 0);
    EXPECT_EQ(operation->slices, 2);
    for (int k = 0; k < 3; ++k) {
        std::fill(out.begin(), out.end(), 0.0f);
        apply_to(f, in, GDT_Float32, 100, 10, out, GDT_Float32);
        EXPECT_EQ(out, first); // nodata and everything else is unchanged
    }
    EXPECT_EQ(made, 1);
    EXPECT_EQ(operation->slices, 2);
    EXPECT_EQ(other->slices, 3);
}

TEST(Promotion, TakesOverALargeRequestAtOnce) {
    const auto [f, operation] = sum_function(2);
    auto other = std::make_shared<SumOperation>(2);
    f->pixel_cost = 10;
    f->promotion = std::make_shared<const Promotion>(5000, [&] { return other; });
    Sources<float> in(2, 1000, [](int, int64_t) { return 1.0f; });
    std::vector<float> out(1000);
    apply_to(f, in, GDT_Float32, 100, 10, out, GDT_Float32);
    EXPECT_EQ(operation->slices, 0);
    EXPECT_EQ(other->slices, 1);
}

TEST(Promotion, IsDoneWithoutWhereItCannotStart) {
    const auto [f, operation] = sum_function(2);
    std::atomic<int> tried{0};
    f->pixel_cost = 10;
    f->promotion = std::make_shared<const Promotion>(1, [&]() -> std::shared_ptr<stream::Operation> {
        ++tried;
        throw Error("no GPU");
    });
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, f = f] {
            for (int k = 0; k < 20; ++k) {
                Sources<float> in(2, 1000, [](int, int64_t) { return 1.0f; });
                std::vector<float> out(1000);
                apply_to(f, in, GDT_Float32, 100, 10, out, GDT_Float32);
                wrong += out[999] != 2;
            }
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(tried, 1);
    EXPECT_EQ(wrong, 0);
}

// ---- Nodata and types
// --------------------------------------------------------------------------------------

TEST(Nodata, IsComparedInTheSourcesOwnType) {
    const auto [f, operation] = sum_function(2);
    f->nodata = {16777217.0, std::nullopt}; // no float equals 2^24 + 1
    f->no_value = -1;
    Sources<int32_t> whole(2, 3,
                           [](int b, int64_t i) { return b == 0 ? 16777216 + static_cast<int32_t>(i) : 1; });
    std::vector<double> out(3);
    apply_to(f, whole, GDT_Int32, 3, 1, out, GDT_Float64);
    EXPECT_GT(out[0], 1e7);
    EXPECT_EQ(out[1], -1);
    EXPECT_GT(out[2], 1e7);
    f->nodata = {0.1, std::nullopt};
    // GDAL's mask accepts values that are equal as floats, also for doubles.
    Sources<double> real(2, 2,
                         [](int b, int64_t i) { return b == 0 ? (i == 0 ? 0.1f : 0.1 * (1 + 1e-6)) : 1.0; });
    std::vector<float> result(2);
    apply_to(f, real, GDT_Float64, 2, 1, result, GDT_Float32);
    EXPECT_EQ(result[0], -1);
    EXPECT_GT(result[1], 1);
    Sources<float> single(2, 2, [](int b, int64_t i) { return b == 0 ? (i == 0 ? 0.1f : 0.2f) : 1.0f; });
    apply_to(f, single, GDT_Float32, 2, 1, result, GDT_Float32);
    EXPECT_EQ(result[0], -1);
    EXPECT_GT(result[1], 1);
}

TEST(Nodata, BecomesWhatWasAskedForInEveryType) {
    const auto [f, operation] = sum_function(2);
    f->nodata = {-99.0, -99.0};
    const auto value = [](int b, int64_t i) {
        return static_cast<float>(i == 1 ? (b == 0 ? -99 : 5) : 4 + i);
    };
    Sources<float> in(2, 3, value);
    f->no_value = 7;
    std::vector<uint8_t> bytes(3);
    apply_to(f, in, GDT_Float32, 3, 1, bytes, GDT_Byte);
    EXPECT_EQ(bytes, (std::vector<uint8_t>{8, 7, 12}));
    f->no_value = -32768;
    std::vector<int16_t> shorts(3);
    apply_to(f, in, GDT_Float32, 3, 1, shorts, GDT_Int16);
    EXPECT_EQ(shorts, (std::vector<int16_t>{8, -32768, 12}));
    f->no_value = nan_value;
    std::vector<float> floats(3);
    apply_to(f, in, GDT_Float32, 3, 1, floats, GDT_Float32);
    EXPECT_TRUE(std::isnan(floats[1]));
    EXPECT_EQ(floats[2], 12);
}

TEST(Nodata, MasksCountToo) {
    const auto [f, operation] = sum_function(2);
    f->masks = 1;
    f->no_value = -1;
    Sources<uint16_t> in(3, 4, [](int b, int64_t i) {
        return static_cast<uint16_t>(b < 2 ? 10 + i : i == 2 ? 0 : 255);
    });
    std::vector<float> out(4);
    apply_to(f, in, GDT_UInt16, 4, 1, out, GDT_Float32);
    EXPECT_EQ(out, (std::vector<float>{20, 22, -1, 26}));
}

/// Uses nodata of a type, and numbers that the type cannot hold, which never match.
template <class T>
void expect_type(GDALDataType type, double nodata) {
    const auto [f, operation] = sum_function(1);
    f->no_value = -1;
    for (const double nothing : {nodata, 3.5, -3e9, 1e12, nan_value}) {
        f->nodata = {nothing};
        Sources<T> in(1, 1500, [&](int, int64_t i) {
            return i % 7 == 0 ? static_cast<T>(nodata) : static_cast<T>(i % 100);
        });
        std::vector<double> out(1500);
        apply_to(f, in, type, 1500, 1, out, GDT_Float64);
        for (size_t i = 0; i < out.size(); ++i)
            ASSERT_EQ(out[i], nothing == nodata && static_cast<double>(in.bands[0][i]) == nodata
                                  ? -1
                                  : static_cast<double>(static_cast<float>(in.bands[0][i])))
                << GDALGetDataTypeName(type) << " " << nothing << " " << i;
    }
}

TEST(Types, AllAreConvertedAndCompared) {
    expect_type<uint8_t>(GDT_Byte, 255);
    expect_type<uint16_t>(GDT_UInt16, 65535);
    expect_type<int16_t>(GDT_Int16, -32768);
    expect_type<uint32_t>(GDT_UInt32, 4294967295.0);
    expect_type<int32_t>(GDT_Int32, -2147483648.0);
    expect_type<int64_t>(GDT_Int64, -9999);
    expect_type<uint64_t>(GDT_UInt64, 9999);
    expect_type<float>(GDT_Float32, -9999);
    expect_type<double>(GDT_Float64, -1e30);
}

TEST(Types, ComplexSourcesAreRefused) {
    const auto [f, operation] = sum_function(1);
    Sources<float> in(1, 8, [](int, int64_t) { return 1.0f; });
    std::vector<float> out(4);
    EXPECT_TRUE(
        holds(complaint([&, &f = f] { apply_to(f, in, GDT_CFloat32, 4, 1, out, GDT_Float32); }), "complex"));
}

TEST(Interleaved, BandsSideBySide) {
    const auto [f, operation] = sum_function(3);
    f->output = 1;
    f->band = -1;
    const int64_t pixels = 100003;
    std::vector<float> in(static_cast<size_t>(3 * pixels)), out(in.size());
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i % 1009);
    in[3 * 70000 + 1] = -5;
    const double in_nodata[] = {nan_value, -5, nan_value}, out_nodata[] = {-1, -2, -3};
    apply_interleaved(f, in.data(), pixels, in_nodata, out.data(), 3, out_nodata);
    for (size_t i = 0; i < in.size(); ++i)
        ASSERT_EQ(out[i], i == 3 * 70000 + 1 ? -2 : 2 * in[i]) << i;
    f->output = 0;
    f->band = 0;
    apply_interleaved(f, in.data(), pixels, nullptr, out.data(), 1, out_nodata);
    EXPECT_EQ(out[5], in[15] + in[16] + in[17]);
}

// ---- Errors: GDAL's, never exceptions
// ------------------------------------------------------------------------

struct Collected {
    CPLErr kind = CE_None;
    std::string text;
};

/// Calls a function and collects GDAL's errors.
template <class Call>
Collected collect(const Call& call) {
    CPLErrorReset();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    Collected c;
    c.kind = call();
    c.text = CPLGetLastErrorMsg();
    CPLPopErrorHandler();
    CPLErrorReset();
    return c;
}

TEST(Errors, WhateverIsThrownBecomesOneOfGdals) {
    const auto text = [](const std::function<void()>& body) {
        const auto c = collect([&] { return guarded("hsi_f", body); });
        EXPECT_EQ(c.kind, CE_Failure);
        return c.text;
    };
    EXPECT_EQ(text([] { throw Error("it is wrong", "Do this."); }), "hsi_f: it is wrong. Do this.");
    EXPECT_EQ(text([] { throw Error("it is wrong"); }), "hsi_f: it is wrong");
    EXPECT_EQ(text([] { throw std::bad_alloc(); }), "hsi_f: out of memory");
    EXPECT_EQ(text([] { throw std::runtime_error("100 % wrong: %s"); }), "hsi_f: 100 % wrong: %s");
    EXPECT_EQ(text([] { throw 5; }), "hsi_f: unknown failure");
    EXPECT_EQ(collect([] { return guarded("hsi_f", [] {}); }).kind, CE_None);
}

/// A VRT with one derived band from `bands` bands of a raster in memory.
class DerivedBand {
  public:
    static constexpr int width = 40, height = 25, bands = 4;
    DerivedBand() {
        GDALAllRegister();
        GDALRegister_HSI();
        auto* const driver = GetGDALDriverManager()->GetDriverByName("GTiff");
        GDALDataset* const scene = driver->Create(m_scene, width, height, bands, GDT_Float32, nullptr);
        std::mt19937 random(1);
        std::uniform_real_distribution<float> value(1, 100);
        for (int b = 0; b < bands; ++b) {
            std::vector<float> plane(width * height);
            for (auto& v : plane)
                v = value(random);
            EXPECT_EQ(scene->GetRasterBand(b + 1)->RasterIO(GF_Write, 0, 0, width, height, plane.data(),
                                                            width, height, GDT_Float32, 0, 0, nullptr),
                      CE_None);
        }
        GDALClose(scene);
    }
    ~DerivedBand() { VSIUnlink(m_scene); }

    Collected read(const std::string& function,
                   const std::vector<std::pair<std::string, std::string>>& arguments,
                   std::vector<float>* values = nullptr, int sources = bands) const {
        std::string xml =
            "<VRTDataset rasterXSize='40' rasterYSize='25'><VRTRasterBand dataType='Float32' band='1' "
            "subClass='VRTDerivedRasterBand'><PixelFunctionType>" +
            function + "</PixelFunctionType><PixelFunctionArguments ";
        for (const auto& [key, value] : arguments) {
            char* const escaped = CPLEscapeString(value.c_str(), -1, CPLES_XML);
            xml += key + "=\"" + escaped + "\" ";
            CPLFree(escaped);
        }
        xml += "/><SourceTransferType>Float32</SourceTransferType>";
        for (int b = 0; b < sources; ++b)
            xml += std::string("<SimpleSource><SourceFilename>") + m_scene + "</SourceFilename><SourceBand>" +
                   std::to_string(b % bands + 1) + "</SourceBand></SimpleSource>";
        xml += "</VRTRasterBand></VRTDataset>";
        return collect([&] {
            auto* const dataset = GDALDataset::Open(xml.c_str(), GDAL_OF_RASTER);
            if (dataset == nullptr) return CE_Failure;
            std::vector<float> plane(width * height);
            const CPLErr result = dataset->GetRasterBand(1)->RasterIO(
                GF_Read, 0, 0, width, height, plane.data(), width, height, GDT_Float32, 0, 0, nullptr);
            GDALClose(dataset);
            if (values) *values = plane;
            return result;
        });
    }

  private:
    const char* const m_scene = "/vsimem/plugin_test_scene.tif";
};

TEST(Functions, AreThereAndCompute) {
    const DerivedBand band;
    std::vector<float> norm, dot, angle;
    ASSERT_EQ(band.read("hsi_norm", {}, &norm).kind, CE_None);
    ASSERT_EQ(band.read("hsi_project", {{"weights", "1 2 3 4"}}, &dot).kind, CE_None);
    ASSERT_EQ(band.read("hsi_sad", {{"spectra", "1 2 3 4"}}, &angle).kind, CE_None);
    for (size_t i = 0; i < norm.size(); ++i)
        EXPECT_NEAR(std::cos(angle[i] * M_PI / 180), dot[i] / (norm[i] * std::sqrt(30.0)), 1e-5);
}

TEST(Functions, RegisteringAgainChangesNothing) {
    const DerivedBand band;
    for (int k = 0; k < 50; ++k)
        GDALRegister_HSI();
    EXPECT_EQ(band.read("hsi_norm", {}).kind, CE_None);
}

TEST(Functions, AreRememberedUntilTheirFilesChange) {
    const test::TempFolder folder;
    const std::string library = folder / "one.csv";
    const DerivedBand band;
    const auto write = [&](const std::string& text) { std::ofstream(library) << text; };
    std::vector<float> first, second, third;
    write("band,a\n1,1\n2,2\n3,3\n4,4\n");
    ASSERT_EQ(band.read("hsi_sad", {{"library", library}}, &first).kind, CE_None);
    ASSERT_EQ(band.read("hsi_sad", {{"library", library}}, &second).kind, CE_None);
    EXPECT_EQ(first, second);
    write("band,a\n1,40\n2,3\n3,20\n4,1\n");
    ASSERT_EQ(band.read("hsi_sad", {{"library", library}}, &third).kind, CE_None);
    EXPECT_NE(first, third);
    ASSERT_EQ(VSIUnlink(library.c_str()), 0);
    const auto gone = band.read("hsi_sad", {{"library", library}});
    EXPECT_EQ(gone.kind, CE_Failure);
    EXPECT_TRUE(holds(gone.text, library)) << gone.text;
}

/// Checks that any arguments give values, or an error that begins with the function's name, without other
/// exceptions or crashes.
TEST(Functions, SurviveAnyArguments) {
    const DerivedBand band;
    const char* const functions[] = {"hsi_resample", "hsi_continuum", "hsi_norm", "hsi_sad",
                                     "hsi_osp",      "hsi_project",   "hsi_spp",  "hsi_svm",
                                     "hsi_mlr",      "hsi_unmix",     "hsi_sam",  "hsi_match"};
    const char* const names[] = {
        "spectra", "library", "select",     "output",     "unit",       "max_angle",   "count",  "weights",
        "offset",  "model",   "model_data", "component",  "projector",  "absolute",    "zero",   "centroid",
        "class",   "nodata",  "masks",      "dst_nodata", "endmembers", "targets",     "method", "band",
        "mean",    "used",    "contrast",   "deviation",  "factor",     "wavelengths", "ranges"};
    const char* const texts[] = {"1 2 3 4",
                                 "1 2 3 4; 4 3 2 1",
                                 "1 2 3",
                                 "",
                                 "0 0 0 0",
                                 "nan",
                                 "1e400",
                                 "-1",
                                 "0",
                                 "1",
                                 "2",
                                 "99999999999",
                                 "1.5",
                                 "class",
                                 "angle",
                                 "probability",
                                 "yes",
                                 "none",
                                 "radian",
                                 "/vsimem/absent",
                                 "{",
                                 "{}",
                                 "[1,2",
                                 "eJwDAAAAAAE=",
                                 "AAAA",
                                 "%s%n%d",
                                 ";;;",
                                 ",,,",
                                 "1 2 3 4 5 6 7 8 9 10",
                                 "0x10 1 1 1",
                                 "valid",
                                 "squared",
                                 "1;2;x"};
    std::mt19937 random(7);
    const auto pick = [&](const auto& array) { return array[random() % std::size(array)]; };
    int failures = 0, values = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::pair<std::string, std::string>> arguments;
        for (size_t k = random() % 4; k > 0; --k) {
            const std::string name = pick(names);
            if (std::none_of(arguments.begin(), arguments.end(),
                             [&](const auto& a) { return a.first == name; }))
                arguments.emplace_back(name, pick(texts));
        }
        const std::string function = pick(functions);
        const auto c = band.read(function, arguments, nullptr, 1 + static_cast<int>(random() % 5));
        if (c.kind == CE_None) {
            ++values;
        } else {
            ++failures;
            EXPECT_EQ(c.text.rfind(function + ": ", 0), 0u) << c.text;
            EXPECT_LT(c.text.size(), 700u) << c.text;
        }
    }
    EXPECT_GT(values, 50);
    EXPECT_GT(failures, 1000);
}

} // namespace
} // namespace hsi::plugin
