// SPDX-License-Identifier: MIT
#include "core/connections.h"
#include "core/counted.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "core/file_state.h"
#include "core/host_memory.h"
#include "core/name_index.h"
#include "core/process_owner.h"
#include "core/text.h"
#include "core/tile_plan.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hsi {
namespace {

TEST(ByteSize, ReadsWhatUsersWrite) {
    constexpr uint64_t mb = uint64_t{1} << 20;
    EXPECT_EQ(parse_byte_size("512MB", 0, "-memory"), 512 * mb);
    EXPECT_EQ(parse_byte_size("2 GB", 0, "-memory"), 2048 * mb);
    EXPECT_EQ(parse_byte_size("1.5GiB", 0, "-memory"), 1536 * mb);
    EXPECT_EQ(parse_byte_size("800000", 0, "-memory"), 800000u);
    EXPECT_EQ(parse_byte_size(" +3e2kB", 0, "-memory"), 300 * 1024u);
    EXPECT_EQ(parse_byte_size("25%", 1000 * mb, "-memory"), 250 * mb);
    for (const char* bad :
         {"", "GB", "-1GB", "0", "12XB", "101%", "nan", "1e30GB", "1e999GB", "1,5GB", "0x10"})
        EXPECT_THROW(parse_byte_size(bad, 1000, "-memory"), UsageError) << bad;
}

TEST(ByteSize, NamesTheOption) {
    try {
        parse_byte_size("lots", 1, "-device-memory");
        FAIL() << "no error";
    } catch (const UsageError& e) {
        EXPECT_NE(std::string(e.what()).find("-device-memory"), std::string::npos);
        EXPECT_NE(std::string(e.what()).find("lots"), std::string::npos);
        EXPECT_FALSE(e.advice().empty());
    }
}

TEST(HostBuffer, PagesThatALibraryKeepsAreZeroAgain) {
    const auto is_zero = [](const HostBuffer<float>& buffer) {
        return std::all_of(buffer.data(), buffer.data() + buffer.size(), [](float v) { return v == 0; });
    };
    for (const bool ours : {true, false}) {
        g_process_is_ours.store(ours);
        for (const size_t count :
             {size_t{1}, size_t{5000}, size_t{262144}, size_t{262145}, size_t{1000000}}) {
            std::vector<HostBuffer<float>> several;
            for (int k = 0; k < 40; ++k) { // more blocks than are kept per size
                several.emplace_back(count);
                ASSERT_TRUE(is_zero(several.back())) << count;
                ASSERT_EQ(reinterpret_cast<uintptr_t>(several.back().data()) % 4096, 0u)
                    << "pages, for pinning";
                std::fill_n(several.back().data(), count, 7.0f);
            }
            several.clear();
            HostBuffer<float> again(count);
            EXPECT_TRUE(is_zero(again)) << count;
        }
    }
    g_process_is_ours.store(true);
}

TEST(Counted, OneThingIsNotMany) {
    EXPECT_EQ(counted(1, "pixel"), "1 pixel");
    EXPECT_EQ(counted(size_t{2}, "pixel"), "2 pixels");
    EXPECT_EQ(counted(0, "pixel"), "0 pixels");
    EXPECT_EQ(counted(int64_t{1}, "spectrum", "spectra"), "1 spectrum");
    EXPECT_EQ(counted(uint64_t{3}, "spectrum", "spectra"), "3 spectra");
    EXPECT_STREQ(worded(1, "is", "are"), "is");
    EXPECT_STREQ(worded(0, "is", "are"), "are");
}

TEST(Device, ReadsWhatUsersWrite) {
    EXPECT_EQ(parse_device("auto").kind, DeviceChoice::Kind::automatic);
    EXPECT_EQ(parse_device("cpu").kind, DeviceChoice::Kind::cpu);
    EXPECT_EQ(parse_device("cuda").kind, DeviceChoice::Kind::cuda);
    EXPECT_EQ(parse_device("cuda:0,2").devices, (std::vector<int>{0, 2}));
    for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:0,", "cuda:-1", "cuda:0,0", "cuda0", "cpu:1"})
        EXPECT_THROW(parse_device(bad), UsageError) << bad;
}

TEST(Device, TheProcessorNeedsNoModule) {
    EXPECT_TRUE(choose_devices(parse_device("cpu"), "no_such_algorithm").empty());
    EXPECT_TRUE(choose_devices(parse_device("auto"), "no_such_algorithm").empty());
    EXPECT_THROW(choose_devices(parse_device("cuda"), "no_such_algorithm"), Error);
}

TileRequest request(int64_t samples, int64_t lines, int64_t bands, int64_t halo, uint64_t budget) {
    TileRequest r;
    r.samples = samples;
    r.lines = lines;
    r.halo = halo;
    r.budget = budget;
    r.lanes = 2;
    r.preferred = uint64_t{24} << 20;
    r.lane_bytes = [bands](int64_t ws, int64_t wl, int64_t cs, int64_t cl) {
        return static_cast<uint64_t>((ws * wl + cs * cl) * bands * 4);
    };
    return r;
}

void expect_sound(const TileRequest& r) {
    SCOPED_TRACE(testing::Message() << r.samples << "x" << r.lines << " halo " << r.halo << " budget "
                                    << r.budget << " blocks " << r.block_samples << "x" << r.block_lines);
    const TilePlan plan = plan_tiles(r);
    // Cores cover the scene once; windows contain them and stay inside the scene.
    int64_t covered = 0;
    const Rect scene{0, 0, r.samples, r.lines};
    for (int64_t i = 0; i < plan.size(); ++i) {
        const Tile t = plan.tile(i);
        EXPECT_EQ(t.index, i);
        EXPECT_FALSE(t.core.empty());
        EXPECT_TRUE(scene.contains(t.window));
        EXPECT_TRUE(t.window.contains(t.core));
        EXPECT_EQ(t.window, intersect(grow(t.core, r.halo), scene));
        EXPECT_LE(t.window.w, plan.max_window_samples());
        EXPECT_LE(t.window.h, plan.max_window_lines());
        EXPECT_EQ(t.core.x % r.align_samples, 0);
        EXPECT_EQ(t.core.y % r.align_lines, 0);
        covered += t.core.area();
    }
    EXPECT_EQ(covered, scene.area());
    const uint64_t lane = r.lane_bytes(plan.max_window_samples(), plan.max_window_lines(),
                                       plan.max_core_samples(), plan.max_core_lines());
    EXPECT_LE(lane * static_cast<uint64_t>(plan.lanes()), r.budget);
    if (r.device_budget > 0) {
        const uint64_t device = r.device_bytes(plan.max_window_samples(), plan.max_window_lines(),
                                               plan.max_core_samples(), plan.max_core_lines());
        EXPECT_LE(device * static_cast<uint64_t>(plan.lanes()), r.device_budget);
    }
    EXPECT_GE(plan.lanes(), 1);
    EXPECT_LE(plan.lanes(), r.lanes);
}

TEST(TilePlan, CoversTheSceneWithinTheBudget) {
    for (int64_t samples : {1, 10, 614, 5000, 40000})
        for (int64_t lines : {1, 37, 512, 9000})
            for (int64_t halo : {0, 2, 31, 79})
                for (uint64_t budget : {uint64_t{256} << 20, uint64_t{2} << 30})
                    for (int64_t block : {0, 256}) {
                        TileRequest r = request(samples, lines, 64, halo, budget);
                        r.block_samples = block;
                        r.block_lines = block ? block : 1;
                        expect_sound(r);
                        r.align_samples = 128;
                        r.align_lines = 16;
                        expect_sound(r);
                    }
}

TEST(TilePlan, ReadsWholeLinesOfStripedFiles) {
    const TilePlan plan = plan_tiles(request(614, 512, 224, 2, uint64_t{4} << 30));
    EXPECT_EQ(plan.max_core_samples(), 614);
    EXPECT_EQ(plan.lanes(), 2);
    EXPECT_GE(plan.size(), 6);
}

TEST(TilePlan, FollowsTheBlocksOfTiledFiles) {
    TileRequest r = request(10000, 8000, 224, 2, uint64_t{2} << 30);
    r.block_samples = r.block_lines = 256;
    const TilePlan plan = plan_tiles(r);
    EXPECT_EQ(plan.tile_samples() % 256, 0);
    EXPECT_EQ(plan.tile_lines() % 256, 0);
}

/// Returns the greatest number of lines that a worker computes if every worker takes the next tile as soon as
/// it is free.
int64_t longest(const TilePlan& plan, int64_t workers) {
    std::vector<int64_t> lines(static_cast<size_t>(workers), 0);
    for (int64_t i = 0; i < plan.size(); ++i)
        *std::min_element(lines.begin(), lines.end()) += plan.tile(i).core.h;
    return *std::max_element(lines.begin(), lines.end());
}

TEST(TilePlan, SharesLinesThatTakeLongEvenly) {
    for (const int64_t align : {1, 2})
        for (const int64_t lines : {1, 5, 21, 61, 64, 65, 127, 512})
            for (const int lanes : {1, 2, 3, 5, 8, 16, 64})
                for (const int ranks : {1, 3}) {
                    SCOPED_TRACE(testing::Message() << lines << " lines, " << lanes << " lanes, " << ranks
                                                    << " ranks, multiples of " << align);
                    TileRequest r = request(128, lines, 200, 15, uint64_t{8} << 30);
                    r.lanes = lanes;
                    r.ranks = ranks;
                    r.align_lines = align;
                    r.line_share = 0.006;
                    expect_sound(r);
                    const TilePlan plan = plan_tiles(r);
                    const int64_t workers = int64_t{lanes} * ranks, pairs = (lines + align - 1) / align;
                    const int64_t even = (pairs + workers - 1) / workers * align;
                    // The result is as good as whole pairs of lines allow, or as the limit on additional
                    // reading allows.
                    EXPECT_LE(static_cast<double>(longest(plan, workers)),
                              static_cast<double>(even) * 1.15 + static_cast<double>(align));
                    // Tiles are not lower than necessary.
                    if (lines >= 10 * workers) {
                        EXPECT_GE(plan.tile_lines(), 2);
                    }
                    if (workers == 1) {
                        EXPECT_GE(plan.tile_lines(), std::min<int64_t>(64, lines / 2));
                    }
                }
    // Where there are many tiles, tiles that have their size for another reason keep it.
    TileRequest r = request(614, 4000, 200, 15, uint64_t{8} << 30);
    const int64_t height = plan_tiles(r).tile_lines();
    r.line_share = 0.006;
    EXPECT_GE(plan_tiles(r).tile_lines(), height * 2 / 3);
}

TEST(TilePlan, EvenSharesKeepWithinTheMemory) {
    for (const uint64_t budget : {uint64_t{9} << 20, uint64_t{40} << 20, uint64_t{200} << 20})
        for (const int lanes : {1, 2, 3, 5, 64})
            for (const int64_t block : {0, 16, 256}) {
                TileRequest r = request(300, 200, 100, 15, budget);
                r.lanes = lanes;
                r.block_samples = block;
                r.block_lines = std::max<int64_t>(1, block);
                r.align_samples = 128;
                r.align_lines = 2;
                r.line_share = 0.01;
                expect_sound(r);
            }
}

TEST(TilePlan, HonoursAForcedSizeOrRefusesIt) {
    TileRequest r = request(614, 512, 224, 2, uint64_t{1} << 30);
    r.forced_samples = 37;
    r.forced_lines = 11;
    EXPECT_EQ(plan_tiles(r).tile_samples(), 37);
    EXPECT_EQ(plan_tiles(r).tile_lines(), 11);
    r.budget = 1 << 18;
    EXPECT_THROW(plan_tiles(r), UsageError);
}

TEST(TilePlan, SaysWhenMemoryIsTooShort) {
    EXPECT_THROW(plan_tiles(request(614, 512, 224, 31, 1 << 20)), Error);
}

/// Adds a device that needs `fixed` bytes per lane and three times the host's tile.
TileRequest with_device(TileRequest r, uint64_t device_budget, uint64_t fixed) {
    r.device_budget = device_budget;
    r.device_bytes = [host = r.lane_bytes, fixed](int64_t ws, int64_t wl, int64_t cs, int64_t cl) {
        return fixed + 3 * host(ws, wl, cs, cl);
    };
    return r;
}

TEST(TilePlan, KeepsWithinBothMemories) {
    for (int64_t samples : {59, 614, 5000})
        for (int64_t halo : {0, 2, 31})
            for (uint64_t device : {uint64_t{128} << 20, uint64_t{1} << 30, uint64_t{100} << 30})
                for (uint64_t fixed : {uint64_t{0}, uint64_t{40} << 20})
                    expect_sound(
                        with_device(request(samples, 512, 64, halo, uint64_t{2} << 30), device, fixed));
}

TEST(TilePlan, LeavesTheHostsTilesAloneWhereTheDeviceHasRoom) {
    const TileRequest host = request(614, 512, 224, 2, uint64_t{32} << 30);
    const TilePlan alone = plan_tiles(host);
    // Device memory is much smaller than host memory, or larger than the lanes need.
    for (uint64_t device : {uint64_t{1} << 30, uint64_t{200} << 30}) {
        const TilePlan both = plan_tiles(with_device(host, device, 0));
        EXPECT_EQ(both.tile_samples(), alone.tile_samples());
        EXPECT_EQ(both.tile_lines(), alone.tile_lines());
        EXPECT_EQ(both.lanes(), alone.lanes());
    }
}

TEST(TilePlan, NamesAMemoryThatIsEnough) {
    // A quarter of -memory is in use elsewhere.
    for (const uint64_t memory : {uint64_t{1} << 20, uint64_t{30} << 20}) {
        TileRequest r = request(614, 512, 224, 31, memory / 4 * 3);
        r.memory = memory;
        const std::string advice = memory_advice(r, 3 * r.budget);
        EXPECT_EQ(advice, memory == 1 << 20 ? "Use -memory 3073KB or more" : "Use -memory 91MB or more");
        r.budget = 1;
        EXPECT_EQ(memory_advice(r, memory), "Use a larger -memory");
    }
    TileRequest r = request(614, 512, 224, 31, 1 << 20);
    const uint64_t least = least_lane_bytes(r);
    r.budget = least - 1;
    EXPECT_THROW(plan_tiles(r), Error);
    r.budget = least;
    EXPECT_EQ(plan_tiles(r).lanes(), 1);
}

TEST(TilePlan, NamesTheMemoryThatIsShort) {
    const auto message = [](const TileRequest& r) -> std::string {
        try {
            plan_tiles(r);
        } catch (const Error& e) {
            return std::string(e.what()) + " | " + e.advice();
        }
        return "no error";
    };
    const uint64_t large = uint64_t{31} << 30, fixed = uint64_t{363} << 20;
    TileRequest r = with_device(request(59, 233, 64, 0, large), uint64_t{256} << 20, fixed);
    EXPECT_EQ(message(r), "one tile of 59x1 pixels with halo 0 needs 363 MB of device memory, more than the "
                          "256 MB that -device-memory leaves | Use a larger -device-memory, or -device cpu.");
    r.forced_samples = r.forced_lines = 16;
    EXPECT_EQ(message(r), "-tile 16 16 needs 363 MB of device memory, more than the 256 MB that "
                          "-device-memory leaves | Use a larger -device-memory, or -device cpu, or a "
                          "smaller -tile.");
    r = with_device(request(59, 233, 64, 0, 1 << 10), large, fixed);
    EXPECT_EQ(message(r), "one tile of 59x1 pixels with halo 0 needs 30 kB for buffers, more than the 1.0 kB "
                          "that -memory leaves | Use a larger -memory.");
}

/// Returns the value of a variable after `act`, if it was `before`. Restores the original value.
std::optional<std::string> after(const char* name, const std::optional<std::string>& before,
                                 const std::function<void()>& act) {
    const auto get = [&]() -> std::optional<std::string> {
        const char* const text = std::getenv(name);
        return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
    };
    const auto set = [&](const std::optional<std::string>& text) {
        text ? setenv(name, text->c_str(), 1) : unsetenv(name);
    };
    const auto saved = get();
    set(before);
    act();
    auto result = get();
    set(saved);
    return result;
}

TEST(CudaStart, LeavesTheDriverTheFirstDeviceAlone) {
    const char* const name = "CUDA_VISIBLE_DEVICES";
    const auto visible = [&](const std::optional<std::string>& before, const char* device, int there) {
        return after(name, before, [&] { hide_other_cuda_devices(parse_device(device), there); });
    };
    for (const char* device : {"auto", "cuda"}) {
        EXPECT_EQ(visible(std::nullopt, device, 8), "0");
        EXPECT_EQ(visible("3,1", device, 8), "3");
        EXPECT_EQ(visible("GPU-5f0c,GPU-77aa", device, 8), "GPU-5f0c");
        EXPECT_EQ(visible("", device, 8), ""); // no device is visible
        EXPECT_EQ(visible(std::nullopt, device, 1), std::nullopt);
        EXPECT_EQ(visible("1,0", device, 0), "1,0");
    }
    EXPECT_EQ(visible(std::nullopt, "cuda:1", 8), std::nullopt); // of all devices
    EXPECT_EQ(visible("3,1", "cuda:0,1", 8), "3,1");
}

TEST(CudaStart, AsksForFewQueuesWhereTheUserDoesNotSay) {
    const char* const name = "CUDA_DEVICE_MAX_CONNECTIONS";
    EXPECT_EQ(after(name, std::nullopt, ask_for_few_cuda_queues), "2");
    EXPECT_EQ(after(name, "8", ask_for_few_cuda_queues), "8");
}

/// Returns the result of reading a text, in words that distinguish -0 from 0 and the sign of NaN.
std::string reading(const std::optional<double>& value, size_t length) {
    if (!value) return "nothing";
    char text[64];
    std::snprintf(text, sizeof text, "%zu bytes: %s%a", length, std::signbit(*value) ? "-" : "",
                  std::fabs(*value));
    return text;
}

std::string taken(std::string_view text) {
    std::string_view rest = text;
    const auto value = take_number(rest);
    return reading(value, text.size() - rest.size());
}

TEST(Number, IsReadAsTheStandardSays) {
    EXPECT_EQ(to_number("0.1"), 0.1);
    EXPECT_EQ(to_number("-2.5e3"), -2500);
    EXPECT_EQ(to_number(".5"), 0.5);
    EXPECT_EQ(to_number("5."), 5);
    EXPECT_EQ(to_number("1E+2"), 100);
    EXPECT_EQ(to_number("4.9e-324"), 4.9e-324); // the least double
    EXPECT_EQ(to_number("2.4703282292062328e-324"), 4.9e-324);
    EXPECT_EQ(to_number("9007199254740993"), 9007199254740992); // halfway, so rounded to even
    EXPECT_EQ(to_number("9007199254740993.00000000000000000000000000000000000001"), 9007199254740994);
    EXPECT_EQ(to_number("1.7976931348623158e308"), std::numeric_limits<double>::max());
    EXPECT_EQ(to_number("-Infinity"), -std::numeric_limits<double>::infinity());
    for (const char* text : {"nan", "-NaN", "nan(a_1)"})
        EXPECT_TRUE(std::isnan(to_number(text).value_or(0))) << text;
    for (const char* bad : {"",     "-",      "+1",    " 1",     "1 ",     "1,5",    ".",     "-.",
                            "e5",   ".e5",    "0x10",  "1e",     "1e+",    "--1",    "in",    "infinit",
                            "nan(", "nan(-)", "1e309", "-1e400", "1e-400", "2e-324", "1_000", "\xd9\xa1"})
        EXPECT_EQ(to_number(bad), std::nullopt) << bad;
    EXPECT_EQ(to_number(std::string_view("1\0", 2)), std::nullopt);
    EXPECT_EQ(taken("12.5nm"), reading(12.5, 4));
    EXPECT_EQ(taken("0x10"), reading(0, 1));
    EXPECT_EQ(taken("1e+x"), reading(1, 1));
    EXPECT_EQ(taken("1.2.3"), reading(1.2, 3));
    EXPECT_EQ(taken("-0e9999"), reading(-0.0, 7));
    EXPECT_EQ(taken("infinite"), reading(std::numeric_limits<double>::infinity(), 3));
    EXPECT_EQ(taken("1e999nm"), "nothing");
}

TEST(Number, HasAPointInEveryLocale) {
    const std::string before = std::setlocale(LC_NUMERIC, nullptr);
    bool comma = std::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr;
    if (!comma) { // requires the data of Debian's package `locales`
        const std::string folder = testing::TempDir() + "hsi-locales-" + std::to_string(::getpid());
        const std::string make = "mkdir -p " + folder + " && localedef -i de_DE -f UTF-8 " + folder +
                                 "/de_DE.UTF-8 > /dev/null 2>&1";
        const int made = std::system(make.c_str());
        ::setenv("LOCPATH", folder.c_str(), 1);
        comma = made != -1 && std::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr;
        ::unsetenv("LOCPATH");
        std::filesystem::remove_all(folder);
    }
    const auto value = to_number("0.45");
    const auto bytes = parse_byte_size("1.5KB", 0, "-memory");
    std::setlocale(LC_NUMERIC, before.c_str());
    EXPECT_EQ(value, 0.45);
    EXPECT_EQ(bytes, 1536U);
    if (!comma) GTEST_SKIP() << "no data to make a German locale of are here (Debian's package locales)";
}

#ifdef __cpp_lib_to_chars // requires a library that reads fractions

std::string from_chars(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() ? reading(value, static_cast<size_t>(end - text.data())) : "nothing";
}

/// Returns a double of any magnitude, with few digits as often as with all digits.
double any_double(std::mt19937_64& random) {
    uint64_t bits = random();
    if (bits % 5 == 0) bits &= ~uint64_t{0} << (random() % 53);
    if (bits % 7 == 0) bits &= 0x800fffffffffffff; // subnormal
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

std::string printed(const char* format, int digits, double value) {
    std::string text(2000, '\0');
    text.resize(static_cast<size_t>(std::snprintf(text.data(), text.size(), format, digits, value)));
    return text;
}

TEST(Number, IsThatOfFromChars) {
    std::mt19937_64 random(7);
    size_t numbers = 0;
    const auto check = [&](const std::string& text) {
        const std::string expected = from_chars(text);
        ASSERT_EQ(taken(text), expected) << "'" << text << "'";
        numbers += expected != "nothing";
    };
    const char* const formats[] = {"%.*g", "%.*e", "%.*f", "%.*E"};
    for (int i = 0; i < 60000; ++i) {
        const double value = any_double(random);
        const auto digits = static_cast<int>(i % 50 == 0 ? random() % 1100 : random() % 20);
        std::string text = printed(formats[i % 4], digits, value);
        check(text);
        if (text.empty()) continue;
        // One character is changed, removed or repeated.
        constexpr std::string_view letters = "0123456789.eE+-infaNty_()x, ";
        const size_t at = random() % text.size();
        if (i % 3 == 0) text[at] = letters[random() % letters.size()];
        if (i % 3 == 1) text.erase(at, 1);
        if (i % 3 == 2) text.insert(at, 1, letters[random() % letters.size()]);
        check(text);
    }
    // Texts halfway between two neighbours, or close to it, have 53 digits more than a double.
    for (int i = 0; i < 20000; ++i) {
        const double value = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 60));
        if (value < 4503599627370496.0) continue;
        const auto half = static_cast<long double>(std::nextafter(value, HUGE_VAL) - value) / 2;
        std::string text(400, '\0');
        text.resize(static_cast<size_t>(
            std::snprintf(text.data(), text.size(), "%.5Lf", static_cast<long double>(value) + half)));
        check(text);
        check(text + "00000000000000000000000000001");
        text.back() = '1';
        check(text);
    }
    constexpr std::string_view letters = "0159.eE+-infaNty(_)";
    for (int i = 0; i < 200000; ++i) {
        std::string text;
        for (size_t length = random() % 12; length > 0; --length)
            text += letters[random() % letters.size()];
        check(text);
    }
    EXPECT_GT(numbers, 150000U);
}

