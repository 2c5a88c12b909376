// SPDX-License-Identifier: MIT
// Where a tool computes: on the CPU, or on devices through the CUDA module of its algorithm.
#pragma once

#include "cli/tool.h"
#include "core/cuda_module.h"
#include "core/error.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hsi::cli {

/// "CPU, 2 threads, AVX2", or "CUDA 0 (NVIDIA H200)".
std::string describe_devices(const Run& run, const std::vector<CudaDevice>& devices, const char* simd);
/// The same into the report and, as a note, to the user.
void tell_devices(Run& run, const std::vector<CudaDevice>& devices, const char* simd);

/// Device bytes that a run may take: -device-memory, else 80 % of what is free.
uint64_t device_memory(const CommonOptions& options, uint64_t free);

/// Calls load(), which loads a module. When that throws Error and a GPU was not asked for by name: a warning
/// that ends with `instead`, and no devices are left. False on the CPU.
template <class Load>
bool load_or_use_cpu(Run& run, std::vector<CudaDevice>& devices, Load load,
                     const char* instead = "computing on the CPU") {
    if (devices.empty()) return false;
    try {
        load();
        return true;
    } catch (const Error& e) {
        if (run.options().device.kind == DeviceChoice::Kind::cuda) throw;
        run.warn(std::string(e.what()) + "; " + instead);
        devices.clear();
        return false;
    }
}

/// Chosen devices with the backend that the algorithm's module gives for them; none: the CPU.
template <class Backend>
class Devices {
  public:
    /// `symbol` names the module's function Backend*().
    Devices(Run& run, std::vector<CudaDevice> chosen, const char* algorithm, const char* symbol,
            const char* instead = "computing on the CPU")
        : m_list(std::move(chosen)) {
        const auto load = [&] {
            m_cuda = reinterpret_cast<Backend* (*)()>(cuda_module_symbol(algorithm, symbol))();
        };
        load_or_use_cpu(run, m_list, load, instead);
    }
    /// Null on the CPU.
    Backend* cuda() const { return m_cuda; }
    const std::vector<CudaDevice>& list() const { return m_list; }
    /// Device bytes for all lanes; 0 on the CPU.
    uint64_t memory(const CommonOptions& options) const {
        if (!m_cuda) return 0;
        if (options.device_memory > 0) return options.device_memory;
        uint64_t free = UINT64_MAX;
        for (const auto& d : m_list)
            free = std::min(free, m_cuda->free_memory(d));
        return device_memory(options, free);
    }

  private:
    std::vector<CudaDevice> m_list;
    Backend* m_cuda = nullptr;
};

} // namespace hsi::cli
