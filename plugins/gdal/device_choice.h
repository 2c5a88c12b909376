// SPDX-License-Identifier: MIT
// The configuration option GDAL_HSI_DEVICE: the requested device, and the GPUs that it names. gdal_HSI.so and
// the driver, which are separate libraries, both use this header.
#pragma once

#include "core/counted.h"
#include "core/cuda_module.h"
#include "core/error.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hsi::plugin {

/// Parses the option's value: auto, cpu, cuda, cuda:I or cuda:I,J. Throws Error for other values.
inline DeviceChoice device_choice(const std::string& asked) {
    try {
        return parse_device(asked);
    } catch (const UsageError& e) {
        throw Error("the configuration option GDAL_HSI_DEVICE: '" + asked + "' is not a device", e.advice());
    }
}

/// Returns the devices that `choice` names; the first device if it names none. Throws Error if a device does
/// not exist.
inline std::vector<CudaDevice> devices_asked_for(const DeviceChoice& choice) {
    const auto& all = cuda_devices();
    if (all.empty())
        throw Error("no CUDA device was found",
                    "Check the driver with nvidia-smi, or set GDAL_HSI_DEVICE=cpu.");
    if (choice.devices.empty()) return {all.front()};
    std::vector<CudaDevice> chosen;
    for (const int ordinal : choice.devices) {
        if (ordinal >= static_cast<int>(all.size()))
            throw Error(std::string("there ") + worded(all.size(), "is", "are") + " only " +
                            counted(all.size(), "CUDA device") + " (0.." + std::to_string(all.size() - 1) +
                            ")",
                        "Use one of them.");
        chosen.push_back(all[static_cast<size_t>(ordinal)]);
    }
    return chosen;
}

} // namespace hsi::plugin
