// SPDX-License-Identifier: MIT
// Selects the devices of a run, and the backend of an algorithm on them.
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

/// Returns "CPU, 2 threads, AVX2", or "CUDA 0 (NVIDIA H200)".
std::string describe_devices(const Run& run, const std::vector<CudaDevice>& devices, const char* simd);
/// Adds the text of describe_devices() to the report and shows it to the user as a note.
void report_devices(Run& run, const std::vector<CudaDevice>& devices, const char* simd);

/// Returns the devices that -device selects, at most `most`; a warning lists devices that are left out.
/// `auto` selects the first device if `work` is estimated to end sooner on it, else none. -dry-run prints the
/// estimate.
std::vector<CudaDevice> choose_devices(Run& run, const std::string& algorithm, Work work,
                                       size_t most = std::numeric_limits<size_t>::max());

/// Chooses this rank's device among the devices of -device, if the ranks of its node share them.
void take_own_device(DeviceChoice& choice);

/// The backend of an algorithm on the selected device. A device starts in the background during the first
/// work of the tool, such as a scan, which waits only for the file. If the device cannot start and the user
/// did not name a GPU, the CPU is used instead, with a warning. Backend: an interface with free_memory(),
/// created by make_cpu() or by the module (make_cuda_backend()).
template <class Backend>
class Computing {
  public:
    using MakeCpu = std::function<std::unique_ptr<Backend>()>;
    /// Reports the device to the user, unless this is a second backend of the run (told = false).
    Computing(Run& run, const std::string& algorithm, std::vector<CudaDevice> devices, const char* simd,
              MakeCpu make_cpu, bool told = true)
        : m_run(run), m_devices(std::move(devices)), m_simd(simd), m_make_cpu(std::move(make_cpu)),
          m_told(told) {
        if (told) report_devices(run, m_devices, m_simd);
        if (m_devices.empty())
            m_backend = m_make_cpu();
        else
            // In another program, an earlier call has started the devices, and starting a thread would take
            // longer than using them.
            m_starting = std::async(process_is_ours() ? std::launch::async : std::launch::deferred,
                                    [algorithm, devices = m_devices] {
                                        auto backend = make_cuda_backend<Backend>(algorithm, devices);
                                        const uint64_t free = backend->free_memory();
                                        return std::pair(std::move(backend), free);
                                    });
    }
    /// Returns true while a device starts; backend() would then wait for the device.
    bool starting() const { return m_starting.valid(); }
    /// Waits until the device has started, and returns the backend.
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
    /// Returns the device bytes that the run may use: -device-memory, else device_share(); 0 on the CPU.
    uint64_t device_memory() {
        if (!on_devices()) return 0;
        const uint64_t asked = m_run.options().device_memory;
        return asked > 0 ? asked : device_share(m_free);
    }
    /// Returns the options of Run::pass() for a pass that computes on the device.
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
            // With several ranks the run ends, because the other ranks use their devices.
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
