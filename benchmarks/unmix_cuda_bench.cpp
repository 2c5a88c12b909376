// SPDX-License-Identifier: MIT
// Unmixing on the GPU, through the module that the tool loads. Prints the times of the kernels, of the whole
// pass from memory to memory with its copies, and of the CPU backend on the same computer. The abundances of
// GPU and CPU are compared bit by bit.
#include "core/cuda_module.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"
#include "unmix/unmix.h"
#include "unmix/unmix_scene.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace hsi;

unmix::Backend& backend() {
    static const auto made = make_cuda_backend<unmix::Backend>("unmix", cuda_devices());
    return *made;
}

struct Run {
    test::Cube abundances;
    double seconds = 0;
};

Run unmixed(unmix::Unmixing& operation, const test::Cube& cube, int size, int lanes, bool one_tile) {
    const test::MemorySource source(cube);
    test::MemorySink abundances(cube.shape.samples, cube.shape.lines, size);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.memory = uint64_t{8} << 30;
    if (one_tile) {
        pass.tile_samples = cube.shape.samples;
        pass.tile_lines = cube.shape.lines;
    }
    const auto begin = std::chrono::steady_clock::now();
    stream::run_pass(source, operation, {&abundances}, pass);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return {std::move(abundances.cube), seconds};
}

void bench(unmix::Method method, const char* name, int endmembers, int rounds) {
    constexpr int bands = 224;
    const auto e = test::spectra(endmembers, bands, 1);
    const auto cube = test::mixtures(e, 512, 614, 2);
    const unmix::Options options{method, false};
    std::vector<double> kernels, passes;
    Run gpu;
    for (int round = 0; round < rounds + 2; ++round) {
        const double before = backend().kernel_seconds();
        gpu = unmixed(*backend().make_unmixing(e, options), cube, endmembers, 1, true);
        // The first two rounds are not counted: the device starts, and buffers are pinned for the first time.
        if (round < 2) continue;
        kernels.push_back(1e3 * (backend().kernel_seconds() - before));
        passes.push_back(1e3 * gpu.seconds);
    }
    std::sort(kernels.begin(), kernels.end());
    std::sort(passes.begin(), passes.end());
    const auto threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const auto cpu = unmixed(*unmix::make_unmixing(e, options), cube, endmembers, threads, false);
    std::printf(
        "%s, %d endmembers, 512 x 614 x %d: kernels %.2f ms (%.2f .. %.2f), whole pass %.1f ms, median of "
        "%d; CPU, %d threads: %.0f ms; %s\n",
        name, endmembers, bands, kernels[kernels.size() / 2], kernels.front(), kernels.back(),
        passes[passes.size() / 2], rounds, threads, 1e3 * cpu.seconds,
        identical(cpu.abundances, gpu.abundances) ? "the same bits" : "OTHER BITS");
}

} // namespace

int main() {
    if (cuda_devices().empty()) {
        std::printf("no GPU here\n");
        return 1;
    }
    bench(unmix::Method::fcls, "fcls", 4, 9);
    bench(unmix::Method::fcls, "fcls", 10, 9);
    bench(unmix::Method::nnls, "nnls", 10, 9);
    bench(unmix::Method::ucls, "ucls", 10, 9);
    bench(unmix::Method::fcls, "fcls", 16, 9);
    bench(unmix::Method::fcls, "fcls", 30, 5);
    return 0;
}
