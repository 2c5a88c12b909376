// SPDX-License-Identifier: MIT
// MNF to 7 components on one GPU as gdal_hsi_mnf computes it. Times of the kernels, with the cube in device
// memory, are medians of CUDA events. Times of the two passes from memory to memory, with copies, buffers and
// the start of their threads, are medians of the wall clock. The time of the moments on the CPU is also a
// median of the wall clock. For comparison, one plain cublasDsyrk of the cube in double precision is timed.
// It computes one of the two matrices, without holes, means or differences.
//
//   mnf_cuda_bench [-repeat N] [-size SAMPLES LINES BANDS] [-nc N]
#include "core/cuda_module.h"
#include "cuda/cublas.h"
#include "cuda/device_buffer.h"
#include "cuda/stream.h"
#include "mnf/mnf.h"
#include "pca/pca_cuda_kernels.cuh"
#include "projection_bench.cuh"
#include "stream/empty_source.h"
#include "stream/pipeline.h"
#include "stream/plane_store.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

namespace {

using namespace hsi;
using bench::median;
using bench::time_of;
using cuda::DeviceBuffer;

void measure_kernels(const stream::CubeShape& shape, const stream::PlaneStore& store, int repeat) {
    const auto pixels = static_cast<size_t>(shape.pixels()), bands = static_cast<size_t>(shape.bands);
    cuda::Stream stream;
    DeviceBuffer<float> cube(pixels * bands);
    HSI_CUDA_CHECK(cudaMemcpy(cube.data(), store.data(), cube.bytes(), cudaMemcpyHostToDevice));
    const pca::gpu::TileView tile{cube.data(),
                                  shape.bands,
                                  static_cast<int>(shape.samples),
                                  static_cast<int>(shape.lines),
                                  static_cast<size_t>(shape.samples),
                                  pixels};
    const auto blocks = static_cast<size_t>(pca::gpu::block_count(tile));
    const size_t lower = pca::gpu::lower_size(shape.bands);
    DeviceBuffer<uint8_t> valid(pixels);
    DeviceBuffer<double> scatter(blocks * lower), differences(blocks * lower), total(blocks * bands);
    DeviceBuffer<float> centre(blocks * bands);
    DeviceBuffer<int> finite(blocks * bands), count(blocks), pairs(blocks);
    const pca::gpu::BlockResults results{scatter.data(), differences.data(), total.data(), centre.data(),
                                         finite.data(),  count.data(),       pairs.data()};
    pca::gpu::launch_valid(tile, true, valid.data(), stream.get());
    const double milliseconds = time_of(stream.get(), repeat, [&] {
        pca::gpu::launch_statistics(tile, valid.data(), results, stream.get());
    });
    std::printf("  moments, %4zu blocks    %8.3f ms, %.1f T products added a second\n", blocks, milliseconds,
                static_cast<double>(pixels * bands * (bands + 1)) / milliseconds / 1e9);
    cuda::Cublas blas(stream.get());
    DeviceBuffer<double> wide(pixels * bands), product(bands * bands);
    wide.clear(stream.get());
    const double one = 1, zero = 0;
    std::printf("  one cublasDsyrk        %8.3f ms\n", time_of(stream.get(), std::min(repeat, 5), [&] {
                    HSI_CUBLAS_CHECK(cublasDsyrk(blas.get(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, shape.bands,
                                                 static_cast<int>(pixels), &one, wide.data(),
                                                 static_cast<int>(pixels), &zero, product.data(),
                                                 shape.bands));
                }));
}

/// Returns the greatest difference of two matrices. Each entry is divided by the standard deviations of its
/// two bands.
double difference(const std::vector<double>& a, const std::vector<double>& b, size_t n) {
    double greatest = 0;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            greatest = std::max(greatest, std::fabs(a[i * n + j] - b[i * n + j]) /
                                              std::sqrt(b[i * (n + 1)] * b[j * (n + 1)]));
    return greatest;
}

void measure(const stream::CubeShape& shape, int components, int repeat) {
    bench::Passes cube(shape, components);
    const auto backend = make_cuda_backend<pca::Backend>("pca", {cuda_devices().at(0)});
    const auto cpu = pca::make_cpu_backend();
    std::vector<double> scans, transforms, cpu_scans;
    for (int i = 0; i <= std::min(repeat, 7); ++i) {
        std::unique_ptr<stream::StatisticsScan> scan;
        const double scanning = bench::time_on_host([&] {
            scan = backend->make_scan(shape, stream::Statistics::differences, backend->free_memory());
            stream::run_pass(*cube.source, *scan, {}, cube.options);
        });
        if (i > 0) scans.push_back(scanning);
        const auto moments = scan->result();
        const auto found = mnf::fit(moments);
        const double projecting = bench::time_on_host([&] {
            const auto transform =
                backend->make_transform(mnf::projection(found.model, components, found.kept, shape.bands));
            stream::run_pass(stream::EmptySource(shape), *transform, {cube.sink.get()}, cube.options);
        });
        if (i > 0) transforms.push_back(projecting);
        if (!backend->holds_scene()) throw Error("the scene does not fit on the device");
        backend->release();
        std::unique_ptr<stream::StatisticsScan> cpu_scan;
        const double on_cpu = bench::time_on_host([&] {
            cpu_scan = cpu->make_scan(shape, stream::Statistics::differences, 0);
            stream::run_pass(*cube.source, *cpu_scan, {}, cube.options);
        });
        if (i > 0) cpu_scans.push_back(on_cpu);
        if (i > 0) continue;
        const auto want = cpu_scan->result();
        const auto n = static_cast<size_t>(shape.bands);
        std::printf("  from the CPU           covariance %.1e, differences %.1e of the deviations\n",
                    difference(moments.covariance, want.covariance, n),
                    difference(moments.differences, want.differences, n));
    }
    measure_kernels(shape, cube.store, repeat);
    std::printf("  moments, whole pass    %8.3f ms, %d lanes\n", median(scans), cube.options.lanes);
    std::printf("  projection, whole pass %8.3f ms\n", median(transforms));
    std::printf("  moments on the CPU     %8.3f ms, %d threads\n", median(cpu_scans), cube.options.lanes);
}

} // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, measure); }