#endif

TEST(Utf8, KnowsWhatIsValid) {
    for (const char* text : {"", "plain", "Gr\xc3\xbcn", "\xe2\x82\xac", "\xf0\x9f\x8c\xb2", "\xed\x9f\xbf"})
        EXPECT_TRUE(is_utf8(text)) << text;
    for (const char* text :
         {"\xfc", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"})
        EXPECT_FALSE(is_utf8(text)) << text;
}

TEST(Utf8, TakesTheRestForWindows1252) {
    EXPECT_EQ(utf8_text("Gr\xc3\xbcn"), "Gr\xc3\xbcn");
    EXPECT_EQ(utf8_text("Gr\xfcn, 5 \x80, \xb5m"), "Gr\xc3\xbcn, 5 \xe2\x82\xac, \xc2\xb5m");
    std::string all;
    for (int c = 0; c < 256; ++c)
        all += static_cast<char>(c);
    EXPECT_TRUE(is_utf8(utf8_text(all)));
}

TEST(Utf8, CharactersAreTakenOneByOne) {
    for (const char32_t code : {0x0U, 0x41U, 0x7fU, 0x80U, 0x7ffU, 0x800U, 0xffffU, 0x10000U, 0x10ffffU}) {
        std::string text;
        append_utf8(text, code);
        std::string_view rest(text);
        EXPECT_EQ(take_character(rest), code);
        EXPECT_TRUE(rest.empty());
    }
    std::string_view broken("\xc3(\x80");
    for (const char32_t code : {U'\xfffd', U'(', U'\xfffd'})
        EXPECT_EQ(take_character(broken), code);
    EXPECT_TRUE(broken.empty());
}

TEST(Utf8, LettersComposedInTwoWaysAreOne) {
    const auto same = [](const char* a, const char* b) {
        EXPECT_EQ(differ_in_composition(a, b), differ_in_composition(b, a));
        return differ_in_composition(a, b);
    };
    EXPECT_TRUE(same("Gr\xc3\xb6\xc3\x9f", "Gro\xcc\x88\xc3\x9f"));            // o with two dots
    EXPECT_TRUE(same("\xe1\xbb\x87", "e\xcc\xa3\xcc\x82"));                    // two marks
    EXPECT_TRUE(same("\xd0\xb9", "\xd0\xb8\xcc\x86"));                         // Cyrillic
    EXPECT_TRUE(same("\xe3\x81\x8c", "\xe3\x81\x8b\xe3\x82\x99"));             // kana
    EXPECT_TRUE(same("\xed\x95\x9c", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab")); // a syllable of Hangul
    EXPECT_FALSE(same("same", "same"));
    EXPECT_FALSE(same("", "e\xcc\x81"));
    EXPECT_FALSE(same("e", "e\xcc\x81"));       // the mark is missing
    EXPECT_FALSE(same("\xc3\xa9", "e"));        // the mark is missing
    EXPECT_FALSE(same("\xc3\xa9", "\xc3\xa8")); // a different letter
    EXPECT_FALSE(same("\xc3\xa9t", "e\xcc\x81"
                                   "d"));
    EXPECT_FALSE(same("\xc3\xa9", "e\xcc\x81"
                                  "e"));
    EXPECT_FALSE(same("\xe9", "e\xcc\x81")); // invalid UTF-8
}

TEST(Names, BeginWithOneOfSeveral) {
    EXPECT_TRUE(begins_with_any("GDAL_DATA", {"OGR_", "GDAL_"}));
    EXPECT_FALSE(begins_with_any("gdal_data", {"OGR_", "GDAL_"}));
    EXPECT_TRUE(begins_like_any("gdal_data", {"OGR_", "GDAL_"}));
    EXPECT_TRUE(begins_like_any("GDAL_", {"gdal_"}));
    EXPECT_FALSE(begins_like_any("gdal", {"GDAL_"}));
    EXPECT_FALSE(begins_like_any("gdal", {}));
}

TEST(Names, Lists) {
    using Words = std::vector<std::string>;
    EXPECT_EQ(listed_words("5,Soil"), (Words{"5", "Soil"}));
    EXPECT_EQ(listed_words(" a b , \"Corn, young\",\"say \"\"x\"\"\" "),
              (Words{"a b", "Corn, young", "say \"x\""}));
    EXPECT_EQ(listed_words("5\" pipe"), (Words{"5\" pipe"}));
    for (const char* wrong : {"", " ", ",", "a,", ",a", "a,,b", "\"", "\"a", "\"a\"b", "\"\"", "\"a\"\""})
        EXPECT_FALSE(listed_words(wrong)) << wrong;
}

/// Returns a listening socket on the loopback interface, and its port.
std::pair<int, int> listening() {
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(server, any, size), 0);
    EXPECT_EQ(listen(server, 1), 0);
    EXPECT_EQ(getsockname(server, any, &size), 0);
    return {server, ntohs(address.sin_port)};
}

int connected_to(int port) {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return client;
}

/// Ends the connection to one server, and continues the connection to another server.
TEST(Connections, EndWhereTheyLead) {
    const auto [stalled, port] = listening();
    const auto [other, other_port] = listening();
    const int client = connected_to(port), kept = connected_to(other_port);
    end_connections_to("127.0.0.1", port);
    char byte = 0;
    EXPECT_EQ(read(client, &byte, 1), 0) << "read() would wait";
    EXPECT_EQ(write(kept, &byte, 1), 1);
    EXPECT_FALSE(connections_are_ended());
    for (const int file : {stalled, other, client, kept})
        close(file);
}

TEST(FileState, TellsStatesApart) {
    const std::string path = testing::TempDir() + "file_state_" + std::to_string(getpid());
    const auto write_file = [&](const char* text) {
        std::FILE* file = std::fopen(path.c_str(), "r+");
        if (file == nullptr) file = std::fopen(path.c_str(), "w");
        std::fputs(text, file);
        std::fclose(file);
    };
    write_file("one");
    const auto before = FileState::of(path);
    ASSERT_TRUE(before);
    EXPECT_EQ(FileState::of(path), before);
    struct stat facts {};
    ASSERT_EQ(stat(path.c_str(), &facts), 0);
    usleep(20000); // file systems store times in steps
    write_file("two");
    const timespec times[] = {facts.st_atim, facts.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    const auto after = FileState::of(path);
    ASSERT_TRUE(after);
    EXPECT_EQ(after->modified, before->modified) << "set back by hand";
    EXPECT_NE(after, before);
    EXPECT_FALSE(after->has_contents_of(*before));
    const std::string link = path + ".link";
    for (const auto& [what, change] : std::initializer_list<std::pair<const char*, std::function<int()>>>{
             {"chmod", [&] { return chmod(path.c_str(), 0700); }},
             {"link", [&] { return ::link(path.c_str(), link.c_str()); }},
             {"unlink", [&] { return unlink(link.c_str()); }}}) {
        const auto earlier = FileState::of(path);
        usleep(20000);
        ASSERT_EQ(change(), 0) << what;
        const auto now = FileState::of(path);
        EXPECT_NE(now, earlier) << what;
        EXPECT_TRUE(now->has_contents_of(*earlier)) << what;
        write_file("six");
        EXPECT_FALSE(FileState::of(path)->has_contents_of(*earlier)) << what << ", and then written to";
    }
    unlink(path.c_str());
    EXPECT_FALSE(FileState::of(path));
    EXPECT_FALSE(FileState::of("/dev/null"));
    EXPECT_TRUE(FileState::of("/tmp").value().folder);
}

TEST(NameIndex, FindsNamesWhateverTheirCase) {
    NameIndex names;
    EXPECT_EQ(names.add("Clay", 3), 3u);
    EXPECT_EQ(names.add("clay", 4), 3u);
    EXPECT_EQ(names.find("CLAY"), 3u);
    EXPECT_FALSE(names.find("leaf"));
}

} // namespace
} // namespace hsi
