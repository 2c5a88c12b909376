// SPDX-License-Identifier: MIT
// Classification on the GPU, from memory to memory. Prints the times of the kernels, of the whole pass with
// its copies, and of the CPU backend on the same computer. The labels of GPU and CPU are compared pixel by
// pixel. The model is synthetic: its support vectors are pixels of the scene, as many as in a trained model.
#include "core/cuda_module.h"
#include "core/error.h"
#include "stream/pipeline.h"
#include "svm/svm_scene.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

namespace {

using namespace hsi;

svm::Backend& backend() {
    static const auto made = make_cuda_backend<svm::Backend>("svm", cuda_devices());
    return *made;
}

struct Run {
    test::Cube labels;
    double seconds = 0;
    int64_t repeated = 0;
};

Run classify(svm::Classification& operation, const test::Cube& cube, int lanes, bool one_tile) {
    const auto shape = cube.shape;
    const test::MemorySource source(cube);
    test::MemorySink labels(shape.samples, shape.lines, 1),
        probabilities(shape.samples, shape.lines, operation.model().class_count()),
        confidence(shape.samples, shape.lines, 1);
    std::vector<stream::CubeSink*> sinks{&labels};
    if (operation.options().probabilities) sinks.push_back(&probabilities);
    if (operation.options().confidence) sinks.push_back(&confidence);
    stream::PassOptions pass;
    pass.lanes = lanes;
    pass.memory = uint64_t{8} << 30;
    if (one_tile) {
        pass.tile_samples = shape.samples;
        pass.tile_lines = shape.lines;
    }
    const auto begin = std::chrono::steady_clock::now();
    stream::run_pass(source, operation, sinks, pass);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return {labels.cube, seconds, operation.repeated()};
}

void bench(const char* title, int64_t samples, int64_t lines, int bands, int classes, int vectors_of_class,
           int rounds) {
    const auto scene = test::class_scene(samples, lines, bands, classes, 1.5, 12);
    const auto model =
        std::make_shared<svm::Model>(test::made_model(scene, classes, vectors_of_class, 0.125, 8, true, 13));
    std::printf("%s: %lld x %lld pixels, %d features, %d classes, %lld support vectors\n", title,
                static_cast<long long>(samples), static_cast<long long>(lines), bands, classes,
                static_cast<long long>(model->vector_count()));
    Run gpu;
    for (const bool estimates : {false, true}) {
        svm::ClassifyOptions options;
        options.probabilities = options.confidence = estimates;
        std::vector<double> kernels, passes;
        for (int round = 0; round < rounds + 2; ++round) {
            const double before = backend().kernel_seconds();
            auto run = classify(*backend().make_classification(model, options), scene.cube, 1, true);
            // The first two rounds are not counted: the device starts, and buffers are pinned for the first
            // time.
            if (round < 2) continue;
            kernels.push_back(1e3 * (backend().kernel_seconds() - before));
            passes.push_back(1e3 * run.seconds);
            if (!estimates) gpu = std::move(run);
        }
        std::sort(kernels.begin(), kernels.end());
        std::sort(passes.begin(), passes.end());
        std::printf("  GPU, %s: kernels %.3f ms (%.3f .. %.3f), whole pass %.1f ms; median of %d\n",
                    estimates ? "labels, probabilities, confidence" : "labels", kernels[kernels.size() / 2],
                    kernels.front(), kernels.back(), passes[passes.size() / 2], rounds);
    }
    const auto threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const auto cpu = classify(*svm::make_classification(model, {}), scene.cube, threads, false);
    int64_t equal = 0;
    for (size_t i = 0; i < cpu.labels.values.size(); ++i)
        equal += cpu.labels.values[i] == gpu.labels.values[i];
    std::printf(
        "  CPU, %d threads, %s: %.1f ms; labels equal on %.6f %% of the pixels (%lld repeated by the GPU, "
        "%lld by the CPU)\n",
        threads, svm::simd_target(), 1e3 * cpu.seconds,
        100.0 * static_cast<double>(equal) / static_cast<double>(cpu.labels.values.size()),
        static_cast<long long>(gpu.repeated), static_cast<long long>(cpu.repeated));
}

} // namespace

int main() {
    try {
        if (cuda_devices().empty()) {
            std::fprintf(stderr, "no GPU here\n");
            return 1;
        }
        bench("The size of Pavia University's profile", 340, 610, 63, 9, 166, 21);
        bench("The size of Indian Pines, all bands", 145, 145, 200, 16, 40, 21);
    } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
