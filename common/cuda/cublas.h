// SPDX-License-Identifier: MIT
// Owns a cuBLAS handle. Only modules that link CUDA::cublas include this header.
#pragma once

#include "core/error.h"
#include "cuda/check.h"
#include "cuda/kept_memory.h"

#include <cublas_v2.h>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace hsi::cuda {

inline void check_cublas(cublasStatus_t status, const char* call, const char* file, int line) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    const std::string path(file);
    throw Error("cuBLAS: status " + std::to_string(static_cast<int>(status)) + " (" + call + ", " +
                    path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line) + ")",
                "Use -device cpu, or check the GPU with nvidia-smi.");
}
#define HSI_CUBLAS_CHECK(call) ::hsi::cuda::check_cublas((call), #call, __FILE__, __LINE__)

/// A handle of the current device, bound to one stream. Use a handle on one thread at a time. A library keeps
/// the handle for the next call, since each new handle allocates device memory.
class Cublas {
  public:
    explicit Cublas(cudaStream_t stream) {
        HSI_CUDA_CHECK(cudaGetDevice(&m_device));
        m_handle = static_cast<cublasHandle_t>(Kept::instance().take(m_device, 1));
        if (m_handle == nullptr) HSI_CUBLAS_CHECK(cublasCreate(&m_handle));
        const auto status = cublasSetStream(m_handle, stream);
        if (status != CUBLAS_STATUS_SUCCESS) {
            cublasDestroy(m_handle);
            HSI_CUBLAS_CHECK(status);
        }
    }
    Cublas(Cublas&& o) noexcept : m_handle(std::exchange(o.m_handle, nullptr)), m_device(o.m_device) {}
    Cublas& operator=(Cublas&& o) noexcept {
        std::swap(m_handle, o.m_handle);
        std::swap(m_device, o.m_device);
        return *this;
    }
    ~Cublas() {
        constexpr uint64_t most = 16;
        if (m_handle == nullptr) return;
        if (std::uncaught_exceptions() > 0 || !Kept::instance().keep(m_device, m_handle, 1, most))
            cublasDestroy(m_handle);
    }
    cublasHandle_t get() const { return m_handle; }

  private:
    struct CublasKind;
    using Kept = KeptMemory<CublasKind>;
    cublasHandle_t m_handle = nullptr;
    int m_device = 0;
};

} // namespace hsi::cuda
