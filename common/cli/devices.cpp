// SPDX-License-Identifier: MIT
#include "cli/devices.h"

namespace hsi::cli {

std::string describe_devices(const Run& run, const std::vector<CudaDevice>& devices, const char* simd) {
    if (devices.empty())
        return "CPU, " + std::to_string(run.options().threads) +
               (run.options().threads == 1 ? " thread, " : " threads, ") + simd;
    std::string text = "CUDA";
    for (const auto& d : devices)
        text += " " + std::to_string(d.ordinal) + " (" + d.name + ")";
    return text;
}

void tell_devices(Run& run, const std::vector<CudaDevice>& devices, const char* simd) {
    const std::string text = describe_devices(run, devices, simd);
    run.report()["device"] = text;
    run.note("Device: " + text);
}

uint64_t device_memory(const CommonOptions& options, uint64_t free) {
    return options.device_memory > 0 ? options.device_memory : free / 5 * 4;
}

} // namespace hsi::cli
