// SPDX-License-Identifier: MIT
// Diffusion profiles on the CPU, from memory to memory, compared with the published OpenMP version of paper
// 001. The published results are checked against ours. Also measures the memory bandwidth of the machine,
// which limits the speed of FED steps if each step is a separate pass over memory.
#include "eadp/eadp_simd.h"
#include "eadp/profile.h"
#include "published/eadp.h"
#include "support/memory_cube.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hsi;

int all_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

const test::Cube& planes(int64_t samples, int64_t lines) {
    static std::map<std::pair<int64_t, int64_t>, test::Cube> made;
    auto& cube = made[{samples, lines}];
    if (cube.values.empty()) cube = test::random_scene(samples, lines, 7, 1, 0.05, 100);
    return cube;
}

/// Returns the memory bandwidth of the machine in bytes per second: the bytes that `threads` parallel copies
/// read and write, best of 5.
double copy_bandwidth(int threads) {
    static std::map<int, double> known;
    double& best = known[threads];
    if (best > 0) return best;
    const size_t bytes = size_t{128} << 20;
    const auto n = static_cast<size_t>(threads);
    std::vector<std::vector<char>> from(n, std::vector<char>(bytes, 1)), to(from);
    for (int round = 0; round < 5; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        std::vector<std::thread> team;
        for (size_t t = 0; t < n; ++t)
            team.emplace_back([&, t] { std::memcpy(to[t].data(), from[t].data(), bytes); });
        for (auto& thread : team)
            thread.join();
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        best = std::max(best, 2.0 * static_cast<double>(bytes * n) / seconds.count());
    }
    benchmark::DoNotOptimize(to[0][0]);
    return best;
}

/// Copies a plane that exceeds the caches. Steps without fusion cannot be faster than this copy.
void memory_copy(benchmark::State& state) {
    std::vector<char> from(size_t{256} << 20, 1), to(from.size());
    for (auto _ : state) {
        std::memcpy(to.data(), from.data(), from.size());
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * 2 * static_cast<int64_t>(from.size()));
}

/// The reference: each explicit step is a pass over memory, which reads the plane and two weights and writes
/// the plane.
void plain_step(benchmark::State& state) {
    const int64_t w = 1905, h = 349, pitch = 1905 + 79;
    std::vector<float> a(static_cast<size_t>(pitch * (h + 3)), 1.0f), b(a), east(a), south(a);
    const auto& simd = eadp::sweep_kernels<float>();
    for (auto _ : state) {
        for (int64_t y = 0; y < h; ++y) {
            const size_t at = static_cast<size_t>((y + 1) * pitch + 32);
            simd.sweep(a.data() + at, a.data() + at - pitch, a.data() + at, a.data() + at + pitch,
                       east.data() + at, south.data() + at, south.data() + at - pitch, w, true,
                       b.data() + at);
        }
        std::swap(a, b);
    }
    state.SetBytesProcessed(state.iterations() * w * h * 16);
    // The counter is set as a rate, because Google Benchmark divides rates by the measured seconds.
    state.counters["of_bandwidth"] =
        benchmark::Counter(static_cast<double>(state.iterations() * w * h * 16) / copy_bandwidth(1),
                           benchmark::Counter::kIsRate);
}

eadp::Options paper_options() {
    eadp::Options options;
    for (int c = 1; c <= 8; ++c)
        options.times.push_back(65.0 * c);
    return options;
}

/// Returns the greatest difference between the published copies and our copies in double precision, relative
/// to the range of each component.
double difference_from_ours(const test::Cube& cube, const std::vector<float>& copies) {
    eadp::Options options = paper_options();
    options.precision = eadp::Precision::double_precision;
    const test::MemorySource source(cube);
    test::MemorySink sink(cube.shape.samples, cube.shape.lines, eadp::profile_bands(options, 7));
    eadp::ProfileRun run;
    run.memory = uint64_t{4} << 30;
    run.pass = [](const std::string&, double) {
        stream::PassOptions pass;
        pass.lanes = all_threads();
        return pass;
    };
    eadp::make_profile(
        source, options, *eadp::make_cpu_backend(),
        [&](const eadp::ProfileFacts&) -> stream::CubeSink& { return sink; }, run);
    const auto n = static_cast<size_t>(cube.shape.pixels());
    double largest = 0;
    for (size_t c = 0; c < 7; ++c) {
        const auto [low, high] =
            std::minmax_element(cube.values.begin() + static_cast<ptrdiff_t>(c * n),
                                cube.values.begin() + static_cast<ptrdiff_t>((c + 1) * n));
        for (size_t i = 0; i < 8 * n; ++i) {
            const double d = std::fabs(static_cast<double>(copies[c * 8 * n + i]) -
                                       static_cast<double>(sink.cube.values[(c * 9 + 1) * n + i])) /
                             static_cast<double>(*high - *low);
            if (!(d <= largest)) largest = std::isnan(d) ? INFINITY : d;
        }
    }
    return largest;
}

