// SPDX-License-Identifier: MIT
#include "tool/devices.h"

#include "core/counted.h"
#include "parallel/ranks.h"

#include <algorithm>
#include <cstdio>

namespace hsi::tool {

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

void tell_devices(Run& run, const std::vector<CudaDevice>& devices, const char* simd) {
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
    const double cpu = work.cpu_reads / reading + work.core_seconds / threads;
    const double fed = work.device_reads / std::min(reading, copies);
    const double after = work.writes_after / writes;
    return {process + std::max(0.0, after - work.seconds_beside / threads) + std::max(cpu, written),
            process + after + device + std::max({fed, work.device_seconds, written})};
}

std::string describe(const Estimate& estimate, bool with_device) {
    const auto about = [](double seconds) {
        char text[32];
        std::snprintf(text, sizeof text, seconds < 10 ? "%.1f" : "%.0f", seconds);
        return std::string(", about ") + text + " s";
    };
    return "CPU" + about(estimate.cpu) + (with_device ? "; CUDA" + about(estimate.device) : "");
}

uint64_t least_of_ranks(uint64_t free_device_memory) {
    return parallel::ranks().least("free device memory", free_device_memory);
}

bool is_one_of_several() { return parallel::ranks().several(); }

std::vector<CudaDevice> choose_devices(Run& run, const std::string& algorithm, const Work& work,
                                       size_t most) {
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
    return devices;
}

} // namespace hsi::tool
