// SPDX-License-Identifier: MIT
// gdal_hsi_sahic on one GPU, for synthetic scenes with the sizes of paper 003's two scenes: the Markov random
// field as a whole and by kernel, compared with the published kernels (SAHIC_P); class probabilities and
// training through the module. Times are medians of CUDA events. The published Markov random field is checked
// against ours with the same border.
//
//   sahic_cuda_bench [-repeat N] [-training N] [-published 0|1]
// -training: adds a row of training with this number of pixels
#include "core/cuda_module.h"
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "published/sahic.cuh"
#include "sahic/lorsal.h"
#include "sahic/mrf_cuda_kernels.cuh"
#include "sahic_scenes.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace hsi;
using namespace hsi::sahic;
using Clock = std::chrono::steady_clock;

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

double seconds_of(const std::function<void()>& work) {
    const auto begin = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Returns the median time of some work on a stream, in milliseconds.
double time_on(cudaStream_t stream, int repeat, const std::function<void()>& work) {
    cuda::Event begin(cuda::Event::Timing::on), end(cuda::Event::Timing::on);
    std::vector<double> times;
    for (int i = 0; i < repeat + 2; ++i) {
        begin.record(stream);
        work();
        end.record(stream);
        end.wait();
        if (i >= 2) times.push_back(static_cast<double>(end.milliseconds_since(begin)));
    }
    return median(times);
}

constexpr int many = 50; ///< number of launches per measurement

/// Returns the time of one launch, in microseconds.
double microseconds(cudaStream_t stream, int repeat, const std::function<void()>& launch) {
    return 1e3 / many * time_on(stream, repeat, [&] {
               for (int i = 0; i < many; ++i)
                   launch();
           });
}

/// Returns the seconds of a whole Markov random field, from CPU memory to CPU memory.
double field(const Size& s, const MadeField& made, Backend& backend, int repeat) {
    const MrfOptions o = s.field();
    const MrfProblem problem = made.problem(s, false);
    const MrfLimits limits{s.classes, s.lines, s.samples};
    std::vector<float> q(made.p.size());
    std::vector<double> whole, kernels;
    {
        const auto solver = backend.make_mrf_solver(o, limits);
        for (int i = 0; i < repeat + 2; ++i) {
            const double before = backend.kernel_seconds()[2];
            const double seconds = seconds_of([&] { solver->solve(problem, q.data(), nullptr); });
            if (i < 2) continue;
            whole.push_back(1e3 * seconds);
            kernels.push_back(1e3 * (backend.kernel_seconds()[2] - before));
        }
        std::printf(
            "  random field, 200 iterations: %.3f ms on the device, %.3f ms with copies and residuals\n",
            median(kernels), median(whole));
    }
    const cuda::Stream stream;
    gpu::DeviceMrf f(o, limits);
    f.upload(problem, stream.get());
    f.iterate(0, 3, stream.get());
    const auto one = [&](const std::function<void()>& launch) {
        return microseconds(stream.get(), repeat, launch);
    };
    const double step = one([&] { f.launch_step(3, stream.get()); });
    const double forward = one([&] { f.launch_transform(false, stream.get()); });
    const double filter = one([&] { f.launch_filter(stream.get()); });
    const double backward = one([&] { f.launch_transform(true, stream.get()); });
    std::printf("  one iteration by kernel: step %.1f us, FFT %.1f us, filter %.1f us, inverse FFT %.1f us "
                "(transform of "
                "%d)\n",
                step, forward, filter, backward, f.work().n);
    std::printf("  Table VIII, one iteration without its FFTs, us; K20c:");
    double sum = 0;
    for (int i = 0; i < 6; ++i) {
        std::printf(" %s_kernel %.0f", kernel_names[i], 1e6 * s.kernels[i]);
        sum += 1e6 * s.kernels[i];
    }
    std::printf(", sum %.0f; ours: step %.1f (all but V4), filter %.1f (V4), sum %.1f: %.1f times faster\n",
                sum, step, filter, step + filter, sum / (step + filter));
    return median(whole) / 1e3;
}

struct PublishedField {
    double seconds = 0; ///< seconds, from CPU memory to CPU memory
    bool good = false;  ///< true if the result agrees with ours
};

/// Times the published kernels on the same problem, except that the border is periodic.
PublishedField published_field(const Size& s, const MadeField& made, Backend& backend, int repeat) {
    using published::Step;
    const MrfOptions o = s.field();
    const MrfProblem problem = made.problem(s, true);
    cuda::Stream stream;
    published::CudaField f(problem, o, stream.get());
    f.upload();
    const double device = time_on(stream.get(), repeat, [&] { f.iterate(o.iterations); });
    std::vector<double> whole;
    std::vector<float> q;
    for (int i = 0; i < repeat; ++i)
        whole.push_back(1e3 * seconds_of([&] {
                            f.upload();
                            f.iterate(o.iterations);
                            f.copy_back();
                        }));
    q = f.result();
    std::printf("  SAHIC_P's random field, 200 iterations: %.3f ms on the device, %.3f ms with copies\n",
                device, median(whole));
    // The next launches are only timed. Their results are not used: the result was copied before.
    constexpr Step steps[] = {Step::q,  Step::fixq, Step::nu_aux3_sum,       Step::vs,
                              Step::v4, Step::v5,   Step::transforms_before, Step::transforms_after,
                              Step::d4};
    std::printf("  SAHIC_P, one iteration by kernel, us:");
    for (size_t i = 0; i < 9; ++i) {
        const double us = microseconds(stream.get(), repeat, [&] { f.launch(steps[i]); });
        if (i < 6)
            std::printf(" %s_kernel %.1f", kernel_names[i], us);
        else
            std::printf(", %s %.1f",
                        i == 6   ? "transforms before V4"
                        : i == 7 ? "transforms before V5"
                                 : "D4",
                        us);
    }
    std::vector<float> ours(q.size());
    backend.make_mrf_solver(o, {s.classes, s.lines, s.samples})->solve(problem, ours.data(), nullptr);
    const Agreement a(q, ours, s.classes);
    std::printf("\n  SAHIC_P against ours, both periodic: probabilities differ by at most %.1e, labels of "
                "%lld of %lld "
                "pixels%s\n",
                a.largest, static_cast<long long>(a.labels), static_cast<long long>(a.pixels),
                a.good() ? "" : "  WRONG");
    return {median(whole) / 1e3, a.good()};
}

/// Returns the seconds of the training and of the probabilities.
double spectral(const Size& s, Backend& backend, int training, int repeat) {
    const SpectralScene scene(s, training);
    LorsalOptions o;
    o.delta = s.delta;
    LorsalResult result;
    std::vector<double> times;
    for (int i = 0; i < std::min(repeat, 3) + 1; ++i) {
        const double seconds = seconds_of([&] { result = backend.train(scene.set, o); });
        if (i > 0) times.push_back(seconds);
    }
    std::printf("  training, %d pixels: %.3f s, objective %.6g, %lld active features\n", training,
                median(times), result.objective, static_cast<long long>(result.active_features));
    const double training_seconds = median(times);
    const auto model = std::make_shared<const MlrModel>(result.model);
    SpectralOptions options;
    options.probabilities = options.weight = true;
    times.clear();
    std::vector<double> whole;
    for (int i = 0; i < std::min(repeat, 5) + 1; ++i) {
        const test::MemorySource source(scene.cube);
        test::MemorySink p(s.samples, s.lines, s.classes), a(s.samples, s.lines, 1);
        const auto operation = backend.make_spectral_pass(model, options, s.samples, s.lines);
        const double before = backend.kernel_seconds()[1];
        stream::PassOptions pass;
        pass.lanes = 2;
        pass.memory = uint64_t{4} << 30;
        const double seconds = seconds_of([&] { stream::run_pass(source, *operation, {&p, &a}, pass); });
        if (i == 0) continue;
        whole.push_back(1e3 * seconds);
        times.push_back(1e3 * (backend.kernel_seconds()[1] - before));
    }
    std::printf(
        "  probabilities and weights, %lld anchors: %.2f ms of kernels, %.1f ms through the pipeline\n",
        static_cast<long long>(model->anchor_count()), median(times), median(whole));
    return training_seconds + median(whole) / 1e3;
}

} // namespace

