// SPDX-License-Identifier: MIT
#include "tool/resources.h"

#include "core/counted.h"
#include "core/host_memory.h"
#include "core/process_limits.h"
#include "core/process_owner.h"
#include "core/text.h"
#include "parallel/ranks.h"
#include "tool/words.h"

#include <cpl_conv.h>

#include <algorithm>
#include <cstdio>

namespace hsi::tool {
namespace {

// Enough for GDAL's own bookkeeping and for one row of blocks of an ordinary file.
constexpr uint64_t least_cache = uint64_t{16} << 20;
// Less than this holds no line of any scene worth a pass.
constexpr uint64_t least_buffers = uint64_t{64} << 10;

/// GDAL_NUM_THREADS, or all processors.
int default_threads() {
    const char* const text = CPLGetConfigOption("GDAL_NUM_THREADS", "ALL_CPUS");
    if (equal_names(text, "ALL_CPUS")) return std::min(usable_processors(), most_threads);
    const auto count = parse_integer(text);
    if (!count || *count < 0)
        throw UsageError("GDAL_NUM_THREADS: '" + std::string(text) +
                             "' is neither ALL_CPUS nor a number of threads",
                         "Correct the configuration option, or give -threads.");
    // To GDAL 0 means no threads beside the first.
    return static_cast<int>(std::clamp<long long>(*count, 1, most_threads));
}

} // namespace

int thread_count(const std::string& text, bool given, int sharing) {
    if (!given) return std::max(1, default_threads() / sharing);
    if (equal_names(text, "ALL_CPUS")) return std::clamp(usable_processors() / sharing, 1, most_threads);
    return static_cast<int>(
        integer_of(text, "-threads", 1, most_threads,
                   "ALL_CPUS or a whole number from 1 to " + std::to_string(most_threads)));
}

uint64_t memory_bytes(const std::string& text, int sharing) {
    return parse_byte_size(text, usable_ram() / static_cast<uint64_t>(sharing), "-memory");
}

uint64_t device_memory_bytes(const std::string& text) {
    if (text.empty()) return 0;
    if (text.find('%') != std::string::npos)
        throw UsageError(
            "-device-memory: '" + text + "' is not a memory size",
            "Give a size such as 8GB; without the option 80 % of the free device memory is used.");
    return parse_byte_size(text, 0, "-device-memory");
}

void leave_room(stream::PassOptions& pass, uint64_t held) {
    pass.memory -= std::min(half(pass.memory), held);
}

uint64_t MemoryPlan::cache() const {
    const uint64_t bytes = std::min(std::max(m_cache_wanted, least_cache), quarter(m_memory));
    // GDAL lays the bands that share a block with the one it is asked for into the cache, when they fit.
    // Where that pushes them out again before they are asked for, each band brings all others anew: better
    // that none fits.
    const auto lanes = static_cast<uint64_t>(std::max(1, m_threads));
    return m_shared_block > 0 && bytes >= m_shared_block && bytes < (lanes + 1) * m_shared_block
               ? m_shared_block - 1
               : bytes;
}

uint64_t MemoryPlan::buffers(uint64_t held) const {
    // What was reserved beyond the block cache is held elsewhere: in a sink's blocks in the making. It is
    // left free for that, up to half of the whole; a scene that is kept took at most half of the rest.
    held += m_held + std::clamp(m_cache_wanted, cache(), half(m_memory));
    const uint64_t left = m_memory - std::min(held, m_memory);
    if (left < least_buffers)
        throw Error("-memory: " + format_byte_size(m_memory) + " leaves no room for tile buffers",
                    "Give more, for example -memory 64MB.");
    return left;
}

bool MemoryPlan::may_keep(uint64_t bytes, uint64_t left, uint64_t reader, uint64_t beside) {
    return bytes <= half(left) && left - bytes >= std::max(beside, reader + least_buffers);
}

void set_device_memory(stream::PassOptions& pass, uint64_t bytes) {
    pass.device_memory = bytes;
    const uint64_t worth_a_lane = process_is_ours() ? bytes_worth_a_lane : bytes_worth_a_kept_lane;
    pass.bytes_worth_a_lane = bytes > 0 ? worth_a_lane : 0;
    pass.least_lanes = bytes > 0 ? least_device_lanes : 1;
}

std::string describe_devices(const Run& run, const std::vector<CudaDevice>& devices, const char* simd) {
    if (devices.empty()) {
        const int threads = run.options().threads;
        return "CPU, " + counted(threads, "thread") + (simd != nullptr ? std::string(", ") + simd : "");
    }
    std::string text = "CUDA";
    for (const auto& d : devices)
        text += " " + std::to_string(d.ordinal) + " (" + d.name + ")";
    return text;
}

void report_devices(Run& run, const std::vector<CudaDevice>& devices, const char* simd) {
    const std::string text = describe_devices(run, devices, simd);
    run.report()["device"] = text;
    if (parallel::Ranks& ranks = parallel::ranks(); ranks.several())
        run.report()["rank_devices"] = ranks.all("device", text);
    run.note("Device: " + text);
}

Estimate estimate(const Work& work, int threads) {
    // Measured on 16 cores and an NVIDIA H200, the start on an H100 (docs/measurements_runs.md). Bytes a
    // second: one thread reads what the system holds, all threads do, all threads write a file, a device is
    // given its input.
    constexpr double reads = 2.5e9, most_reads = 40e9, writes = 4.2e9, copies = 25e9;
    // Seconds: a process of ours, and what a device takes to start and to end.
    constexpr double process = 0.08, device = 0.33;
    const double reading = std::min(most_reads, reads * threads), written = work.writes / writes;
    // Lanes read and compute in turn, and write side by side with that; a device computes side by side, too.
    const double cpu =
        work.cpu_reads / reading + (work.core_seconds + work.cpu_decoding + work.encoding) / threads;
    const double fed = work.device_reads / std::min(reading, copies);
    const double after = work.writes_after / writes,
                 coding = (work.device_decoding + work.encoding) / threads;
    return {process + std::max(0.0, after - work.seconds_beside / threads) + std::max(cpu, written),
            process + after + device + std::max({fed, work.device_seconds, written, coding})};
}

std::string describe(const Estimate& estimate, bool with_device) {
    const auto about = [](double seconds) {
        char text[32];
        std::snprintf(text, sizeof text, seconds < 10 ? "%.1f" : "%.0f", seconds);
        return std::string(", about ") + text + " s";
    };
    return "CPU" + about(estimate.cpu) + (with_device ? "; CUDA" + about(estimate.device) : "");
}

void take_own_device(DeviceChoice& choice) {
    if (choice.kind != DeviceChoice::Kind::cuda) return;
    const auto local = static_cast<size_t>(parallel::ranks().local_rank());
    if (!choice.devices.empty())
        choice.devices = {choice.devices[local % choice.devices.size()]};
    else if (const size_t count = cuda_devices().size(); count > 0)
        choice.devices = {static_cast<int>(local % count)};
}

CodingCost coding_cost(const std::string& compression) {
    struct Codec {
        const char* name;
        CodingCost cost;
    };
    // docs/measurements_runs.md
    static constexpr Codec codecs[] = {{"DEFLATE", {2.5e-9, 4.3e-9}},      {"ZSTD", {1.7e-9, 5.6e-9}},
                                       {"LZW", {5.5e-9, 1.1e-8}},          {"LERC", {1.4e-9, 2.5e-9}},
                                       {"LERC_DEFLATE", {3.9e-9, 5.2e-9}}, {"LERC_ZSTD", {2.4e-9, 4.4e-9}}};
    for (const Codec& codec : codecs)
        if (equal_names(compression, codec.name)) return codec.cost;
    return {};
}

namespace {

/// What the links of the run's chains compute in each pass, roughly.
void add_links(const Run& run, Work& work) {
    for (const auto& source : run.sources()) {
        const auto chain = source->chain();
        const auto bytes = static_cast<double>(source->shape().float_bytes());
        const double on_core = work.cpu_reads / bytes, on_device = work.device_reads / bytes; // passes
        const auto pixels = static_cast<double>(source->shape().pixels());
        for (const auto& link : chain)
            work.add(link.per_pixel, pixels * on_core, pixels * on_device);
        if (!chain.empty()) return; // the scene; others are read once
    }
}

/// Several passes over an array in host memory have it on the device. In a single one copies there, kernels
/// and copies back go side by side, tile by tile.
void keep_arrays_on(const Run& run, const std::vector<CudaDevice>& devices, const Work& work) {
    const CommonOptions& options = run.options();
    if (devices.size() != 1 || options.device_memory > 0 || options.dry_run || parallel::ranks().several())
        return;
    for (const auto& source : run.sources()) {
        const auto bytes = static_cast<double>(source->shape().float_bytes());
        if (work.cpu_reads >= 2 * bytes) source->keep_on(devices.front(), options.threads);
    }
}

} // namespace

std::vector<CudaDevice> choose_devices(Run& run, const std::string& algorithm, Work work, size_t most) {
    add_links(run, work);
    work.cpu_decoding = run.decoding_cost() * work.cpu_reads;
    work.device_decoding = run.decoding_cost() * work.device_reads;
    work.encoding = coding_cost(raster::RasterSink::compression(run.options().destination)).encode *
                    (work.writes + work.writes_after);
    const auto& choice = run.options().device;
    const int processes = std::max(run.options().ranks, parallel::ranks().job_size());
    const Estimate seconds = estimate(work, run.options().threads * processes);
    if (run.options().dry_run) {
        const bool there = choice.kind != DeviceChoice::Kind::cpu && cuda_module_present(algorithm) &&
                           !cuda_devices().empty();
        run.print(describe(seconds, there));
        run.report()["estimated_seconds"]["cpu"] = seconds.cpu;
        if (there) run.report()["estimated_seconds"]["cuda"] = seconds.device;
    }
    if (choice.kind == DeviceChoice::Kind::automatic && seconds.device >= seconds.cpu) return {};
    auto devices = hsi::choose_devices(choice, algorithm);
    if (parallel::Ranks& ranks = parallel::ranks();
        ranks.several() && choice.kind == DeviceChoice::Kind::automatic) {
        // All ranks compute in one place: a device's last digits are not the processor's.
        if (ranks.any("devices of " + algorithm, devices.empty())) return {};
        devices = {cuda_devices()[static_cast<size_t>(ranks.local_rank()) % cuda_devices().size()]};
    }
    if (devices.size() > most) {
        run.warn("this tool computes on one device: CUDA " + std::to_string(devices.front().ordinal));
        devices.resize(most);
    }
    run.compute_links_on(devices);
    keep_arrays_on(run, devices, work);
    return devices;
}

} // namespace hsi::tool
