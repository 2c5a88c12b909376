// SPDX-License-Identifier: MIT
// ATDCA on the CPU, from memory to memory: our search (with the scene in memory, or streamed with buffers of
// an eighth of the scene) compared with the serial algorithms of paper 002.
//
//   atdca_cpu_bench --table_iii [N]
// prints the serial rows of the paper's Table III instead, OSP against GS: the times in the paper, the times
// of the same algorithms on one core of this machine, and our times. The explicit projector takes minutes, so
// it is timed on every Nth pixel (default 64), and the time is multiplied by N.
#include "atdca/atdca.h"
#include "published/atdca.h"
#include "support/memory_cube.h"
#include "synth/synth.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
        options.pattern = synth::Pattern::fields;
        options.samples = samples;
        options.lines = lines;
        options.bands = bands;
        options.endmembers = 12;
        options.targets = 12;
        cube = test::Cube(samples, lines, bands);
        synth::MadeScene(options).paint({0, 0, samples, lines}, cube.view(), {});
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
    state.counters["scans"] = found.cost.scan_equivalents;
    state.counters["candidates"] = static_cast<double>(found.cost.pool);
    state.SetLabel(std::string(gs ? "GS " : "OSP ") + (found.cost.in_memory ? "in memory " : "streamed ") +
                   atdca::simd_target());
}

void published(benchmark::State& state) {
    const bool gs = state.range(0) != 0;
    const auto& cube = scene(state.range(1), state.range(2), static_cast<int>(state.range(3)));
    for (auto _ : state)
        benchmark::DoNotOptimize(atdca::published::serial(cube, static_cast<int>(state.range(4)), gs));
    state.SetLabel(gs ? "GS, Algorithm 2" : "OSP, explicit projector");
}

template <class F>
double seconds_of(F f) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double ours(const test::Cube& cube, int targets, bool gs, int threads) {
    const test::MemorySource source(cube);
    atdca::Options options;
    options.targets = targets;
    options.method = gs ? atdca::Method::gs : atdca::Method::osp;
    stream::PassOptions pass;
    pass.lanes = threads;
    pass.memory = cube.shape.float_bytes() * 2;
    const auto once = [&] {
        return seconds_of([&] { benchmark::DoNotOptimize(atdca::detect(source, options, pass)); });
    };
    // The best of three runs excludes the time for new memory, which is not part of the search.
    return std::min({once(), once(), once()});
}

/// Returns every nth pixel, as one line.
test::Cube thinned(const test::Cube& cube, int64_t n) {
    const int64_t pixels = cube.shape.pixels(), kept = pixels / n;
    test::Cube thin(kept, 1, cube.shape.bands);
    for (int b = 0; b < cube.shape.bands; ++b)
        for (int64_t i = 0; i < kept; ++i)
            thin.values[static_cast<size_t>(b * kept + i)] =
                cube.values[static_cast<size_t>(b * pixels + i * n)];
    return thin;
}

void print_table(int64_t share) {
    struct Row {
        const char* name;
        int64_t samples, lines;
        int bands, targets; // the paper does not state the number of targets in the last two scenes
        double paper[2];    // seconds of the serial programs, OSP and GS
    };
    const Row rows[] = {{"World Trade Center", 614, 512, 224, 30, {512.1120, 7.3230}},
                        {"Cuprite", 350, 350, 188, 19, {87.9820, 1.5950}},
                        {"Pavia University", 340, 610, 103, 19, {20.2672, 0.6460}},
                        {"Forest Radiance", 64, 64, 169, 19, {2.2341, 0.0331}}};
    std::printf(
        "Table III, serial, seconds (synthetic scenes of the paper's sizes; as published: OSP on every "
        "%lldth pixel, times "
        "%lld)\n",
        static_cast<long long>(share), static_cast<long long>(share));
    std::printf("%-20s %-4s %12s %14s %14s %14s\n", "scene", "", "paper", "as published", "ours, 1 thread",
                (std::to_string(all_threads()) + " threads").c_str());
    for (const Row& row : rows) {
        const auto& cube = scene(row.samples, row.lines, row.bands);
        double published_seconds[2];
        const auto thin = thinned(cube, share);
        published_seconds[0] =
            static_cast<double>(share) *
            seconds_of([&] { benchmark::DoNotOptimize(atdca::published::serial(thin, row.targets, false)); });
        published_seconds[1] =
            seconds_of([&] { benchmark::DoNotOptimize(atdca::published::serial(cube, row.targets, true)); });
        for (const int gs : {0, 1})
            std::printf("%-20s %-4s %12.4f %14.4f %14.4f %14.4f\n", gs ? "" : row.name, gs ? "GS" : "OSP",
                        row.paper[gs], published_seconds[gs], ours(cube, row.targets, gs != 0, 1),
                        ours(cube, row.targets, gs != 0, all_threads()));
        std::printf("%-20s %-4s %12.1f %14.1f\n", "", "OSP/GS", row.paper[0] / row.paper[1],
                    published_seconds[0] / published_seconds[1]);
        std::fflush(stdout);
    }
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

int main(int argc, char** argv) {
    if (argc > 1 && std::strcmp(argv[1], "--table_iii") == 0) {
        const long share = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 64;
        if (share < 1) {
            std::fprintf(stderr, "--table_iii: '%s' is no number of pixels\n", argv[2]);
            return 2;
        }
        print_table(share);
        return 0;
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
