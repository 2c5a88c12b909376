// SPDX-License-Identifier: MIT
// What a run may take of the machine, and where it computes: threads, how -memory is divided into GDAL's
// block cache, tile buffers and what is kept, how many lanes feed a device, which device a rank has and how
// much of it; what every algorithm costs on a core and on a device, in one table, and the choice that
// follows. No other file decides any of this; numbers of one operation (its tiles' size, its buffers) are its
// own.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "core/process_owner.h"
#include "tool/run.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tool {

// Threads and memory
// ----------------------------------------------------------------------------------------------------------

inline constexpr int most_threads = 1024;
/// -memory and -device-memory where nobody says them.
inline constexpr const char* default_memory = "25%";
inline constexpr const char* default_device_memory = "80 % of what is free";

/// -threads, for each of so many processes (`sharing`) of one machine. given = false: GDAL_NUM_THREADS, else
/// all processors that this process may use. \throws UsageError
int thread_count(const std::string& text, bool given, int sharing);
/// -memory in bytes: a percentage is one of the memory that this process may use, divided by `sharing`.
/// \throws UsageError
uint64_t memory_bytes(const std::string& text, int sharing);
/// -device-memory in bytes; 0: not given. \throws UsageError
uint64_t device_memory_bytes(const std::string& text);
/// What a run takes of the free bytes of a device where nobody says it: 80 %.
inline uint64_t device_share(uint64_t free) { return free / 5 * 4; }

/// Of -memory at most, each: GDAL's block cache, a mask of src, blocks that a sink has in the making.
inline uint64_t quarter(uint64_t memory) { return memory / 4; }
/// Of -memory at most: a reader's decoded blocks, and what is held beside a pass. With the other half one
/// lane can always work.
inline uint64_t half(uint64_t memory) { return memory / 2; }
/// Takes from a pass what is held beside it: planes, spectra. Half of its memory stays.
void leave_room(stream::PassOptions& pass, uint64_t held);

/// How a run's -memory is divided.
class MemoryPlan {
  public:
    MemoryPlan() = default;
    MemoryPlan(uint64_t memory, int threads) : m_memory(memory), m_threads(threads) {}
    /// GDAL's block cache gets so much more, as far as it may.
    void reserve_cache(uint64_t bytes) { m_cache_wanted += bytes; }
    /// A source has bands that share a block of so many bytes.
    void expect_shared_block(uint64_t bytes) { m_shared_block = std::max(m_shared_block, bytes); }
    /// So much is held beside everything, to the end of the run: decoded chunks that readers share.
    void hold(uint64_t bytes) { m_held += bytes; }
    uint64_t cache() const; ///< bytes of GDAL's block cache
    /// For tile buffers: what is left beside the cache, what was reserved beyond it, and what is `held`.
    /// \throws Error when that is too little for any pass
    uint64_t buffers(uint64_t held) const;
    /// Whether a scene of `bytes` may stay in memory beside its reader and what a pass needs `beside` it: up
    /// to half of what is left for buffers.
    static bool may_keep(uint64_t bytes, uint64_t left, uint64_t reader, uint64_t beside);

  private:
    uint64_t m_memory = 0;
    int m_threads = 1;
    uint64_t m_cache_wanted = 0, m_shared_block = 0, m_held = 0;
};

// Lanes of a device
// ----------------------------------------------------------------------------------------------------------

/// Of a raw scene that goes through a device. Its lanes wait for the file and for the device alone, and each
/// has a stream, buffers on the device and pinned memory, which take longer to make and to give back than a
/// few dozen megabytes to read: one lane for each so many bytes of the scene, and no fewer than these.
inline constexpr uint64_t bytes_worth_a_lane = uint64_t{64} << 20;
inline constexpr int least_device_lanes = 4;
/// In a program that is not ours, where all of that stays for the next call.
inline constexpr uint64_t bytes_worth_a_kept_lane = uint64_t{16} << 20;
/// Where each lane holds large buffers on a device (SAHIC's classifier): 8 lanes read 10 GB in 0.60 s, 16 in
/// 0.455.
inline constexpr int most_lanes_a_device = 16;
/// The pass computes on a device, in so many bytes of its memory; 0: it does not.
void set_device_memory(stream::PassOptions& pass, uint64_t bytes);

// What algorithms cost
// ----------------------------------------------------------------------------------------------------------

/// Seconds that a core takes to undo, and to make, the compression of a byte of samples: floats with noise,
/// at the levels that are taken when nobody says one. 0 for what is not known. Of GDAL's and HDF5's words.
struct CodingCost {
    double decode = 0, encode = 0;
};
CodingCost coding_cost(const std::string& compression);

/// What a run has to do, roughly: enough to tell where it ends sooner.
struct Work {
    double cpu_reads = 0,
           device_reads = 0;   ///< bytes of floats read in all passes, where the one computes or the other
    double writes = 0;         ///< bytes, beside reading and computing
    double writes_after = 0;   ///< bytes, once all else is done
    double core_seconds = 0;   ///< of computing, by one core
    double seconds_beside = 0; ///< the part of core_seconds in which a run on the CPU writes `writes_after`
    double device_seconds = 0; ///< the same by a device
    double cpu_decoding = 0, device_decoding = 0, encoding = 0; ///< seconds of a core, of choose_devices()
    /// So many units of work.
    void add(const Cost& cost, double units) { add(cost, units, units); }
    /// Where a core and a device have different numbers of them.
    void add(const Cost& cost, double on_core, double on_device) {
        core_seconds += cost.core * on_core;
        device_seconds += cost.device * on_device;
    }
};
/// Seconds from start to end with the files in the system's memory.
struct Estimate {
    double cpu = 0, device = 0;
};
Estimate estimate(const Work& work, int threads);
/// "CPU, about 1.2 s; CUDA, about 2.4 s"; without a device the first half.
std::string describe(const Estimate& estimate, bool with_device);

// Devices
// ----------------------------------------------------------------------------------------------------------

/// "CPU, 2 threads, AVX2", or "CUDA 0 (NVIDIA H200)".
std::string describe_devices(const Run& run, const std::vector<CudaDevice>& devices, const char* simd);
/// The same into the report and, as a note, to the user.
void report_devices(Run& run, const std::vector<CudaDevice>& devices, const char* simd);

/// The devices that -device names, no more than `most`: those that are left out are told by a warning. auto:
/// the first one where `work` ends sooner on it. -dry-run tells the estimate.
std::vector<CudaDevice> choose_devices(Run& run, const std::string& algorithm, Work work,
                                       size_t most = std::numeric_limits<size_t>::max());

/// Of the devices that -device names the one that this rank of a job has, where its node's ranks share them.
void take_own_device(DeviceChoice& choice);

/// The backend of an algorithm where the user wants it. On devices it starts beside what the tool does first
/// (a scan waits for the file alone); when it cannot and a GPU was not asked for by name, the CPU takes its
/// place, with a warning. Backend: an interface with free_memory(), made by make_cpu() or by the module
/// (make_cuda_backend()).
template <class Backend>
class Computing {
  public:
    using MakeCpu = std::function<std::unique_ptr<Backend>()>;
    /// Tells the user where, unless it is a second backend of the run (told = false).
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
