// SPDX-License-Identifier: MIT
// SPP on the CPU, from memory to memory: the kernels of the backend without files, and the published serial
// program of paper 004, which is checked against ours. The scenes have the sizes of the paper's scenes.
#include "published/spp.h"
#include "spp/spp.h"
#include "stream/pipeline.h"
#include "stream/statistics_scan.h"
#include "support/memory_cube.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

namespace {

using namespace hsi;

/// Returns a cube with spectra that change smoothly over the scene. Each size is made once.
const test::Cube& scene(int64_t samples, int64_t lines, int bands) {
    static std::map<int64_t, test::Cube> made;
    auto& cube = made[samples * lines * bands];
    if (cube.values.empty()) {
        cube = test::Cube(samples, lines, bands);
        for (int b = 0; b < bands; ++b)
            for (int64_t l = 0; l < lines; ++l)
                for (int64_t s = 0; s < samples; ++s) {
                    const auto hash = static_cast<uint32_t>((b * lines + l) * samples + s) * 2654435761u;
                    cube.at(b, l, s) =
                        2.0f + std::sin(0.05f * static_cast<float>(b) + 0.01f * static_cast<float>(l + s)) +
                        0.05f * static_cast<float>(hash >> 8) / 16777216.0f;
                }
    }
    return cube;
}

int all_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void centroid(benchmark::State& state) {
    const auto& cube = scene(614, 512, 224);
    const test::MemorySource source(cube);
    stream::PassOptions options;
    options.lanes = static_cast<int>(state.range(0));
    for (auto _ : state) {
        stream::StatisticsScan scan(cube.shape, stream::Statistics::means);
        stream::run_pass(source, scan, {}, options);
        benchmark::DoNotOptimize(scan.result().mean);
    }
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(cube.shape.float_bytes()));
}

void displacement(benchmark::State& state) {
    const auto& cube = scene(state.range(1), state.range(2), static_cast<int>(state.range(3)));
    const test::MemorySource source(cube);
    test::MemorySink sink(cube.shape.samples, cube.shape.lines, cube.shape.bands);
    spp::Options options;
    options.window = static_cast<int>(state.range(0));
    const auto operation =
        spp::make_displacement(options, std::vector<double>(static_cast<size_t>(cube.shape.bands), 2.0));
    stream::PassOptions pass;
    pass.lanes = static_cast<int>(state.range(4));
    double compute = 0;
    for (auto _ : state)
        compute += stream::run_pass(source, *operation, {&sink}, pass).compute_seconds;
    state.counters["compute_s_per_lane"] =
        benchmark::Counter(compute / static_cast<double>(pass.lanes), benchmark::Counter::kAvgIterations);
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(cube.shape.float_bytes()));
    state.SetLabel(spp::simd_target());
}

/// Times the published program. Checks its result against ours, with the scene's own centroid.
void serial(benchmark::State& state) {
    const int ws = static_cast<int>(state.range(0));
    const auto& cube = scene(state.range(1), state.range(2), static_cast<int>(state.range(3)));
    const auto [samples, lines, bands] = cube.shape;
    const int64_t count = samples * lines;
    std::vector<float> pixels(cube.values.size()), out(pixels.size());
    for (int b = 0; b < bands; ++b)
        for (int64_t p = 0; p < count; ++p)
            pixels[static_cast<size_t>(p * bands + b)] = cube.values[static_cast<size_t>(b * count + p)];
    for (auto _ : state)
        published::serial(pixels.data(), static_cast<int>(samples), static_cast<int>(lines), bands, ws,
                          out.data());
    const test::MemorySource source(cube);
    stream::StatisticsScan scan(cube.shape, stream::Statistics::means);
    stream::run_pass(source, scan, {}, {});
    spp::Options options;
    options.window = ws;
    test::MemorySink sink(samples, lines, bands);
    stream::run_pass(source, *spp::make_displacement(options, scan.result().mean), {&sink}, {});
    double largest = 0; // largest difference, relative to the value
    for (int b = 0; b < bands; ++b)
        for (int64_t p = 0; p < count; ++p) {
            const double want = sink.cube.values[static_cast<size_t>(b * count + p)];
            largest = std::max(largest,
                               std::fabs(out[static_cast<size_t>(p * bands + b)] - want) / std::fabs(want));
        }
    state.counters["difference"] = largest;
    // The published program computes arccos of a cosine in single precision. The paper's Table I states a
    // difference of 5e-3 for it.
    if (!(largest < 1e-2)) state.SkipWithError("the published program differs from ours");
}

} // namespace

BENCHMARK(centroid)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(all_threads())
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(displacement)
    ->ArgNames({"ws", "samples", "lines", "bands", "threads"})
    ->ArgsProduct({{3, 5, 9, 15}, {350}, {350}, {188}, {1, all_threads()}})
    ->ArgsProduct({{3, 5, 9, 15, 31}, {614}, {512}, {224}, {1, all_threads()}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(serial)
    ->ArgNames({"ws", "samples", "lines", "bands"})
    ->ArgsProduct({{3, 5, 7, 9, 11, 13, 15}, {614}, {512}, {224}})
    ->ArgsProduct({{3, 5}, {40}, {30}, {12}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_MAIN();