int main(int argc, char** argv) {
    int repeat = 15, more = 0;
    bool published = true, good = true;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "-repeat") == 0) repeat = std::max(1, std::atoi(argv[i + 1]));
        if (std::strcmp(argv[i], "-training") == 0) more = std::atoi(argv[i + 1]);
        if (std::strcmp(argv[i], "-published") == 0) published = std::strcmp(argv[i + 1], "0") != 0;
    }
    try {
        if (cuda_devices().empty()) {
            std::printf("no GPU here: nothing was measured\n");
            return 1;
        }
        const auto made_backend = make_cuda_backend<Backend>("sahic", {cuda_devices()[0]});
        auto& backend = *made_backend;
        std::printf("%s\n", cuda_devices()[0].name.c_str());
        for (const Size& s : sizes) {
            std::printf("%s, %dx%dx%d, %d classes\n", s.name, s.lines, s.samples, s.bands, s.classes);
            const MadeField made(s);
            const double before = spectral(s, backend, s.training, repeat);
            const double whole = before + field(s, made, backend, repeat);
            std::printf("  Table %s, the whole, memory to memory, s: C2075 %.2f, K20c %.2f; ours %.4f: %.0f "
                        "times the K20c\n",
                        s.bands == 103 ? "V" : "VII", s.c2075, s.k20c, whole, s.k20c / whole);
            if (published) {
                const PublishedField p = published_field(s, made, backend, repeat);
                good = good && p.good;
                std::printf(
                    "  SAHIC_P here: its random field after our training and probabilities, s: %.4f\n",
                    before + p.seconds);
            }
            if (more > 0 && s.bands == 103) spectral(s, backend, more, repeat);
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ERROR: %s\n", e.what());
        return 1;
    }
    return good ? 0 : 1;
}
