// SPDX-License-Identifier: MIT
// mag1c and the matched filter on the GPU, through the module that gdal_hsi_gas loads. Prints the times of
// the kernels, of the whole pass from memory to memory with its copies, and of the CPU on the same computer.
#include "core/cuda_module.h"
#include "gas/gas.h"
#include "gas/gas_scene.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace hsi;

struct Run {
    test::Cube enhancement;
    double seconds = 0;
};

Run filtered(gas::Filter& operation, const test::Cube& cube, int lanes, int64_t samples) {
    const test::MemorySource source(cube);
    test::MemorySink sink(cube.shape.samples, cube.shape.lines, 1);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.memory = uint64_t{8} << 30;
    pass.tile_samples = samples;
    pass.tile_lines = cube.shape.lines;
    const auto begin = std::chrono::steady_clock::now();
    stream::run_pass(source, operation, {&sink}, pass);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return {std::move(sink.cube), seconds};
}

void bench(gas::Backend& backend, gas::Method method, const char* name, int64_t lines, int64_t width) {
    constexpr int bands = 50, rounds = 7;
    constexpr int64_t samples = 1242;
    const auto cube = test::scene_with_plume(samples, lines, bands);
    gas::FilterOptions options;
    options.method = method;
    options.absorption = test::absorption_of(bands);
    const stream::Columns columns{0, width};
    std::vector<double> kernels, passes;
    Run gpu;
    for (int round = 0; round < rounds + 2; ++round) {
        const double before = backend.kernel_seconds();
        gpu = filtered(*backend.make_filter(cube.shape, columns, options, nullptr), cube, 1, samples);
        // The first two rounds are not counted: the device starts, and buffers are pinned for the first time.
        if (round < 2) continue;
        kernels.push_back(1e3 * (backend.kernel_seconds() - before));
        passes.push_back(1e3 * gpu.seconds);
    }
    std::sort(kernels.begin(), kernels.end());
    std::sort(passes.begin(), passes.end());
    const auto threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const auto cpu = filtered(*gas::make_filter(cube.shape, columns, options, nullptr), cube, threads,
                              std::min(samples, std::max<int64_t>(16, width)));
    int64_t others = 0;
    double most = 0;
    for (size_t i = 0; i < cpu.enhancement.values.size(); ++i) {
        const double a = cpu.enhancement.values[i], b = gpu.enhancement.values[i];
        if (std::isnan(a) != std::isnan(b)) ++others;
        if (!std::isnan(a) && !std::isnan(b)) most = std::max(most, std::fabs(a - b));
    }
    std::printf(
        "%s, %d x %d x %d, %d columns a group: kernels %.2f ms (%.2f .. %.2f), whole pass %.1f ms, median of "
        "%d; CPU, %d threads: %.0f ms; furthest %.2g ppm m, %d other holes\n",
        name, static_cast<int>(samples), static_cast<int>(lines), bands, static_cast<int>(width),
        kernels[kernels.size() / 2], kernels.front(), kernels.back(), passes[passes.size() / 2], rounds,
        threads, 1e3 * cpu.seconds, most, static_cast<int>(others));
}

} // namespace

int main() {
    if (cuda_devices().empty()) {
        std::printf("no GPU here\n");
        return 1;
    }
    const auto backend = make_cuda_backend<gas::Backend>("gas", cuda_devices());
    bench(*backend, gas::Method::mag1c, "mag1c", 1280, 1);
    bench(*backend, gas::Method::mag1c, "mag1c", 2528, 1);
    bench(*backend, gas::Method::mag1c, "mag1c", 1280, 5);
    bench(*backend, gas::Method::mag1c, "mag1c", 1280, 1242);
    bench(*backend, gas::Method::mf, "mf", 1280, 1);
    bench(*backend, gas::Method::lognormal, "lognormal", 1280, 1);
    return 0;
}
