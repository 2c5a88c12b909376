// SPDX-License-Identifier: MIT
// Tables V, VII and VIII of paper 003 on the CPU of this machine: the published SAHIC_S and SAHIC_M compared
// with our version, from memory to memory, on synthetic scenes with the paper's sizes. Each variant trains,
// computes probabilities and solves the Markov random field with a periodic border. The published results are
// checked against ours: the exit code is 1 if they differ.
//
//   sahic_published_bench [-iterations N] [-threads N] [-scene NAME] [-size SAMPLES LINES BANDS CLASSES
//       TRAINING]
//
// The published Markov random field runs N of its 200 iterations (default 20); the time is scaled to 200. On
// a machine with other load, set OMP_WAIT_POLICY=passive: otherwise OpenMP threads use processor time while
// they wait.
#include "published/sahic.h"
#include "published/sahic_lorsal.h"
#include "sahic/lorsal.h"
#include "sahic_scenes.h"
#include "stream/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hsi;
using namespace hsi::sahic;

struct Seconds {
    double wall = 0, processor = 0;
    Seconds operator+(const Seconds& o) const { return {wall + o.wall, processor + o.processor}; }
    Seconds operator*(double f) const { return {wall * f, processor * f}; }
};

template <class F>
Seconds seconds_of(F work) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t processor = std::clock();
    work();
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
            static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC};
}

struct Settings {
    int iterations = 20, threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    std::string scene;
    std::vector<Size> sizes{std::begin(sahic::sizes), std::end(sahic::sizes)};
};

struct Outcome {
    FieldInput input;
    std::vector<float> q; ///< solution after Settings::iterations iterations
};

void row(const char* name, int threads, const Seconds& training, const Seconds& spectral,
         const Seconds& field) {
    const Seconds all = training + spectral + field;
    std::printf(
        "  %-8s %3d threads: training %.3f, probabilities %.3f, field %.3f, all %.3f s; processor %.3f s",
        name, threads, training.wall, spectral.wall, field.wall, all.wall, all.processor);
}

LorsalOptions training_options(const Size& s, int threads) {
    LorsalOptions o;
    o.delta = s.delta;
    o.threads = threads;
    return o;
}

Outcome ours(const Size& s, const SpectralScene& scene, const Settings& settings, int threads) {
    Outcome out;
    LorsalResult trained;
    const Seconds training = seconds_of([&] { trained = train(scene.set, training_options(s, threads)); });
    test::MemorySink p(s.samples, s.lines, s.classes), a(s.samples, s.lines, 1);
    const Seconds spectral = seconds_of([&] {
        const test::MemorySource source(scene.cube);
        SpectralOptions o;
        o.probabilities = o.weight = true;
        for (int b = 0; b < s.bands; ++b) {
            for (int x = 0; x < s.samples; ++x)
                o.first_line.push_back(scene.cube.at(b, 0, x));
            for (int y = 0; y < s.lines; ++y)
                o.first_sample.push_back(scene.cube.at(b, y, 0));
        }
        const auto pass = make_spectral_pass(std::make_shared<const MlrModel>(std::move(trained.model)), o,
                                             s.samples, s.lines);
        stream::PassOptions pass_options;
        pass_options.lanes = threads;
        stream::run_pass(source, *pass, {&p, &a}, pass_options);
    });
    out.input = {p.cube.values, a.cube.values, scene.fixed};
    out.q.resize(out.input.p.size());
    const MrfLimits limits{s.classes, s.lines, s.samples};
    const MrfProblem problem = out.input.problem(s, true);
    MrfOptions o = s.field();
    const Seconds field =
        seconds_of([&] { make_mrf_solver(o, limits, threads)->solve(problem, out.q.data(), nullptr); });
    row("ours", threads, training, spectral, field);
    std::printf("\n");
    o.iterations = settings.iterations;
    make_mrf_solver(o, limits, threads)->solve(problem, out.q.data(), nullptr);
    return out;
}

