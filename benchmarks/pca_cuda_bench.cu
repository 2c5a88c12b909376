// SPDX-License-Identifier: MIT
// PCA to 7 components on one GPU as gdal_hsi_pca computes it. Times of the kernels, with the cube in device
// memory, are medians of CUDA events. Times of the two passes from memory to memory, with copies, buffers and
// the start of their threads, are medians of the wall clock. For comparison, one plain cublasSsyrk of the
// cube is timed.
//
//   pca_cuda_bench [-repeat N] [-size SAMPLES LINES BANDS] [-nc N]
#include "core/cuda_module.h"
#include "cuda/cublas.h"
#include "cuda/device_buffer.h"
#include "cuda/stream.h"
#include "pca/pca.h"
#include "pca/pca_cuda_kernels.cuh"
#include "projection_bench.cuh"
#include "stream/empty_source.h"
#include "stream/pipeline.h"
#include "stream/plane_store.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

using namespace hsi;
using bench::median;
using bench::time_of;
using cuda::DeviceBuffer;

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
    DeviceBuffer<double> scatter(blocks * pca::gpu::lower_size(shape.bands)), sum(blocks * bands),
        matrix(t.matrix.size()), offset(t.offset.size());
    DeviceBuffer<float> centre(blocks * bands);
    DeviceBuffer<int> finite(blocks * bands), count(blocks), pairs(blocks);
    matrix.upload(t.matrix.data(), t.matrix.size(), stream.get());
    offset.upload(t.offset.data(), t.offset.size(), stream.get());
    stream.synchronize();
    const pca::gpu::BlockResults results{scatter.data(), nullptr,      sum.data(),  centre.data(),
                                         finite.data(),  count.data(), pairs.data()};
    std::printf("  valid pixels           %8.3f ms\n", time_of(stream.get(), repeat, [&] {
                    pca::gpu::launch_valid(tile, true, valid.data(), stream.get());
                }));
    std::printf("  covariance, %4zu blocks %7.3f ms\n", blocks, time_of(stream.get(), repeat, [&] {
                    pca::gpu::launch_statistics(tile, valid.data(), results, stream.get());
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
    bench::Passes cube(shape, components);
    const auto backend = make_cuda_backend<pca::Backend>("pca", {cuda_devices().at(0)});
    std::vector<double> scans, transforms;
    pca::Transform t;
    for (int i = 0; i <= std::min(repeat, 7); ++i) {
        std::unique_ptr<stream::StatisticsScan> scan;
        const double scanning = bench::time_on_host([&] {
            scan = backend->make_scan(shape, stream::Statistics::covariance, backend->free_memory());
            stream::run_pass(*cube.source, *scan, {}, cube.options);
        });
        if (i > 0) scans.push_back(scanning);
        t = pca::projection(pca::fit(scan->result(), {components, false, false}), components, cube.bands,
                            shape.bands);
        const double projecting = bench::time_on_host([&] {
            const auto transform = backend->make_transform(t);
            stream::run_pass(stream::EmptySource(shape), *transform, {cube.sink.get()}, cube.options);
        });
        if (i > 0) transforms.push_back(projecting);
        if (!backend->holds_scene()) throw Error("the scene does not fit on the device");
        backend->release();
    }
    measure_kernels(shape, cube.store, t, repeat);
    std::printf("  covariance, whole pass %8.3f ms, %d lanes\n", median(scans), cube.options.lanes);
    std::printf("  projection, whole pass %8.3f ms\n", median(transforms));
}

} // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, measure); }
