// SPDX-License-Identifier: MIT
// ATDCA on one GPU with the cube in device memory: our search compared with the searches of paper 002 (OSP
// with explicit projector, and GS), on synthetic scenes with the sizes of the paper's four scenes. Finally
// prints Table III. All searches start from the same band-sequential cube. Our search first converts the cube
// to pixels and computes their norms (preparing). Times of our search are medians of CUDA events around the
// launches. Times of the published searches are medians of the CPU's clock around all steps, including work
// on the CPU.
//
//   atdca_cuda_bench [-repeat N] [-published 0|1] [-dump FOLDER] [-raw FILE SAMPLES LINES BANDS TARGETS]
// -raw: uses a band-sequential file of floats instead of the synthetic scenes.
// -dump: writes the synthetic scenes as band-sequential files, FOLDER/NAME.raw, for atdca_peer.py.
#include "atdca/atdca_cuda_kernels.cuh"
#include "cuda/stream.h"
#include "published/atdca.cuh"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>

namespace {

using namespace hsi;
using cuda::DeviceBuffer;

struct Scene {
    std::string name;
    int samples, lines, bands, targets;
    std::vector<float> cube;
    size_t pixels() const { return static_cast<size_t>(samples) * static_cast<size_t>(lines); }
};

/// Makes mixtures of smooth spectra. The mixtures change over about eight pixels and are unevenly lit; the
/// noise is half a per cent. Single pixels contain rare materials.
void fill(Scene& s) {
    constexpr int materials = 20;
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
    std::normal_distribution<float> normal;
    std::vector<float> spectra(static_cast<size_t>(materials * s.bands));
    for (int m = 0; m < materials; ++m) {
        float v = 0.2f + 0.3f * uniform(random);
        for (int b = 0; b < s.bands; ++b) {
            v = std::min(1.0f, std::max(0.05f, v + 0.05f * (uniform(random) - 0.5f)));
            spectra[static_cast<size_t>(m * s.bands + b)] = v;
        }
    }
    std::vector<float> noise(1 << 20);
    for (float& n : noise)
        n = 0.005f * normal(random);
    s.cube.resize(s.pixels() * static_cast<size_t>(s.bands));
    const int gx = s.samples / 8 + 2, gy = s.lines / 8 + 2;
    std::vector<float> grid(static_cast<size_t>(materials * gx * gy));
    for (float& g : grid)
        g = uniform(random);
    std::vector<float> x(static_cast<size_t>(s.bands));
    for (int l = 0; l < s.lines; ++l)
        for (int i = 0; i < s.samples; ++i) {
            float share[materials], total = 0;
            for (int m = 0; m < materials; ++m) {
                const float g =
                    grid[(static_cast<size_t>(m) * static_cast<size_t>(gy) + static_cast<size_t>(l / 8)) *
                             static_cast<size_t>(gx) +
                         static_cast<size_t>(i / 8)];
                const float v = g * g * g * g + 0.02f * uniform(random);
                total += share[m] = v * v;
            }
            const float light = 0.5f + uniform(random);
            std::fill(x.begin(), x.end(), 0.0f);
            const bool rare = uniform(random) < 1e-4f;
            const int pure = static_cast<int>(uniform(random) * materials) % materials;
            for (int m = 0; m < materials; ++m) {
                const float a = light * (rare ? (m == pure ? 1.0f : 0.0f) : share[m] / total);
                for (int b = 0; b < s.bands; ++b)
                    x[static_cast<size_t>(b)] += a * spectra[static_cast<size_t>(m * s.bands + b)];
            }
            size_t at = random() & 0xfffff;
            for (int b = 0; b < s.bands; ++b, at = (at + 1) & 0xfffff)
                s.cube[static_cast<size_t>(b) * s.pixels() +
                       static_cast<size_t>(l) * static_cast<size_t>(s.samples) + static_cast<size_t>(i)] =
                    x[static_cast<size_t>(b)] + noise[at];
        }
}

/// Times in milliseconds: [0] OSP, [1] GS.
struct Row {
    double ours[2] = {}, published[2] = {};
};

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

size_t agreeing(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    size_t same = 0;
    while (same < std::min(a.size(), b.size()) && a[same] == b[same])
        ++same;
    return same;
}

/// Prints Fig. 2 of the paper: the share of each step in the device time of the published GS, with and
/// without the paper's optimisations, including the copy of the cube to the device. The times of each step
/// are added up in a second run; the first run is a warm-up.
void print_shares(const Scene& scene, const DeviceBuffer<float>& cube, int64_t pitch,
                  const std::vector<int64_t>& ours, cudaStream_t stream) {
    const size_t bands = static_cast<size_t>(scene.bands), pixels = scene.pixels();
    std::vector<float> turned(pixels * bands);
    for (size_t b = 0; b < bands; ++b)
        for (size_t i = 0; i < pixels; ++i)
            turned[i * bands + b] = scene.cube[b * pixels + i];
    for (const bool optimised : {false, true}) {
        atdca::published::Search search(cube.data(), scene.bands, static_cast<int>(pixels),
                                        optimised ? pitch : 0, stream);
        std::map<std::string, std::pair<double, int>> spent;
        std::vector<int64_t> found;
        for (int round = 0; round < 2; ++round) {
            spent.clear();
            cuda::Event before(cuda::Event::Timing::on), now(cuda::Event::Timing::on);
            const auto tick = [&](const char* step) {
                now.record(stream);
                now.wait();
                auto& [ms, calls] = spent[step];
                ms += static_cast<double>(now.milliseconds_since(before));
                ++calls;
                std::swap(before, now);
            };
            before.record(stream);
            if (optimised)
                HSI_CUDA_CHECK(cudaMemcpy2DAsync(cube.data(), static_cast<size_t>(pitch) * 4,
                                                 scene.cube.data(), pixels * 4, pixels * 4, bands,
                                                 cudaMemcpyHostToDevice, stream));
            else
                HSI_CUDA_CHECK(cudaMemcpyAsync(cube.data(), turned.data(), turned.size() * 4,
                                               cudaMemcpyHostToDevice, stream));
            tick("transfers");
            found = search.run(scene.targets, true, tick);
        }
        spent.erase("host");
        double all = 0;
        for (const auto& [step, one] : spent)
            all += one.first;
        std::printf("  Fig. 2, GS %s optimisations:", optimised ? "with" : "without");
        for (const auto& [step, one] : spent)
            std::printf(" %s %.1f %% (%d),", step.c_str(), 100 * one.first / all, one.second);
        std::printf(" of %.3f ms; the first %zu targets are ours\n", all, agreeing(ours, found));
    }
}

Row measure(const Scene& scene, int repeat, bool published) {
    Row row;
    cuda::Stream stream;
    atdca::gpu::SearchWork work;
    auto& shape = work.shape;
    shape.bands = scene.bands;
    shape.pixels = static_cast<int64_t>(scene.pixels());
    shape.targets = scene.targets;
    const auto pixels = static_cast<size_t>(shape.pitch()), groups = static_cast<size_t>(shape.groups()),
               targets = static_cast<size_t>(shape.targets), bands = static_cast<size_t>(shape.bands);
    DeviceBuffer<float> cube(pixels * bands), prepared(static_cast<size_t>(shape.cube_bytes() / 4));
    DeviceBuffer<double> norm(pixels), score(pixels), greatest(groups), basis(targets * bands),
        found_score(targets);
    DeviceBuffer<int> applied(pixels);
    DeviceBuffer<unsigned char> scratch(static_cast<size_t>(atdca::gpu::SearchWork::scratch_bytes(shape)));
    DeviceBuffer<int64_t> found(targets);
    DeviceBuffer<atdca::gpu::SearchResult> result(1);
    work.cube = prepared.data();
    atdca::gpu::PrepareTile whole;
    whole.data = cube.data();
    whole.band_stride = shape.pitch();
    whole.samples = whole.line_stride = whole.scene_samples = shape.pixels;
    whole.lines = 1;
    work.norm = norm.data();
    work.score = score.data();
    work.greatest = greatest.data();
    work.applied = applied.data();
    work.basis = basis.data();
    work.scratch = scratch.data();
    work.found = found.data();
    work.found_score = found_score.data();
    work.result = result.data();
    HSI_CUDA_CHECK(cudaMemcpy2DAsync(cube.data(), pixels * 4, scene.cube.data(), scene.pixels() * 4,
                                     scene.pixels() * 4, bands, cudaMemcpyHostToDevice, stream.get()));
    stream.synchronize();
    std::printf("%s: %dx%dx%d, t = %d, %.0f MB\n", scene.name.c_str(), scene.samples, scene.lines,
                scene.bands, scene.targets, static_cast<double>(shape.cube_bytes()) / 1e6);
    for (const bool gs : {false, true}) {
        shape.gs = gs;
        std::vector<double> times, preparing;
        for (int i = 0; i < repeat + 3; ++i) {
            cuda::Event begin(cuda::Event::Timing::on), middle(cuda::Event::Timing::on),
                end(cuda::Event::Timing::on);
            begin.record(stream.get());
            atdca::gpu::launch_prepare(work, whole, stream.get());
            middle.record(stream.get());
            atdca::gpu::launch_search(work, stream.get());
            end.record(stream.get());
            end.wait();
            if (i < 3) continue;
            times.push_back(static_cast<double>(end.milliseconds_since(begin)));
            preparing.push_back(static_cast<double>(middle.milliseconds_since(begin)));
        }
        row.ours[gs] = median(times);
        atdca::gpu::SearchResult outcome{};
        std::vector<int64_t> ours(targets);
        result.download(&outcome, 1, stream.get());
        found.download(ours.data(), targets, stream.get());
        stream.synchronize();
        ours.resize(static_cast<size_t>(outcome.found));
        std::printf("  %-24s %10.3f ms (fastest %.3f; preparing %.3f of it), %d targets, %.2f scans\n",
                    gs ? "GS, ours" : "OSP, ours", row.ours[gs],
                    *std::min_element(times.begin(), times.end()), median(preparing), outcome.found,
                    1 + static_cast<double>(outcome.visits) / static_cast<double>(shape.pixels));
        if (!published) continue;
        atdca::published::Search search(cube.data(), scene.bands, static_cast<int>(scene.pixels()),
                                        shape.pitch(), stream.get());
        std::vector<int64_t> theirs;
        times.clear();
        for (int i = 0; i < (gs ? 6 : 3); ++i) {
            const auto begin = std::chrono::steady_clock::now();
            theirs = search.run(scene.targets, gs);
            if (i > 0)
                times.push_back(
                    1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        }
        row.published[gs] = median(times);
        std::printf("  %-24s %10.3f ms, the first %zu targets are ours\n",
                    gs ? "GS, as published" : "OSP, as published", row.published[gs], agreeing(ours, theirs));
        if (gs) print_shares(scene, cube, shape.pitch(), ours, stream.get());
    }
    return row;
}

/// Prints Table III of paper 002: seconds of OSP and GS for each scene, on the best GPU of the paper and on
/// this GPU.
void print_table(const std::vector<Scene>& scenes, const std::vector<Row>& rows, bool published) {
    const char* const names[] = {"WTC", "Cuprite", "Pavia University", "Forest Radiance"};
    const double paper[][2] = {{10.5747, 0.1554}, {1.9947, 0.0456}, {0.5834, 0.0308}, {0.1837, 0.0035}};
    std::printf("\nTable III, seconds; the paper's times hold reading and transfers, the others start with "
                "the cube on the "
                "device\n");
    std::printf("%-18s %-6s %18s %18s %12s %14s\n", "scene", "", "paper, GTX 580", "published, here", "ours",
                "OSP/GS, ours");
    for (size_t k = 0; k < scenes.size(); ++k)
        for (const int gs : {0, 1}) {
            std::printf("%-18s %-6s", gs ? "" : scenes[k].name.c_str(), gs ? "GS" : "OSP");
            const auto known =
                std::find(std::begin(names), std::end(names), scenes[k].name) - std::begin(names);
            if (known < 4)
                std::printf(" %18.4f", paper[known][gs]);
            else
                std::printf(" %18s", "");
            if (published)
                std::printf(" %18.6f", rows[k].published[gs] / 1e3);
            else
                std::printf(" %18s", "");
            std::printf(" %12.6f", rows[k].ours[gs] / 1e3);
            if (gs) std::printf(" %14.2f", rows[k].ours[0] / rows[k].ours[1]);
            std::printf("\n");
        }
}

} // namespace

int main(int argc, char** argv) {
    int repeat = 21;
    bool published = true;
    std::string dump;
    std::vector<Scene> scenes;
    for (int i = 1; i < argc; ++i) {
        const auto is = [&](const char* name, int more) {
            return std::strcmp(argv[i], name) == 0 && i + more < argc;
        };
        if (is("-repeat", 1)) {
            repeat = std::max(1, std::atoi(argv[++i]));
        } else if (is("-published", 1)) {
            published = std::atoi(argv[++i]) != 0;
        } else if (is("-dump", 1)) {
            dump = argv[++i];
        } else if (is("-raw", 5)) {
            Scene s{argv[i + 1],
                    std::atoi(argv[i + 2]),
                    std::atoi(argv[i + 3]),
                    std::atoi(argv[i + 4]),
                    std::atoi(argv[i + 5]),
                    {}};
            s.cube.resize(s.pixels() * static_cast<size_t>(s.bands));
            std::ifstream file(argv[i + 1], std::ios::binary);
            if (!file.read(reinterpret_cast<char*>(s.cube.data()),
                           static_cast<std::streamsize>(s.cube.size() * 4))) {
                std::fprintf(stderr, "%s cannot be read\n", argv[i + 1]);
                return 1;
            }
            scenes.push_back(std::move(s));
            i += 5;
        } else {
            std::fprintf(stderr, "unknown argument %s\n", argv[i]);
            return 2;
        }
    }
    if (scenes.empty()) {
        scenes.push_back({"WTC", 614, 512, 224, 30, {}});
        scenes.push_back({"Cuprite", 350, 350, 188, 19, {}});
        // The paper does not state the number of targets in the next two scenes.
        scenes.push_back({"Pavia University", 340, 610, 103, 19, {}});
        scenes.push_back({"Forest Radiance", 64, 64, 169, 19, {}});
        for (auto& s : scenes)
            fill(s);
    }
    try {
        std::vector<Row> rows;
        for (const auto& s : scenes) {
            if (!dump.empty()) {
                std::string path = dump + "/" + s.name + ".raw";
                std::replace(path.begin() + static_cast<std::ptrdiff_t>(dump.size()), path.end(), ' ', '_');
                std::ofstream file(path, std::ios::binary);
                file.write(reinterpret_cast<const char*>(s.cube.data()),
                           static_cast<std::streamsize>(s.cube.size() * 4));
                if (!file.flush()) throw Error("'" + path + "' cannot be written", "Choose another folder.");
            }
            rows.push_back(measure(s, repeat, published));
        }
        print_table(scenes, rows, published);
    } catch (const Error& e) {
        std::fprintf(stderr, "ERROR: %s\n%s\n", e.what(), e.advice().c_str());
        return 1;
    }
    return 0;
}
