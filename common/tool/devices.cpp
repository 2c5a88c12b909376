// SPDX-License-Identifier: MIT
#include "tool/devices.h"

namespace hsi::tool {

std::string describe_devices(const Run& run, const std::vector<CudaDevice>& devices, const char* simd) {
    if (devices.empty()) {
        const int threads = run.options().threads;
        return "CPU, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
               (simd != nullptr ? std::string(", ") + simd : "");
    }
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

std::vector<CudaDevice> choose_devices(Run& run, const std::string& algorithm, uint64_t work_bytes,
                                       size_t most) {
    auto devices = hsi::choose_devices(run.options().device, algorithm, work_bytes);
    if (devices.size() > most) {
        run.warn("this tool computes on one device: CUDA " + std::to_string(devices.front().ordinal));
        devices.resize(most);
    }
    return devices;
}

} // namespace hsi::tool