/// Reports the milliseconds of the stages in Table III as counters.
template <class T>
void published(benchmark::State& state) {
    const auto& cube = planes(state.range(0), state.range(1));
    const auto n = static_cast<size_t>(cube.shape.pixels());
    std::vector<float> copies(7 * 8 * n);
    std::map<std::string, double> ms;
    auto before = std::chrono::steady_clock::now();
    eadp::published::CpuProfile<T> one(
        static_cast<int>(cube.shape.samples), static_cast<int>(cube.shape.lines), paper_options(),
        static_cast<int>(state.range(2)), [&](const char* stage) {
            const auto now = std::chrono::steady_clock::now();
            ms[stage] += std::chrono::duration<double, std::milli>(now - before).count();
            before = now;
        });
    for (auto _ : state) {
        before = std::chrono::steady_clock::now();
        for (size_t c = 0; c < 7; ++c)
            one.run(cube.values.data() + c * n, copies.data() + c * 8 * n);
    }
    for (const auto& [stage, spent] : ms)
        state.counters[stage] = benchmark::Counter(spent, benchmark::Counter::kAvgIterations);
    const double difference = difference_from_ours(cube, copies);
    state.counters["difference"] = difference;
    state.SetLabel(sizeof(T) == 8 ? "double" : "single");
    if (!(difference < (sizeof(T) == 8 ? 1e-6 : 1e-3)))
        state.SkipWithError("the published profile differs from ours");
}

void profile(benchmark::State& state) {
    const auto& cube = planes(state.range(0), state.range(1));
    const test::MemorySource source(cube);
    eadp::Options options = paper_options();
    options.scheme = state.range(2) ? eadp::Scheme::exact : eadp::Scheme::fed;
    options.precision =
        state.range(3) ? eadp::Precision::double_precision : eadp::Precision::single_precision;
    test::MemorySink sink(cube.shape.samples, cube.shape.lines, eadp::profile_bands(options, 7));
    eadp::ProfileRun run;
    run.memory = uint64_t{4} << 30;
    double diffusion = 0, setup = 0;
    run.pass = [&state](const std::string& name, double) {
        stream::PassOptions pass;
        pass.name = name;
        pass.lanes = static_cast<int>(state.range(4));
        return pass;
    };
    run.finished = [&](const stream::PassReport& r) {
        (r.name == "diffusion" ? diffusion : setup) += r.seconds;
    };
    const auto backend = eadp::make_cpu_backend();
    for (auto _ : state)
        eadp::make_profile(
            source, options, *backend, [&](const eadp::ProfileFacts&) -> stream::CubeSink& { return sink; },
            run);
    const auto stages = eadp::make_stages(options);
    const double sweeps = static_cast<double>(cube.shape.pixels()) * 7 * stages[0].degree;
    state.counters["diffusion_s"] = benchmark::Counter(diffusion, benchmark::Counter::kAvgIterations);
    state.counters["scans_s"] = benchmark::Counter(setup, benchmark::Counter::kAvgIterations);
    // Memory traffic if sweeps were not fused: each sweep would read the plane and two weights, and write the
    // plane.
    const double rate = sweeps * 16 * static_cast<double>(state.iterations()) / diffusion;
    state.counters["as_plain_sweeps_B/s"] =
        benchmark::Counter(rate, benchmark::Counter::kDefaults, benchmark::Counter::kIs1000);
    if (options.scheme == eadp::Scheme::fed && options.precision == eadp::Precision::single_precision) {
        // The copies need 454 FED steps. The counter is the share of the memory bandwidth that separate steps
        // would need.
        double steps = 0;
        for (const auto& copy : stages[0].coefficients)
            steps += static_cast<double>(copy.size() - 1);
        state.counters["as_FED_steps_of_bandwidth"] =
            rate * steps / stages[0].degree / copy_bandwidth(static_cast<int>(state.range(4)));
    }
    state.SetLabel(eadp::simd_target());
}

} // namespace

BENCHMARK(memory_copy)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(plain_step)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(profile)
    ->ArgNames({"samples", "lines", "exact", "double", "threads"})
    ->ArgsProduct({{1905}, {349}, {0, 1}, {0, 1}, {1, all_threads()}})
    ->Args({145, 145, 0, 0, all_threads()})
    ->Args({340, 610, 0, 0, all_threads()})
    ->Args({4096, 683, 0, 0, all_threads()}) // planes that exceed every cache
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_TEMPLATE(published, double)
    ->ArgNames({"samples", "lines", "threads"})
    ->ArgsProduct({{1905}, {349}, benchmark::CreateRange(1, all_threads(), 2)})
    ->ArgsProduct({{145}, {145}, {1, all_threads()}})
    ->ArgsProduct({{340}, {610}, {1, all_threads()}})
    ->ArgsProduct({{23}, {17}, {2}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_TEMPLATE(published, float)
    ->ArgNames({"samples", "lines", "threads"})
    ->ArgsProduct({{1905}, {349}, {1, all_threads()}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_MAIN();
