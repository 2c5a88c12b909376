// SPDX-License-Identifier: MIT
// Checks every CUDA call and every launch. Only .cu files include the headers of this folder.
#pragma once

#include "core/error.h"

#include <cuda_runtime_api.h>

#include <string>

namespace hsi::cuda {

/// Throws Error with CUDA's message, the call, file and line if `status` is an error.
inline void check(cudaError_t status, const char* call, const char* file, int line) {
    if (status == cudaSuccess) return;
    // Clears an error that does not persist on the device. Otherwise the next launch would report the error.
    cudaGetLastError();
    const std::string path(file);
    const std::string at = path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line);
    std::string advice = "Use -device cpu, or check the GPU with nvidia-smi.";
    if (status == cudaErrorMemoryAllocation)
        advice = "Use a smaller -memory or -tile, fewer -threads, or -device cpu.";
    else if (status == cudaErrorNoKernelImageForDevice)
        advice = "Build with this GPU's number in CMAKE_CUDA_ARCHITECTURES, or use -device cpu.";
    else if (status == cudaErrorInsufficientDriver)
        advice = "Install a driver as new as the CUDA toolkit that this was built with, or use -device cpu.";
    throw Error("CUDA: " + std::string(cudaGetErrorString(status)) + " (" + call + ", " + at + ")", advice);
}

} // namespace hsi::cuda

#define HSI_CUDA_CHECK(call) ::hsi::cuda::check((call), #call, __FILE__, __LINE__)
/// Throws Error if the preceding launch `kernel<<<...>>>` failed.
#define HSI_CUDA_LAUNCHED(kernel)                                                                            \
    ::hsi::cuda::check(cudaPeekAtLastError(), "launch of " kernel, __FILE__, __LINE__)
