// SPDX-License-Identifier: MIT
// Where a run computes: which devices it takes, and the backend of an algorithm on them.
#pragma once

#include "core/cuda_module.h"
#include "core/error.h"
#include "core/process_owner.h"
#include "tool/costs.h"
#include "tool/memory_plan.h"
#include "tool/run.h"
#include "tool/workers.h"

#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tool {

/// "CPU, 2 threads, AVX2", or "CUDA 0 (NVIDIA H200)".
std::string describe_devices(const Run& run, const std::vector<CudaDevice>& devices, const char* simd);
/// The same into the report and, as a note, to the user.
void report_devices(Run& run, const std::vector<CudaDevice>& devices, const char* simd);

/// The devices of -device, at most `most`; a warning lists those that are left out. auto: the first one if
/// `work` ends sooner on it. -dry-run prints the estimate.
std::vector<CudaDevice> choose_devices(Run& run, const std::string& algorithm, Work work,
                                       size_t most = std::numeric_limits<size_t>::max());

/// Chooses this rank's device among those that -device names, if the ranks of its node share them.
void take_own_device(DeviceChoice& choice);

/// The backend of an algorithm on the device that the user wants. A device starts while the tool does its
/// first work (a scan waits only for the file). When it cannot start and the user did not name a GPU, the CPU
/// takes its place, with a warning. Backend: an interface with free_memory(), made by make_cpu() or by the
/// module (make_cuda_backend()).
template <class Backend>
class Computing {
  public:
    using MakeCpu = std::function<std::unique_ptr<Backend>()>;
    /// Tells the user where it computes, unless it is a second backend of the run (told = false).
    Computing(Run& run, const std::string& algorithm, std::vector<CudaDevice> devices, const char* simd,
              MakeCpu make_cpu, bool told = true)
        : m_run(run), m_devices(std::move(devices)), m_simd(simd), m_make_cpu(std::move(make_cpu)),
          m_told(told) {
        if (told) report_devices(run, m_devices, m_simd);
        if (m_devices.empty())
            m_backend = m_make_cpu();
        else
            // In a program that is not ours devices run since an earlier call, and a thread takes longer.
            m_starting = std::async(process_is_ours() ? std::launch::async : std::launch::deferred,
                                    [algorithm, devices = m_devices] {
                                        auto backend = make_cuda_backend<Backend>(algorithm, devices);
                                        const uint64_t free = backend->free_memory();
                                        return std::pair(std::move(backend), free);
                                    });
    }
    /// True while a device starts, which backend() would wait for.
    bool starting() const { return m_starting.valid(); }
    /// Waits until it has started.
    Backend& backend() {
        if (m_starting.valid()) wait();
        return *m_backend;
    }
    Backend* operator->() { return &backend(); }
    bool on_devices() {
        backend();
        return !m_devices.empty();
    }
    const std::vector<CudaDevice>& devices() {
        backend();
        return m_devices;
    }
    /// Device bytes that the run may take: -device-memory, else device_share(); 0 on the CPU.
    uint64_t device_memory() {
        if (!on_devices()) return 0;
        const uint64_t asked = m_run.options().device_memory;
        return asked > 0 ? asked : device_share(m_free);
    }
    /// Run::pass() for a pass that computes there.
    stream::PassOptions pass(const std::string& name, double share) {
        auto options = m_run.pass(name, share);
        set_device_memory(options, device_memory());
        return options;
    }

  private:
    void wait() {
        try {
            std::tie(m_backend, m_free) = m_starting.get();
            m_free = m_run.ranks().least("free device memory", m_free);
        } catch (const Error& e) {
            // With several ranks the others are on their devices.
            if (m_run.options().device.kind == DeviceChoice::Kind::cuda || m_run.ranks().several()) throw;
            m_devices.clear();
            m_run.warn(std::string(e.what()) + "; computing on the CPU");
            if (m_told) m_run.report()["device"] = describe_devices(m_run, m_devices, m_simd);
            m_backend = m_make_cpu();
        }
    }

    Run& m_run;
    std::vector<CudaDevice> m_devices;
    const char* m_simd;
    MakeCpu m_make_cpu;
    bool m_told;
    std::future<std::pair<std::unique_ptr<Backend>, uint64_t>> m_starting;
    std::unique_ptr<Backend> m_backend;
    uint64_t m_free = 0;
};

} // namespace hsi::tool
