// SPDX-License-Identifier: MIT
// Converts errors of cuFFT to Error. Only modules that link CUDA::cufft include this header.
#pragma once

#include "core/error.h"

#include <cufft.h>

#include <string>

namespace hsi::cuda {

inline void check_cufft(cufftResult status, const char* call, const char* file, int line) {
    if (status == CUFFT_SUCCESS) return;
    const std::string path(file);
    throw Error("cuFFT: status " + std::to_string(static_cast<int>(status)) + " (" + call + ", " +
                    path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line) + ")",
                "Use -device cpu, or check the GPU with nvidia-smi.");
}
#define HSI_CUFFT_CHECK(call) ::hsi::cuda::check_cufft((call), #call, __FILE__, __LINE__)

} // namespace hsi::cuda
