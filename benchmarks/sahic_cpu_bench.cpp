// SPDX-License-Identifier: MIT
// SAHIC on the CPU, from memory to memory, with the sizes of paper 003's two scenes. Times the training, the
// probabilities and weights, the 200 iterations of the Markov random field, and one iteration by kernel (the
// paper's Table VIII). One of our loops does the work of several of the paper's kernels.
#include "sahic/lorsal.h"
#include "sahic/mrf_spectrum.h"
#include "sahic/sahic.h"
#include "sahic/sahic_simd.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <thread>

namespace {

using namespace hsi;

struct Scene {
    const char* name;
    int64_t lines, samples;
    int bands, classes, training;
};
// The numbers of training pixels are those of Tables IV and VI.
constexpr Scene scenes[] = {{"Indian Pines", 145, 145, 200, 16, 1043},
                            {"Pavia University", 610, 340, 103, 9, 360},
                            {"lines of 4096 samples", 512, 4096, 224, 9, 360}};

int threads_of(int64_t argument) {
    return argument > 0 ? static_cast<int>(argument)
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Returns a training set with spectra of overlapping classes, and a gradient inside each class.
sahic::TrainingSet training_set(const Scene& s) {
    sahic::TrainingSet set;
    set.features = s.bands;
    set.scale = 9000;
    std::mt19937 random(3);
    std::normal_distribution<float> noise(0, 90), shift(0, 350);
    for (int k = 1; k <= s.classes; ++k) {
        sahic::ModelClass one;
        one.value = k;
        set.classes.push_back(one);
    }
    for (int i = 0; i < s.training; ++i) {
        const int k = i % s.classes;
        const float offset = shift(random), tilt = shift(random);
        set.label.push_back(static_cast<uint16_t>(k + 1));
        for (int b = 0; b < s.bands; ++b) {
            const float x = static_cast<float>(b) / static_cast<float>(s.bands);
            set.values.push_back(3000 + 900 * std::sin(4 * x + 0.3f * static_cast<float>(k)) + offset +
                                 tilt * x + noise(random));
        }
    }
    return set;
}

const sahic::LorsalResult& model(int scene) {
    static std::map<int, sahic::LorsalResult> made;
    if (!made.count(scene)) {
        sahic::LorsalOptions o;
        o.threads = threads_of(0);
        made[scene] = sahic::train(training_set(scenes[scene]), o);
    }
    return made[scene];
}

void training(benchmark::State& state) {
    const Scene& s = scenes[state.range(0)];
    const auto set = training_set(s);
    sahic::LorsalOptions o;
    o.threads = threads_of(state.range(1));
    o.iterations = static_cast<int>(state.range(2));
    for (auto _ : state)
        benchmark::DoNotOptimize(sahic::train(set, o).objective);
    state.SetLabel(s.name);
}

void optimum(benchmark::State& state) {
    const Scene& s = scenes[state.range(0)];
    const auto set = training_set(s);
    sahic::LorsalOptions o;
    o.threads = threads_of(state.range(1));
    o.optimum = true;
    for (auto _ : state) {
        const auto r = sahic::train(set, o);
        state.counters["objective"] = r.objective;
        state.counters["relative_gap"] = r.gap / r.objective;
        state.counters["active"] = static_cast<double>(r.model.active_weights());
        state.counters["steps"] = r.iterations;
    }
    state.SetLabel(s.name);
}

void probabilities(benchmark::State& state) {
    const Scene& s = scenes[state.range(0)];
    const auto shared =
        std::make_shared<const sahic::MlrModel>(model(static_cast<int>(state.range(0))).model);
    test::Cube cube = test::random_scene(s.samples, s.lines, s.bands, 1, 0.05, 100);
    for (auto& v : cube.values)
        v = 1000 + 60 * v;
    const test::MemorySource source(cube);
    for (auto _ : state) {
        sahic::SpectralOptions o;
        o.probabilities = o.weight = true;
        const auto pass = sahic::make_spectral_pass(shared, o, s.samples, s.lines);
        test::MemorySink p(s.samples, s.lines, s.classes), a(s.samples, s.lines, 1);
        stream::PassOptions pass_options;
        pass_options.lanes = threads_of(state.range(1));
        stream::run_pass(source, *pass, {&p, &a}, pass_options);
    }
    state.SetLabel(s.name);
}

struct Field {
    std::vector<float> p, weight;
    std::vector<uint16_t> fixed;
    explicit Field(const Scene& s)
        : p(static_cast<size_t>(s.classes * s.lines * s.samples)),
          weight(static_cast<size_t>(s.lines * s.samples)), fixed(weight.size(), 0) {
        std::mt19937 random(5);
        std::uniform_real_distribution<float> uniform(0, 1);
        for (size_t i = 0; i < weight.size(); ++i) {
            float sum = 0;
            for (int k = 0; k < s.classes; ++k)
                sum += p[static_cast<size_t>(k) * weight.size() + i] = std::exp(4 * uniform(random));
            for (int k = 0; k < s.classes; ++k)
                p[static_cast<size_t>(k) * weight.size() + i] /= sum;
            weight[i] = 0.3f + 0.6f * uniform(random);
        }
        for (int i = 0; i < s.training; ++i)
            fixed[static_cast<size_t>(uniform(random) * static_cast<float>(weight.size() - 1))] =
                static_cast<uint16_t>(1 + i % s.classes);
    }
};

void random_field(benchmark::State& state) {
    const Scene& s = scenes[state.range(0)];
    const Field field(s);
    sahic::MrfOptions o;
    o.iterations = static_cast<int>(state.range(2));
    const auto solver =
        sahic::make_mrf_solver(o, {s.classes, s.lines, s.samples}, threads_of(state.range(1)));
    sahic::MrfProblem m;
    m.classes = s.classes;
    m.lines = s.lines;
    m.samples = s.samples;
    m.p = field.p.data();
    m.weight = field.weight.data();
    m.fixed = field.fixed.data();
    m.core = {0, 0, s.samples, s.lines};
    std::vector<float> q(field.p.size());
    for (auto _ : state)
        benchmark::DoNotOptimize(solver->solve(m, q.data(), nullptr).objective);
    state.SetLabel(s.name);
}

/// The loops of one iteration. Each is timed on one thread, for all classes and lines.
enum class Kernel { pixels, pixels_fixed, sums, edges, fft, filter };

void kernel(benchmark::State& state) {
    const Scene& s = scenes[state.range(0)];
    const auto which = static_cast<Kernel>(state.range(1));
    const auto& simd = sahic::mrf_kernels();
    const int64_t stride = (s.samples + 15) / 16 * 16 + 32, rows = s.lines * s.classes;
    const auto size = static_cast<size_t>(stride * (rows + 1) + 64);
    std::vector<std::vector<float>> a(12, std::vector<float>(size, 0.1f));
    std::vector<float> fixed(static_cast<size_t>(stride), -1.0f);
    std::vector<float> uh(static_cast<size_t>(stride + 32), 0.1f), uv(uh), sh(uh), sv(uh), rhs(uh), sum(uh);
    const auto& spectrum = sahic::spectrum_kernels();
    sahic::SpectrumPlan plan(s.samples, s.classes);
    plan.prepare();
    constexpr int64_t block_lines = 16, width = sahic::SpectrumPlan::width;
    const int64_t batches = plan.planes(s.classes) * ((s.lines + plan.lines() - 1) / plan.lines());
    std::vector<float> block(static_cast<size_t>(block_lines / plan.lines() * plan.batch()), 0.1f);
    std::vector<float> line(static_cast<size_t>(plan.extended() + width), 0.1f),
        v4(static_cast<size_t>(plan.segments() * plan.length), 0.1f);
    std::vector<float> from_above(static_cast<size_t>(plan.row()), 0.1f), from_below(from_above),
        extra(static_cast<size_t>(plan.batch()));
    const float* segments[2][width];
    float* samples[2][width];
    for (int64_t i = 0; i < 2 * width; ++i) {
        segments[i / width][i % width] = line.data() + i % plan.segments() * plan.length;
        samples[i / width][i % width] = v4.data() + i % plan.segments() * plan.length;
    }
    float* lines[block_lines];
    for (int64_t i = 0; i < block_lines; ++i)
        lines[i] = block.data() + i / plan.lines() * plan.batch() + i % plan.lines() * plan.lanes;
    for (auto _ : state) {
        if (which == Kernel::fft) {
            for (int64_t i = 0; i < batches; ++i) {
                float* const batch =
                    block.data() + i * plan.lines() % block_lines / plan.lines() * plan.batch();
                spectrum.gather(plan, segments, batch);
                spectrum.forward(plan, batch);
                spectrum.backward(plan, batch);
                spectrum.scatter(plan, batch, samples);
            }
        } else if (which == Kernel::filter) {
            for (int64_t i = 0; i < plan.planes(s.classes); ++i)
                for (int64_t y = 0; y < s.lines; y += block_lines) {
                    const sahic::SpectrumBlock one{std::min(block_lines, s.lines - y), lines,
                                                   from_above.data(), from_below.data()};
                    float* const beyond[2] = {extra.data(), extra.data() + plan.lanes};
                    spectrum.ends(plan, one);
                    spectrum.solve(plan, one, beyond);
                }
        } else {
            for (int64_t row = 0; row < (which == Kernel::sums ? s.lines : rows); ++row) {
                const auto at = static_cast<size_t>(row * stride) + 16;
                if (which == Kernel::sums) {
                    simd.sums(s.samples, sum.data(), 1.0f / static_cast<float>(s.classes), a[0].data() + at,
                              a[1].data() + at);
                } else if (which == Kernel::edges) {
                    sahic::EdgeRow e;
                    e.samples = s.samples;
                    e.v4 = a[0].data() + at;
                    e.v4_below = a[0].data() + at + stride;
                    e.th_old = a[1].data() + at;
                    e.tv_old = a[2].data() + at;
                    e.th = a[3].data() + at;
                    e.tv = a[4].data() + at;
                    e.threshold = a[5].data() + static_cast<size_t>(row % s.lines * stride);
                    e.uh = uh.data() + 16;
                    e.uv = uv.data() + 16;
                    e.sh = sh.data() + 16;
                    e.sv = sv.data() + 16;
                    simd.edges_isotropic(e);
                } else {
                    sahic::SiteRow p;
                    p.samples = s.samples;
                    p.p = a[0].data() + at;
                    p.v4 = a[1].data() + at;
                    p.e = a[2].data() + static_cast<size_t>(row % s.lines * stride);
                    p.fixed = which == Kernel::pixels_fixed ? fixed.data() : nullptr;
                    p.mu = 0.05f;
                    p.uh = uh.data() + 16;
                    p.uv = p.uv_above = uv.data() + 16;
                    p.sh = sh.data() + 16;
                    p.sv = p.sv_above = sv.data() + 16;
                    p.q = a[3].data() + at;
                    p.d1 = a[4].data() + at;
                    p.t = a[5].data() + at;
                    p.rhs = rhs.data();
                    p.sum = sum.data();
                    simd.pixels(p);
                }
            }
        }
        benchmark::ClobberMemory();
        // Otherwise the values would decay over the iterations.
        if (which == Kernel::filter) std::fill(block.begin(), block.end(), 0.1f);
    }
    // Table VIII, serial version, seconds: one iteration of the same work in the paper.
    static constexpr double published[2][6] = {
        {0.01734 + 0.01482, 0.01734 + 0.00056 + 0.01482, 0.00191, 0.01442, 0, 0},
        {0.07368 + 0.06727, 0.07368 + 0.00012 + 0.06727, 0.00692, 0.08223, 0, 0}};
    static constexpr const char* names[] = {"q and Vs", "q, fixq and Vs", "nu_aux3_sum",
                                            "V5",       "V4: FFT",        "V4: columns"};
    state.SetLabel(std::string(s.name) + ", " + names[static_cast<size_t>(which)]);
    if (const double paper = published[state.range(0)][static_cast<size_t>(which)]; paper > 0)
        state.counters["paper_serial_ms"] = 1e3 * paper;
}

void sizes(benchmark::internal::Benchmark* b) {
    for (const int64_t scene : {0, 1})
        for (const int64_t threads : {1, 0})
            b->Args({scene, threads});
}

} // namespace

// Scene 0: Indian Pines; 1: Pavia University. Threads 0: all threads.
BENCHMARK(training)
    ->ArgNames({"scene", "threads", "steps"})
    ->ArgsProduct({{0, 1}, {1, 0}, {1, 200}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(optimum)
    ->ArgNames({"scene", "threads"})
    ->Apply(sizes)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(probabilities)
    ->ArgNames({"scene", "threads"})
    ->Apply(sizes)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(random_field)
    ->ArgNames({"scene", "threads", "iterations"})
    ->ArgsProduct({{0, 1}, {1, 0}, {200}})
    ->ArgsProduct({{2}, {1, 0}, {60}})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK(kernel)
    ->ArgNames({"scene", "kernel"})
    ->ArgsProduct({{0, 1}, {0, 1, 2, 3, 4, 5}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_MAIN();