/// Prints the milliseconds of each of the paper's kernels (medians of three runs).
void kernels(published::Field& field) {
    using F = published::Field;
    void (F::*const steps[])() = {&F::q_step,  &F::fixq_step, &F::nu_aux3_sum_step,  &F::vs_step,
                                  &F::v4_step, &F::v5_step,   &F::transforms_before, &F::transforms_after,
                                  &F::d4_step};
    std::printf("  SAHIC_S, one iteration by kernel, ms of processor time:");
    for (size_t i = 0; i < std::size(steps); ++i) {
        std::vector<double> ms;
        for (int round = 0; round < 3; ++round)
            ms.push_back(1e3 * seconds_of([&] { (field.*steps[i])(); }).processor);
        std::sort(ms.begin(), ms.end());
        if (i < 6)
            std::printf(" %s_kernel %.3f", kernel_names[i], ms[1]);
        else
            std::printf(", %s %.3f",
                        i == 6   ? "transforms before V4"
                        : i == 7 ? "transforms before V5"
                                 : "D4",
                        ms[1]);
    }
    std::printf("\n");
}

/// Runs a published variant, and compares it with `truth`. threads: 0 for SAHIC_S.
bool published_variant(const Size& s, const SpectralScene& scene, const Settings& settings, int threads,
                       const Outcome& truth) {
    const std::string name = threads > 0 ? "SAHIC_M" : "SAHIC_S";
    std::unique_ptr<published::Lorsal> lorsal;
    const Seconds training = seconds_of(
        [&] { lorsal = std::make_unique<published::Lorsal>(scene.set, training_options(s, 1), threads); });
    FieldInput input;
    const Seconds spectral = seconds_of([&] {
        input = {lorsal->probabilities(scene.cube), lorsal->weights(scene.cube), scene.fixed};
    });
    std::unique_ptr<published::Field> field;
    const Seconds setup = seconds_of([&] {
        field = std::make_unique<published::Field>(input.problem(s, true), s.field(), std::max(1, threads));
    });
    const Seconds some = seconds_of([&] { field->iterate(settings.iterations); });
    row(name.c_str(), std::max(1, threads), training, spectral, setup + some * (200.0 / settings.iterations));
    if (settings.iterations != 200)
        std::printf(" (field: %d iterations, times %g)", settings.iterations, 200.0 / settings.iterations);
    std::printf("\n");
    const Agreement p(input.p, truth.input.p, s.classes), a(input.weight, truth.input.weight, 1),
        q(field->result(), truth.q, s.classes);
    const bool good = p.good() && a.good() && q.good();
    std::printf("  %s against ours: probabilities differ by at most %.1e, weights %.1e, the field %.1e; "
                "labels of %lld of "
                "%lld pixels%s\n",
                name.c_str(), p.largest, a.largest, q.largest, static_cast<long long>(q.labels),
                static_cast<long long>(q.pixels), good ? "" : "  WRONG");
    if (threads == 0) kernels(*field);
    return good;
}

Settings parse(int argc, char** argv) {
    Settings s;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        const auto next = [&] {
            if (++i >= argc) throw std::invalid_argument(option + " needs a value");
            return std::string(argv[i]);
        };
        if (option == "-iterations") {
            s.iterations = std::stoi(next());
        } else if (option == "-threads") {
            s.threads = std::stoi(next());
        } else if (option == "-scene") {
            s.scene = next();
        } else if (option == "-size") {
            Size one = s.sizes[0];
            one.name = "scene";
            for (int* value : {&one.samples, &one.lines, &one.bands, &one.classes, &one.training})
                *value = std::stoi(next());
            s.sizes = {one};
        } else {
            throw std::invalid_argument("unknown option " + option);
        }
    }
    if (s.iterations < 1 || s.iterations > 200 || s.threads < 1)
        throw std::invalid_argument("-iterations: 1 to 200; -threads: from 1 on");
    return s;
}

} // namespace

int main(int argc, char** argv) {
    try {
        const Settings settings = parse(argc, argv);
        bool good = true, any = false;
        for (const Size& s : settings.sizes) {
            if (!settings.scene.empty() && settings.scene != s.name) continue;
            any = true;
            std::printf("%s, %dx%dx%d, %d classes, %d training pixels\n", s.name, s.lines, s.samples, s.bands,
                        s.classes, s.training);
            const SpectralScene scene(s, s.training);
            const Outcome truth = ours(s, scene, settings, 1);
            ours(s, scene, settings, settings.threads);
            good = published_variant(s, scene, settings, settings.threads, truth) && good;
            good = published_variant(s, scene, settings, 0, truth) && good;
        }
        if (!any) throw std::invalid_argument("-scene: no scene is called " + settings.scene);
        return good ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "sahic_published_bench: %s\n", e.what());
        return 2;
    }
}
