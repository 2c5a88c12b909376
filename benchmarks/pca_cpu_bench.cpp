// SPDX-License-Identifier: MIT
// PCA on the CPU, from memory to memory: the covariance scan, the eigenproblem and the projection; also the
// scan of MNF. Rates of the scans are computed from processor time, so they depend less on other load.
#include "math/linear_algebra.h"
#include "pca/pca.h"
#include "stream/pipeline.h"
#include "stream/statistics_scan.h"
#include "support/memory_cube.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <thread>

namespace {

using namespace hsi;

const test::Cube& scene() {
    static const test::Cube cube = test::random_scene(614, 512, 224);
    return cube;
}
int all_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void covariance(benchmark::State& state) {
    const auto& cube = scene();
    const test::MemorySource source(cube);
    stream::PassOptions options;
    options.lanes = static_cast<int>(state.range(0));
    for (auto _ : state) {
        stream::StatisticsScan scan(cube.shape, stream::Statistics::covariance);
        stream::run_pass(source, scan, {}, options);
        benchmark::DoNotOptimize(scan.result().mean);
    }
    const auto n = static_cast<double>(cube.shape.bands);
    state.counters["GFLOP/s"] =
        benchmark::Counter(n * (n + 1) * static_cast<double>(cube.shape.pixels()) * 1e-9,
                           benchmark::Counter::kIsIterationInvariantRate);
}

/// Times the scan for both matrices of MNF. For eight pixels of a line, it computes eight products for the
/// pixels, and one more for the pair of neighbours at the border to the next eight pixels (a factor of 9/8 =
/// 1.125).
void moments(benchmark::State& state) {
    const auto& cube = scene();
    const test::MemorySource source(cube);
    stream::PassOptions options;
    options.lanes = static_cast<int>(state.range(0));
    for (auto _ : state) {
        stream::StatisticsScan scan(cube.shape, stream::Statistics::differences);
        stream::run_pass(source, scan, {}, options);
        benchmark::DoNotOptimize(scan.result().mean);
    }
    const auto n = static_cast<double>(cube.shape.bands);
    state.counters["GFLOP/s"] =
        benchmark::Counter(1.125 * n * (n + 1) * static_cast<double>(cube.shape.pixels()) * 1e-9,
                           benchmark::Counter::kIsIterationInvariantRate);
}

const stream::SceneStatistics& statistics() {
    static const stream::SceneStatistics r = [] {
        const test::MemorySource source(scene());
        stream::StatisticsScan scan(scene().shape, stream::Statistics::covariance);
        stream::run_pass(source, scan, {}, {});
        return scan.result();
    }();
    return r;
}

void eigenproblem(benchmark::State& state) {
    const auto& s = statistics();
    for (auto _ : state)
        benchmark::DoNotOptimize(math::eigen_symmetric(s.covariance, s.bands).values);
}

void projection(benchmark::State& state) {
    const auto& cube = scene();
    const auto model = pca::fit(statistics(), {static_cast<int>(state.range(0)), false, false});
    std::vector<int> all;
    for (int b = 0; b < cube.shape.bands; ++b)
        all.push_back(b);
    const auto operation =
        pca::make_transform(pca::projection(model, model.components, all, cube.shape.bands));
    const test::MemorySource source(cube);
    test::MemorySink sink(cube.shape.samples, cube.shape.lines, model.components);
    stream::PassOptions options;
    options.lanes = static_cast<int>(state.range(1));
    for (auto _ : state)
        stream::run_pass(source, *operation, {&sink}, options);
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(cube.shape.float_bytes()));
    state.SetLabel(pca::simd_target());
}

} // namespace

BENCHMARK(covariance)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(all_threads())
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();
BENCHMARK(moments)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(all_threads())
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();
BENCHMARK(eigenproblem)->Unit(benchmark::kMillisecond);
BENCHMARK(projection)
    ->ArgNames({"nc", "threads"})
    ->ArgsProduct({{7, 30, 224}, {1, all_threads()}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_MAIN();
