// SPDX-License-Identifier: MIT
// hsi_cuda_links.so: converts values between two steps on a GPU, as a file between the steps would do.
#include "cuda/check.h"
#include "cuda/device.h"
#include "cuda/stream.h"

#include <algorithm>
#include <cstddef>

namespace hsi::links {
namespace {

constexpr int threads = 256;

__global__ void replace(float* values, size_t count, float value, float by) {
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        if (values[i] == value) values[i] = by;
}

} // namespace
} // namespace hsi::links

/// Replaces values on a device; see stream::DeviceReplace.
extern "C" __attribute__((visibility("default"))) void
hsi_cuda_links_replace(int device, float* values, size_t count, float value, float by) {
    if (count == 0) return;
    const hsi::cuda::DeviceGuard guard(device);
    hsi::cuda::Stream stream;
    constexpr size_t most_blocks = 4096;
    const size_t blocks = std::min(most_blocks, (count + hsi::links::threads - 1) / hsi::links::threads);
    hsi::links::replace<<<static_cast<unsigned>(blocks), hsi::links::threads, 0, stream.get()>>>(
        values, count, value, by);
    HSI_CUDA_CHECK(cudaGetLastError());
    stream.synchronize();
}
