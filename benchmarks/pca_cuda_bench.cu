// SPDX-License-Identifier: MIT
// PCA to 7 components on one GPU as gdal_hsi_pca computes it. The kernels with the cube in device memory,
// medians of CUDA events; the two passes from host memory to host memory, with copies, buffers and the start
// of the lanes, medians of the wall clock; beside them one plain cublasSsyrk of the cube.
//
//   pca_cuda_bench [-repeat N] [-size SAMPLES LINES BANDS] [-nc N]
#include "core/cuda_module.h"
#include "cuda/cublas.h"
#include "cuda/device_buffer.h"
#include "cuda/stream.h"
#include "pca/pca.h"
#include "pca/pca_cuda_kernels.cuh"
#include "stream/empty_source.h"
#include "stream/pipeline.h"
#include "stream/plane_store.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace hsi;
using cuda::DeviceBuffer;

/// Mixtures of smooth spectra with noise.
void make_cube(const stream::CubeShape& shape, stream::PlaneStore& store) {
    constexpr int materials = 12;
    const int bands = shape.bands;
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
    std::vector<int> every(static_cast<size_t>(bands));
    std::iota(every.begin(), every.end(), 0);
    const auto sink = store.sink(every);
    std::vector<float> line(static_cast<size_t>(shape.samples) * static_cast<size_t>(bands));
    for (int64_t y = 0; y < shape.lines; ++y) {
        for (int64_t x = 0; x < shape.samples; ++x) {
            float share[materials], total = 0;
            for (float& s : share) {
                s = std::pow(uniform(random), 4.0f);
                total += s;
            }
            const size_t at = random();
            for (int b = 0; b < bands; ++b) {
                float v = noise[(at + static_cast<size_t>(b)) & (noise.size() - 1)];
                for (int m = 0; m < materials; ++m)
                    v += share[m] / total * spectra[static_cast<size_t>(m * bands + b)];
                line[static_cast<size_t>(b) * static_cast<size_t>(shape.samples) + static_cast<size_t>(x)] =
                    v;
            }
        }
        sink->write({0, y, shape.samples, 1}, CubeView<float>::packed(line.data(), bands, 1, shape.samples));
    }
}

double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
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
    return median(times);
}

void measure_kernels(const stream::CubeShape& shape, const stream::PlaneStore& store, const pca::Transform& t,
                     int repeat) {
    const auto pixels = static_cast<size_t>(shape.pixels()), bands = static_cast<size_t>(shape.bands);
    cuda::Stream stream;
    DeviceBuffer<float> cube(pixels * bands), out(pixels * static_cast<size_t>(t.outputs));
    HSI_CUDA_CHECK(cudaMemcpy(cube.data(), store.data(), cube.bytes(), cudaMemcpyHostToDevice));
    const pca::gpu::TileView tile{cube.data(),
                                  shape.bands,
                                  static_cast<int>(shape.samples),
                                  static_cast<int>(shape.lines),
                                  static_cast<size_t>(shape.samples),
                                  pixels};
    const auto blocks = static_cast<size_t>(pca::gpu::block_count(tile));
    DeviceBuffer<uint8_t> valid(pixels);
    DeviceBuffer<double> scatter(blocks * bands * bands), sum(blocks * bands), matrix(t.matrix.size()),
        offset(t.offset.size());
    DeviceBuffer<float> centre(blocks * bands);
    DeviceBuffer<int> finite(blocks * bands), count(blocks);
    matrix.upload(t.matrix.data(), t.matrix.size(), stream.get());
    offset.upload(t.offset.data(), t.offset.size(), stream.get());
    stream.synchronize();
    const pca::gpu::BlockResults results{scatter.data(), sum.data(), centre.data(), finite.data(),
                                         count.data()};
    std::printf("  valid pixels           %8.3f ms\n", time_of(stream.get(), repeat, [&] {
                    pca::gpu::launch_valid(tile, true, valid.data(), stream.get());
                }));
    std::printf("  covariance, %4zu blocks %7.3f ms\n", blocks, time_of(stream.get(), repeat, [&] {
                    pca::gpu::launch_covariance(tile, valid.data(), results, stream.get());
                }));
    std::printf("  projection             %8.3f ms\n", time_of(stream.get(), repeat, [&] {
                    pca::gpu::launch_transform(tile, matrix.data(), offset.data(), t.outputs, valid.data(),
                                               out.data(), stream.get());
                }));
    cuda::Cublas blas(stream.get());
    DeviceBuffer<float> product(bands * bands);
    const float one = 1, zero = 0;
    std::printf("  one cublasSsyrk        %8.3f ms\n", time_of(stream.get(), std::min(repeat, 5), [&] {
                    HSI_CUBLAS_CHECK(cublasSsyrk(blas.get(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, shape.bands,
                                                 static_cast<int>(pixels), &one, cube.data(),
                                                 static_cast<int>(pixels), &zero, product.data(),
                                                 shape.bands));
                }));
}

void measure(const stream::CubeShape& shape, int components, int repeat) {
    std::printf("%lldx%lld, %d bands, %d components\n", static_cast<long long>(shape.samples),
                static_cast<long long>(shape.lines), shape.bands, components);
    stream::PlaneStore store(shape);
    make_cube(shape, store);
    std::vector<int> all(static_cast<size_t>(shape.bands)), made(static_cast<size_t>(components));
    std::iota(all.begin(), all.end(), 0);
    std::iota(made.begin(), made.end(), 0);
    const auto source = store.source(all);
    stream::PlaneStore planes({shape.samples, shape.lines, components});
    const auto sink = planes.sink(made);
    const auto backend = make_cuda_backend<pca::Backend>("pca", {cuda_devices().at(0)});
    stream::PassOptions pass;
    pass.lanes = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    pass.memory = uint64_t{8} << 30;
    using Clock = std::chrono::steady_clock;
    const auto milliseconds = [](Clock::time_point from) {
        return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
    };
    std::vector<double> scans, transforms;
    pca::Transform t;
    for (int i = 0; i <= std::min(repeat, 7); ++i) {
        auto begin = Clock::now();
        const auto scan = backend->make_covariance(shape, backend->free_memory());
        stream::run_pass(*source, *scan, {}, pass);
        if (i > 0) scans.push_back(milliseconds(begin));
        t = pca::projection(pca::fit(scan->result(), {components, false, false}), components, all,
                            shape.bands);
        begin = Clock::now();
        const auto transform = backend->make_transform(t);
        stream::run_pass(stream::EmptySource(shape), *transform, {sink.get()}, pass);
        if (i > 0) transforms.push_back(milliseconds(begin));
        if (!backend->holds_scene()) throw Error("the scene does not fit on the device");
        backend->release();
    }
    measure_kernels(shape, store, t, repeat);
    std::printf("  covariance, whole pass %8.3f ms, %d lanes\n", median(scans), pass.lanes);
    std::printf("  projection, whole pass %8.3f ms\n", median(transforms));
}

} // namespace

int main(int argc, char** argv) {
    int repeat = 21, components = 7;
    stream::CubeShape shape{614, 512, 224};
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "-repeat") && i + 1 < argc)
            repeat = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "-nc") && i + 1 < argc)
            components = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "-size") && i + 3 < argc) {
            shape = {std::atoi(argv[i + 1]), std::atoi(argv[i + 2]), std::atoi(argv[i + 3])};
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
        measure(shape, components, repeat);
    } catch (const hsi::Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
