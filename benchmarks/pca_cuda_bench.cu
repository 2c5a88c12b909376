// SPDX-License-Identifier: MIT
// PCA to 7 components on one GPU with the cube in its memory, stage by stage, beside the dense eigensolver of
// cuSOLVER and one plain cublasSsyrk. Medians of CUDA events.
//
//   pca_cuda_bench [-repeat N] [-size SAMPLES LINES BANDS] [-nc N]
#include "cuda/stream.h"
#include "pca/pca_cuda_kernels.cuh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace {

using namespace hsi;
using cuda::DeviceBuffer;

/// Mixtures of smooth spectra with noise.
std::vector<float> make_cube(int samples, int lines, int bands) {
    constexpr int materials = 12;
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(0, 1);
    std::normal_distribution<float> normal;
    std::vector<float> spectra(static_cast<size_t>(materials * bands));
    for (int m = 0; m < materials; ++m) {
        float v = 0.2f + 0.3f * uniform(random);
        for (int b = 0; b < bands; ++b)
            spectra[static_cast<size_t>(m * bands + b)] = v =
                std::max(0.05f, v + 0.06f * (uniform(random) - 0.5f));
    }
    std::vector<float> noise(1 << 18);
    for (auto& n : noise)
        n = 0.005f * normal(random);
    const size_t pixels = static_cast<size_t>(samples) * static_cast<size_t>(lines);
    std::vector<float> cube(pixels * static_cast<size_t>(bands));
    size_t at = 0;
    for (size_t p = 0; p < pixels; ++p) {
        float share[materials], total = 0;
        for (float& s : share) {
            s = std::pow(uniform(random), 4.0f);
            total += s;
        }
        at = random();
        for (int b = 0; b < bands; ++b) {
            float v = noise[(at + static_cast<size_t>(b)) & (noise.size() - 1)];
            for (int m = 0; m < materials; ++m)
                v += share[m] / total * spectra[static_cast<size_t>(m * bands + b)];
            cube[static_cast<size_t>(b) * pixels + p] = v;
        }
    }
    return cube;
}

double time_of(cudaStream_t stream, int repeat, const std::function<void()>& run) {
    cuda::Event begin(cuda::Event::Timing::on), end(cuda::Event::Timing::on);
    run();
    std::vector<double> times;
    for (int i = 0; i < repeat; ++i) {
        begin.record(stream);
        run();
        end.record(stream);
        end.wait();
        times.push_back(static_cast<double>(end.milliseconds_since(begin)));
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

void measure(int samples, int lines, int bands, int components, int repeat) {
    const auto cube = make_cube(samples, lines, bands);
    const size_t pixels = static_cast<size_t>(samples) * static_cast<size_t>(lines);
    cuda::Stream stream;
    DeviceBuffer<float> d_cube(cube.size()), out(pixels * static_cast<size_t>(components));
    HSI_CUDA_CHECK(cudaMemcpy(d_cube.data(), cube.data(), d_cube.bytes(), cudaMemcpyHostToDevice));
    pca::gpu::DevicePca pca(bands, pixels, components, stream.get());
    std::printf("%dx%d, %d bands, %d components\n", samples, lines, bands, components);
    std::printf("  whole PCA              %8.3f ms\n",
                time_of(stream.get(), repeat, [&] { pca.run(d_cube.data(), out.data()); }));
    std::printf("  centring               %8.3f ms\n",
                time_of(stream.get(), repeat, [&] { pca.centre(d_cube.data()); }));
    std::printf("  covariance             %8.3f ms\n",
                time_of(stream.get(), repeat, [&] { pca.covariance(); }));
    std::printf("  eigenproblem           %8.3f ms",
                time_of(stream.get(), repeat, [&] { pca.eigenproblem(); }));
    std::printf(" (%s, %d steps)\n", pca.used_dense_solver() ? "dense" : "Lanczos", pca.steps());
    std::printf("  projection             %8.3f ms\n",
                time_of(stream.get(), repeat, [&] { pca.project(out.data()); }));
    std::vector<double> values, loadings, mean, dense_values, dense;
    pca.result(values, loadings, mean);
    std::printf("  dense eigenproblem     %8.3f ms\n",
                time_of(stream.get(), repeat, [&] { pca.dense_eigenproblem(); }));
    pca.result(dense_values, dense, mean);
    double worst = 0, ratio = 0;
    for (size_t i = 0; i < dense.size(); ++i)
        worst = std::max(worst, std::fabs(dense[i] - loadings[i]));
    for (size_t k = 0; k < values.size(); ++k)
        ratio = std::max(ratio, std::fabs(values[k] / dense_values[k] - 1));
    std::printf("  loadings differ from the dense solver's by %.1e, eigenvalues by %.1e of themselves\n",
                worst, ratio);
    cuda::Cublas blas(stream.get());
    DeviceBuffer<float> product(static_cast<size_t>(bands) * static_cast<size_t>(bands));
    const float one = 1, zero = 0;
    std::printf("  one cublasSsyrk        %8.3f ms\n", time_of(stream.get(), std::min(repeat, 5), [&] {
                    HSI_CUBLAS_CHECK(cublasSsyrk(blas.get(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, bands,
                                                 static_cast<int>(pixels), &one, d_cube.data(),
                                                 static_cast<int>(pixels), &zero, product.data(), bands));
                }));
}

} // namespace

int main(int argc, char** argv) {
    int repeat = 21, samples = 614, lines = 512, bands = 224, components = 7;
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "-repeat") && i + 1 < argc)
            repeat = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "-nc") && i + 1 < argc)
            components = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "-size") && i + 3 < argc) {
            samples = std::atoi(argv[i + 1]), lines = std::atoi(argv[i + 2]), bands = std::atoi(argv[i + 3]);
            i += 3;
        } else {
            std::fprintf(stderr, "usage: %s [-repeat N] [-size SAMPLES LINES BANDS] [-nc N]\n", argv[0]);
            return 2;
        }
    }
    try {
        cudaDeviceProp device{};
        HSI_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
        std::printf("%s\n", device.name);
        measure(samples, lines, bands, components, repeat);
    } catch (const hsi::Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
