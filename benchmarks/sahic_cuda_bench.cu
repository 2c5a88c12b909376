// SPDX-License-Identifier: MIT
// gdal_hsi_sahic on one GPU, for the two scenes of paper 003: the random field whole and by kernel, class
// probabilities and training through the module. Medians of CUDA events; synthetic scenes.
//
//   sahic_cuda_bench [-repeat N] [-training N]     (N training pixels more, for a third row of training)
#include "core/cuda_module.h"
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "sahic/lorsal.h"
#include "sahic/mrf_cuda_kernels.cuh"
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

struct Size {
    const char* name;
    int lines, samples, bands, classes, training;
    double delta, lambda;
    double k20c, c2075; ///< seconds of the whole process, paper 003, Tables V and VII
    /// Seconds of one iteration's kernels on the K20c, Table VIII: q, fixq, nu_aux3_sum, Vs, V4, V5.
    double kernels[6];
    size_t pixels() const { return static_cast<size_t>(lines) * static_cast<size_t>(samples); }
};
const Size sizes[] = {
    {"Pavia University", 610, 340, 103, 9, 360, 0.35, 1, 10.85, 17.73, {2e-5, 3e-5, 3e-5, 4e-5, 6e-5, 17e-5}},
    {"Indian Pines", 145, 145, 200, 16, 1043, 0.8, 2, 2.95, 4.62, {2e-5, 4e-5, 3e-5, 5e-5, 15e-5, 31e-5}}};

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

