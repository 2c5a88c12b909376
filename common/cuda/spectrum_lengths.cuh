// SPDX-License-Identifier: MIT
// Computes the squared lengths of the spectra of a scene on a device.
#pragma once

#include "core/cube_view.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hsi::cuda {

namespace {

/// Uses one thread per pixel.
__global__ void squares_kernel(CubeView<float> scene, int64_t pixels, double* __restrict__ squares) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    const float* const at = scene.data + i / scene.samples * scene.line_stride + i % scene.samples;
    double sum = 0;
    for (int b = 0; b < scene.bands; ++b) {
        const auto v = static_cast<double>(__ldg(at + b * scene.band_stride));
        sum = __fma_rn(v, v, sum); // the square of a float is exact, so fused and separate operations agree
    }
    squares[i] = sum;
}

} // namespace

/// Computes squares[i], the sum of the squares of the values of pixel i, with the bands added in order.
/// Pixels are counted line by line. `scene` is in the memory of the device `ordinal`, and `squares` is in
/// host memory.
inline void sum_squares(int ordinal, const CubeView<float>& scene, double* squares) {
    const DeviceGuard guard(ordinal);
    const Stream stream;
    const int64_t pixels = scene.lines * scene.samples;
    const auto count = static_cast<size_t>(pixels);
    const DeviceBuffer<double> there(count);
    const HostBuffer<double> here(std::make_shared<PinnedAllocator>(ordinal), count);
    constexpr unsigned threads = 128;
    squares_kernel<<<static_cast<unsigned>((pixels + threads - 1) / threads), threads, 0, stream.get()>>>(
        scene, pixels, there.data());
    HSI_CUDA_LAUNCHED("squares_kernel");
    there.download(here.data(), count, stream.get());
    HSI_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    std::copy_n(here.data(), count, squares);
}

} // namespace hsi::cuda
