// SPDX-License-Identifier: MIT
// Detection on one GPU as gdal_hsi_detect computes it, from memory to memory. Prints medians of three times:
// of the kernels, of the whole pass with copies and the start of its threads, and of the CPU's operation on
// the same computer with two threads and with all threads. Also compares the scores of GPU and CPU.
//
//   detect_cuda_bench [-repeat N] [-size SAMPLES LINES BANDS] [-local SAMPLES LINES BANDS] [-window INNER
//       OUTER]
#include "core/cuda_module.h"
#include "core/error.h"
#include "detect/local/local.h"
#include "detect/pixel/pixel.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hsi;
template <class Backend>
using Make = std::function<std::unique_ptr<detect::Detection>(Backend&)>;

int all_threads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

struct Timing {
    test::Cube scores;
    double pass = 0, kernels = 0; ///< milliseconds of the whole pass, and of its kernels
};

template <class Backend>
Timing time_of(Backend& backend, const Make<Backend>& make, const test::Cube& cube, int scores, int lanes,
               int rounds) {
    const test::MemorySource source(cube);
    test::MemorySink sink(cube.shape.samples, cube.shape.lines, scores);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.memory = uint64_t{8} << 30;
    std::vector<double> passes, kernels;
    for (int round = 0; round <= rounds; ++round) {
        const double before = backend.kernel_seconds();
        const auto operation = make(backend);
        const auto begin = std::chrono::steady_clock::now();
        stream::run_pass(source, *operation, {&sink}, pass);
        const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
        // The first round is not counted: the device starts, and files and memory are used for the first
        // time.
        if (round == 0) continue;
        passes.push_back(spent.count());
        kernels.push_back(1e3 * (backend.kernel_seconds() - before));
    }
    return {sink.cube, median(passes), median(kernels)};
}

/// Returns the greatest difference of two scores, relative to the CPU's score, or to 1 if this score is
/// smaller than 1.
double greatest_difference(const test::Cube& a, const test::Cube& b) {
    double most = 0;
    for (size_t i = 0; i < a.values.size(); ++i) {
        const double x = a.values[i], y = b.values[i];
        if (std::isnan(x) != std::isnan(y)) return HUGE_VAL;
        if (!std::isnan(x)) most = std::max(most, std::fabs(x - y) / std::max(1.0, std::fabs(x)));
    }
    return most;
}

template <class Backend>
void compare(const std::string& title, const char* room, const Make<Backend>& make, const test::Cube& cube,
             int scores, int repeat, int cpu_repeat) {
    static const auto cuda = make_cuda_backend<Backend>(room, {cuda_devices().front()});
    Backend cpu;
    const auto alone = time_of(*cuda, make, cube, scores, 1, repeat);
    const auto pass = time_of(*cuda, make, cube, scores, all_threads(), repeat);
    const auto two = time_of(cpu, make, cube, scores, 2, cpu_repeat),
               every = time_of(cpu, make, cube, scores, all_threads(), cpu_repeat);
    const double pixels = static_cast<double>(cube.shape.pixels());
    std::printf(
        "%-24s kernels %9.3f ms (%7.3f M pixels/s), pass %9.3f ms; CPU, 2 threads %10.3f ms (%6.1f, of the "
        "pass %6.1f times as long), %d threads %10.3f ms (%6.1f, %6.1f); difference %.1e\n",
        title.c_str(), alone.kernels, pixels / alone.kernels / 1e3, pass.pass, two.pass,
        two.pass / alone.kernels, two.pass / pass.pass, all_threads(), every.pass, every.pass / alone.kernels,
        every.pass / pass.pass, greatest_difference(every.scores, pass.scores));
    std::fflush(stdout);
}

void scores(const stream::CubeShape& shape, int repeat) {
    const auto cube = test::random_scene(shape.samples, shape.lines, shape.bands, 3, 0.02, 1000);
    std::printf("%lld x %lld pixels, %d bands, 10 targets\n", static_cast<long long>(shape.samples),
                static_cast<long long>(shape.lines), shape.bands);
    detect::BackgroundScan scan(shape);
    stream::PassOptions pass;
    pass.lanes = all_threads();
    stream::run_pass(test::MemorySource(cube), scan, {}, pass);
    const auto moments = scan.result().moments;
    detect::Targets targets;
    for (int k = 0; k < 10; ++k) {
        targets.names.push_back(std::to_string(k));
        targets.spectra.emplace_back();
        for (int b = 0; b < shape.bands; ++b)
            targets.spectra.back().push_back(static_cast<double>(cube.at(b, 7 * k, 11 * k)));
    }
    using detect::Method;
    for (const Method m : {Method::sam, Method::sid, Method::mf, Method::cem, Method::ace, Method::rx}) {
        const auto d =
            detect::has_background(m)
                ? detect::make_detector(m, detect::has_target(m) ? targets : detect::Targets{}, moments)
                : detect::make_detector(m, targets);
        compare<detect::PixelBackend>(
            std::string("  ") + detect::name_of(m), "detect_pixel",
            [&](detect::PixelBackend& b) { return b.make_detection(d, {}); }, cube, d.scores(), repeat, 3);
    }
}

void local(const stream::CubeShape& shape, int inner, int outer, int repeat) {
    const auto cube = test::random_scene(shape.samples, shape.lines, shape.bands, 4, 0.02, 1000);
    char title[64];
    std::snprintf(title, sizeof title, "%lldx%lld, %d, %d / %d", static_cast<long long>(shape.samples),
                  static_cast<long long>(shape.lines), shape.bands, inner, outer);
    compare<detect::LocalBackend>(
        title, "detect_local",
        [&](detect::LocalBackend& b) {
            return b.make_local_detection(shape.bands, {inner, outer}, {});
        },
        cube, 1, repeat, 1);
}

} // namespace

int main(int argc, char** argv) {
    int repeat = 7, inner = 0, outer = 0;
    stream::CubeShape shape{614, 512, 224}, around{0, 0, 0};
    const auto three = [&](int i) {
        return stream::CubeShape{std::atoi(argv[i + 1]), std::atoi(argv[i + 2]), std::atoi(argv[i + 3])};
    };
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "-repeat") && i + 1 < argc)
            repeat = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "-size") && i + 3 < argc) {
            shape = three(i);
            i += 3;
        } else if (!std::strcmp(argv[i], "-local") && i + 3 < argc) {
            around = three(i);
            i += 3;
        } else if (!std::strcmp(argv[i], "-window") && i + 2 < argc) {
            inner = std::atoi(argv[i + 1]);
            outer = std::atoi(argv[i + 2]);
            i += 2;
        } else {
            std::fprintf(
                stderr,
                "usage: %s [-repeat N] [-size SAMPLES LINES BANDS] [-local SAMPLES LINES BANDS] [-window "
                "INNER OUTER]\n",
                argv[0]);
            return 2;
        }
    }
    try {
        if (cuda_devices().empty()) throw Error("there is no GPU");
        std::printf("%s\n", cuda_devices().front().name.c_str());
        std::printf("Local RX: pixels, bands, INNER / OUTER\n");
        if (around.bands > 0) {
            local(around, inner > 0 ? inner : 15, outer > 0 ? outer : 31, repeat);
            return 0;
        }
        local({128, 64, 200}, 15, 31, repeat);
        local({256, 128, 200}, 15, 31, repeat);
        local({256, 128, 224}, 15, 31, repeat);
        local({256, 128, 100}, 5, 15, repeat);
        local({256, 128, 200}, 3, 11, repeat);
        scores(shape, repeat);
    } catch (const hsi::Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