double seconds_of(const std::function<void()>& work) {
    const auto begin = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Probabilities of patches, noisy; training pixels; weights.
struct Made {
    std::vector<float> p, weight;
    std::vector<uint16_t> fixed;
    explicit Made(const Size& s)
        : p(static_cast<size_t>(s.classes) * s.pixels()), weight(s.pixels()), fixed(s.pixels(), 0) {
        std::mt19937 random(7);
        std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
        for (size_t i = 0; i < s.pixels(); ++i) {
            const auto y = static_cast<int>(i / static_cast<size_t>(s.samples)),
                       x = static_cast<int>(i % static_cast<size_t>(s.samples));
            const int truth = (y / 17 + x / 23) % s.classes;
            float sum = 0;
            for (int k = 0; k < s.classes; ++k) {
                const float v = std::exp(3.0f * uniform(random) + (k == truth ? 1.2f : 0.0f));
                p[static_cast<size_t>(k) * s.pixels() + i] = v;
                sum += v;
            }
            for (int k = 0; k < s.classes; ++k)
                p[static_cast<size_t>(k) * s.pixels() + i] /= sum;
            weight[i] = 0.3f + 0.6f * uniform(random);
        }
        for (int n = 0; n < s.training; ++n) {
            const size_t i = random() % s.pixels();
            fixed[i] = static_cast<uint16_t>(
                1 + (i / static_cast<size_t>(s.samples) / 17 + i % static_cast<size_t>(s.samples) / 23) %
                        static_cast<size_t>(s.classes));
        }
    }
};

/// Milliseconds of work on a stream.
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

/// Returns the seconds of a whole field, from host memory to host memory.
double field(const Size& s, Backend& backend, int repeat) {
    const Made made(s);
    MrfOptions o;
    o.lambda = s.lambda;
    MrfProblem problem;
    problem.classes = s.classes;
    problem.lines = s.lines;
    problem.samples = s.samples;
    problem.p = made.p.data();
    problem.weight = made.weight.data();
    problem.fixed = made.fixed.data();
    problem.core = {0, 0, s.samples, s.lines};
    const MrfLimits limits{s.classes, s.lines, s.samples};
    std::vector<float> q(made.p.size());
    double seconds_whole = 0;
    {
        const auto solver = backend.make_mrf_solver(o, limits);
        std::vector<double> whole, kernels;
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
    gpu::Field f(o, limits);
    f.upload(problem, stream.get());
    f.iterate(0, 3, stream.get());
    constexpr int many = 50;
    const auto one = [&](const std::function<void()>& launch) {
        return 1e3 / many * time_on(stream.get(), repeat, [&] {
                   for (int i = 0; i < many; ++i)
                       launch();
               });
    };
    const double step = one([&] { f.launch_step(3, stream.get()); });
    const double forward = one([&] { f.launch_transform(false, stream.get()); });
    const double filter = one([&] { f.launch_filter(stream.get()); });
    const double backward = one([&] { f.launch_transform(true, stream.get()); });
    std::printf("  one iteration by kernel: step %.1f us, FFT %.1f us, filter %.1f us, inverse FFT %.1f us "
                "(transform of "
                "%d)\n",
                step, forward, filter, backward, f.work().n);
    static const char* const names[] = {"q", "fixq", "nu_aux3_sum", "Vs", "V4", "V5"};
    std::printf("  Table VIII, one iteration without its FFTs, us; K20c:");
    double sum = 0;
    for (int i = 0; i < 6; ++i) {
        std::printf(" %s_kernel %.0f", names[i], 1e6 * s.kernels[i]);
        sum += 1e6 * s.kernels[i];
    }
    std::printf(", sum %.0f; ours: step %.1f (all but V4), filter %.1f (V4), sum %.1f: %.1f times faster\n",
                sum, step, filter, step + filter, sum / (step + filter));
    return seconds_whole;
}

/// A synthetic scene of clouds round spectra, and training pixels of it.
struct SpectralScene {
    test::Cube cube;
    TrainingSet set;
    SpectralScene(const Size& s, int training) : cube(s.samples, s.lines, s.bands) {
        std::mt19937 random(3);
        std::normal_distribution<float> normal;
        std::vector<std::vector<float>> spectrum(static_cast<size_t>(s.classes));
        for (auto& v : spectrum)
            for (int b = 0; b < s.bands; ++b)
                v.push_back(2000 + 400 * normal(random));
        std::vector<float> noise(8191);
        for (auto& v : noise)
            v = 250 * normal(random);
        size_t n = 0;
        for (int b = 0; b < s.bands; ++b)
            for (int y = 0; y < s.lines; ++y)
                for (int x = 0; x < s.samples; ++x)
                    cube.at(b, y, x) =
                        spectrum[static_cast<size_t>((y / 17 + x / 23) % s.classes)][static_cast<size_t>(b)] +
                        noise[(n += 1 + n % 7) % noise.size()];
        set.features = s.bands;
        set.scale = 5000;
        for (int c = 0; c < s.classes; ++c) {
            ModelClass one;
            one.value = c + 1;
            set.classes.push_back(one);
        }
        for (int i = 0; i < training; ++i) {
            const auto at =
                static_cast<int>((static_cast<int64_t>(i) * 7919) % static_cast<int64_t>(s.pixels()));
            const int y = at / s.samples, x = at % s.samples;
            set.label.push_back(static_cast<uint16_t>(1 + (y / 17 + x / 23) % s.classes));
            for (int b = 0; b < s.bands; ++b)
                set.values.push_back(cube.at(b, y, x));
        }
    }
};

/// Returns the seconds of training and probabilities.
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
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "-repeat") == 0) repeat = std::max(1, std::atoi(argv[i + 1]));
        if (std::strcmp(argv[i], "-training") == 0) more = std::atoi(argv[i + 1]);
    }
    try {
        if (cuda_devices().empty()) {
            std::printf("no GPU here: nothing was measured\n");
            return 1;
        }
        const auto made = make_cuda_backend<Backend>("sahic", {cuda_devices()[0]});
        auto& backend = *made;
        std::printf("%s\n", cuda_devices()[0].name.c_str());
        for (const Size& s : sizes) {
            std::printf("%s, %dx%dx%d, %d classes\n", s.name, s.lines, s.samples, s.bands, s.classes);
            const double whole = spectral(s, backend, s.training, repeat) + field(s, backend, repeat);
            std::printf("  Table %s, the whole, memory to memory, s: C2075 %.2f, K20c %.2f; ours %.3f: %.0f "
                        "times the K20c\n",
                        s.bands == 103 ? "V" : "VII", s.c2075, s.k20c, whole, s.k20c / whole);
            if (more > 0 && s.bands == 103) spectral(s, backend, more, repeat);
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ERROR: %s\n", e.what());
        return 1;
    }
    return 0;
}
