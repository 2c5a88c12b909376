// SPDX-License-Identifier: MIT
// Common parts of the benchmarks of statistics and projections on a GPU: the cube, the measurement of times,
// and the command line.
#pragma once

#include "core/error.h"
#include "cuda/check.h"
#include "cuda/stream.h"
#include "stream/pipeline.h"
#include "stream/plane_store.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace hsi::bench {

/// Makes mixtures of smooth spectra with noise.
inline void make_cube(const stream::CubeShape& shape, stream::PlaneStore& store) {
    constexpr int materials = 12;
    const int bands = shape.bands;
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(0, 1);
    std::normal_distribution<float> normal;
    std::vector<float> spectra(static_cast<size_t>(materials * bands));
    for (int m = 0; m < materials; ++m) {
        float v = 0.2f + 0.3f * uniform(random);
        for (int b = 0; b < bands; ++b)
            spectra[static_cast<size_t>(m * bands + b)] = v =
                std::max(0.05f, v + 0.06f * (uniform(random) - 0.5f));
    }
    std::vector<float> noise(1 << 18);
    for (auto& n : noise)
        n = 0.005f * normal(random);
    std::vector<int> every(static_cast<size_t>(bands));
    std::iota(every.begin(), every.end(), 0);
    const auto sink = store.sink(every);
    std::vector<float> line(static_cast<size_t>(shape.samples) * static_cast<size_t>(bands));
    for (int64_t y = 0; y < shape.lines; ++y) {
        for (int64_t x = 0; x < shape.samples; ++x) {
            float share[materials], total = 0;
            for (float& s : share) {
                s = std::pow(uniform(random), 4.0f);
                total += s;
            }
            const size_t at = random();
            for (int b = 0; b < bands; ++b) {
                float v = noise[(at + static_cast<size_t>(b)) & (noise.size() - 1)];
                for (int m = 0; m < materials; ++m)
                    v += share[m] / total * spectra[static_cast<size_t>(m * bands + b)];
                line[static_cast<size_t>(b) * static_cast<size_t>(shape.samples) + static_cast<size_t>(x)] =
                    v;
            }
        }
        sink->write({0, y, shape.samples, 1}, CubeView<float>::packed(line.data(), bands, 1, shape.samples));
    }
}

/// A cube in memory, passes over the cube on all threads, and memory for the results.
struct Passes {
    Passes(const stream::CubeShape& shape, int components)
        : store(shape), planes({shape.samples, shape.lines, components}) {
        std::printf("%lldx%lld, %d bands, %d components\n", static_cast<long long>(shape.samples),
                    static_cast<long long>(shape.lines), shape.bands, components);
        make_cube(shape, store);
        bands.resize(static_cast<size_t>(shape.bands));
        std::iota(bands.begin(), bands.end(), 0);
        source = store.source(bands);
        std::vector<int> made(static_cast<size_t>(components));
        std::iota(made.begin(), made.end(), 0);
        sink = planes.sink(made);
        options.lanes = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        options.memory = uint64_t{8} << 30;
    }
    stream::PlaneStore store, planes;
    std::vector<int> bands; ///< indices of all bands
    decltype(std::declval<stream::PlaneStore>().source({})) source;
    decltype(std::declval<stream::PlaneStore>().sink({})) sink;
    stream::PassOptions options;
};

/// Returns the duration of a run in milliseconds, by the clock of the CPU.
inline double time_on_host(const std::function<void()>& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

inline double time_of(cudaStream_t stream, int repeat, const std::function<void()>& run) {
    cuda::Event begin(cuda::Event::Timing::on), end(cuda::Event::Timing::on);
    run();
    std::vector<double> times;
    for (int i = 0; i < repeat; ++i) {
        begin.record(stream);
        run();
        end.record(stream);
        end.wait();
        times.push_back(static_cast<double>(end.milliseconds_since(begin)));
    }
    return median(times);
}

/// Parses the arguments [-repeat N] [-size SAMPLES LINES BANDS] [-nc N] and calls measure(shape, components,
/// repeat). Returns the exit code.
template <class Measure>
int run(int argc, char** argv, Measure measure) {
    int repeat = 21, components = 7;
    stream::CubeShape shape{614, 512, 224};
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "-repeat") && i + 1 < argc)
            repeat = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "-nc") && i + 1 < argc)
            components = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "-size") && i + 3 < argc) {
            shape = {std::atoi(argv[i + 1]), std::atoi(argv[i + 2]), std::atoi(argv[i + 3])};
            i += 3;
        } else {
            std::fprintf(stderr, "usage: %s [-repeat N] [-size SAMPLES LINES BANDS] [-nc N]\n", argv[0]);
            return 2;
        }
    }
    try {
        cudaDeviceProp device{};
        HSI_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
        std::printf("%s\n", device.name);
        measure(shape, components, repeat);
    } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}

} // namespace hsi::bench
