// SPDX-License-Identifier: MIT
// Owns a cuSOLVER handle. Only modules that link CUDA::cusolver include this header.
#pragma once

#include "core/error.h"
#include "cuda/check.h"
#include "cuda/kept_memory.h"

#include <cusolverDn.h>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace hsi::cuda {

inline void check_cusolver(cusolverStatus_t status, const char* call, const char* file, int line) {
    if (status == CUSOLVER_STATUS_SUCCESS) return;
    const std::string path(file);
    throw Error("cuSOLVER: status " + std::to_string(static_cast<int>(status)) + " (" + call + ", " +
                    path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line) + ")",
                "Use -device cpu, or check the GPU with nvidia-smi.");
}
#define HSI_CUSOLVER_CHECK(call) ::hsi::cuda::check_cusolver((call), #call, __FILE__, __LINE__)

/// A handle of the current device, bound to one stream. Use a handle on one thread at a time. A library keeps
/// the handle for the next call, since each new handle allocates device memory.
class Cusolver {
  public:
    explicit Cusolver(cudaStream_t stream) {
        HSI_CUDA_CHECK(cudaGetDevice(&m_device));
        m_handle = static_cast<cusolverDnHandle_t>(Kept::instance().take(m_device, 1));
        if (m_handle == nullptr) HSI_CUSOLVER_CHECK(cusolverDnCreate(&m_handle));
        const auto status = cusolverDnSetStream(m_handle, stream);
        if (status != CUSOLVER_STATUS_SUCCESS) {
            cusolverDnDestroy(m_handle);
            HSI_CUSOLVER_CHECK(status);
        }
    }
    Cusolver(Cusolver&& o) noexcept : m_handle(std::exchange(o.m_handle, nullptr)), m_device(o.m_device) {}
    Cusolver& operator=(Cusolver&& o) noexcept {
        std::swap(m_handle, o.m_handle);
        std::swap(m_device, o.m_device);
        return *this;
    }
    ~Cusolver() {
        constexpr uint64_t most = 16;
        if (m_handle == nullptr) return;
        if (std::uncaught_exceptions() > 0 || !Kept::instance().keep(m_device, m_handle, 1, most))
            cusolverDnDestroy(m_handle);
    }
    cusolverDnHandle_t get() const { return m_handle; }

  private:
    struct CusolverKind;
    using Kept = KeptMemory<CusolverKind>;
    cusolverDnHandle_t m_handle = nullptr;
    int m_device = 0;
};

} // namespace hsi::cuda
