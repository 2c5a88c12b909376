// SPDX-License-Identifier: MIT
// Owner of a cuFFT plan. Only modules that link CUDA::cufft include this.
#pragma once

#include "core/error.h"

#include <cufft.h>

#include <string>
#include <utility>

namespace hsi::cuda {

inline void check_cufft(cufftResult status, const char* call, const char* file, int line) {
    if (status == CUFFT_SUCCESS) return;
    const std::string path(file);
    throw Error("cuFFT: status " + std::to_string(static_cast<int>(status)) + " (" + call + ", " +
                    path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line) + ")",
                "Use -device cpu, or check the GPU with nvidia-smi.");
}
#define HSI_CUFFT_CHECK(call) ::hsi::cuda::check_cufft((call), #call, __FILE__, __LINE__)

/// A plan for `batch` two-dimensional transforms of `lines` x `samples` values each, packed one after
/// another, bound to one stream. `type`: CUFFT_R2C, CUFFT_C2R, CUFFT_D2Z, CUFFT_Z2D, CUFFT_C2C or CUFFT_Z2Z.
class CufftPlan {
  public:
    CufftPlan(int lines, int samples, int batch, cufftType type, cudaStream_t stream) {
        int size[2] = {lines, samples};
        HSI_CUFFT_CHECK(cufftPlanMany(&m_plan, 2, size, nullptr, 1, 0, nullptr, 1, 0, type, batch));
        m_made = true;
        const auto status = cufftSetStream(m_plan, stream);
        if (status != CUFFT_SUCCESS) {
            cufftDestroy(m_plan);
            HSI_CUFFT_CHECK(status);
        }
    }
    CufftPlan(CufftPlan&& o) noexcept : m_plan(o.m_plan), m_made(std::exchange(o.m_made, false)) {}
    CufftPlan& operator=(CufftPlan&& o) noexcept {
        std::swap(m_plan, o.m_plan);
        std::swap(m_made, o.m_made);
        return *this;
    }
    ~CufftPlan() {
        if (m_made) cufftDestroy(m_plan);
    }
    cufftHandle get() const { return m_plan; }

  private:
    cufftHandle m_plan = 0;
    bool m_made = false;
};

} // namespace hsi::cuda
