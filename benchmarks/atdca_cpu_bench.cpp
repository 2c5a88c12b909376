// SPDX-License-Identifier: MIT
// ATDCA on the CPU from memory to memory: our search (scene kept, or streamed with an eighth of its size), beside the
// serial algorithms of paper 002 as they are listed there.
#include "atdca/atdca.h"
#include "atdca_published.h"
#include "support/memory_cube.h"
#include "synth/synth.h"

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <thread>

namespace {

using namespace hsi;

const test::Cube& scene(int64_t samples, int64_t lines, int bands) {
    static std::map<int64_t, test::Cube> made;
    auto& cube = made[samples * lines * bands];
    if (cube.values.empty()) {
        synth::Options options;
        options.samples = samples;
        options.lines = lines;
        options.bands = bands;
        options.endmembers = 12;
        options.targets = 12;
        cube = test::Cube(samples, lines, bands);
        synth::Scene(options).paint({0, 0, samples, lines}, cube.view(), {});
    }
    return cube;
}

int all_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void search(benchmark::State& state) {
    const bool gs = state.range(0) != 0, streamed = state.range(1) != 0;
    const auto& cube = scene(state.range(2), state.range(3), static_cast<int>(state.range(4)));
    const test::MemorySource source(cube);
    atdca::Options options;
    options.targets = static_cast<int>(state.range(5));
    options.method = gs ? atdca::Method::gs : atdca::Method::osp;
    stream::PassOptions pass;
    pass.lanes = static_cast<int>(state.range(6));
    pass.memory = streamed ? cube.shape.float_bytes() / 8 : cube.shape.float_bytes() * 2;
    atdca::Detection found;
    for (auto _ : state)
        found = atdca::detect(source, options, pass);
    state.counters["scans"] = found.economy.scan_equivalents;
    state.counters["candidates"] = static_cast<double>(found.economy.pool);
    state.SetLabel(std::string(gs ? "GS " : "OSP ") + (found.economy.in_memory ? "in memory " : "streamed ") +
                   atdca::simd_target());
}

void published(benchmark::State& state) {
    const bool gs = state.range(0) != 0;
    const auto& cube = scene(state.range(1), state.range(2), static_cast<int>(state.range(3)));
    for (auto _ : state)
        benchmark::DoNotOptimize(atdca::published::serial(cube, static_cast<int>(state.range(4)), gs));
    state.SetLabel(gs ? "GS, Algorithm 2" : "OSP, explicit projector");
}

} // namespace

BENCHMARK(search)
    ->ArgNames({"gs", "streamed", "samples", "lines", "bands", "t", "threads"})
    ->ArgsProduct({{0, 1}, {0, 1}, {614}, {512}, {224}, {30}, {1, all_threads()}})
    ->ArgsProduct({{0, 1}, {0, 1}, {350}, {350}, {188}, {19}, {1, all_threads()}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(published)
    ->ArgNames({"gs", "samples", "lines", "bands", "t"})
    ->Args({1, 614, 512, 224, 30})
    ->Args({1, 350, 350, 188, 19})
    ->Args({0, 350, 350, 188, 19})
    ->Args({0, 614, 512, 224, 30})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_MAIN();
