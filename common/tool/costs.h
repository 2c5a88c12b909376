// SPDX-License-Identifier: MIT
// The cost of a run on the CPU and on a device, from which -device auto chooses. It includes bytes,
// compression, and the costs that the algorithms state (core/cost.h).
#pragma once

#include "core/cost.h"

#include <string>

namespace hsi::tool {

/// The seconds that a core takes to decode and to encode a byte of samples; 0: unknown. They hold for floats
/// with noise, at the default levels of compression. `compression` is the name in GDAL or HDF5.
struct CodingCost {
    double decode = 0, encode = 0;
};
CodingCost coding_cost(const std::string& compression);

/// The approximate amount of work of a run, sufficient to estimate whether the CPU or a device is faster.
struct Work {
    double cpu_reads = 0,
           device_reads = 0; ///< bytes of floats that all passes read, if a core or a device computes
    double writes = 0;       ///< bytes that are written while passes read and compute
    double writes_after = 0; ///< bytes that are written after all other work
    double core_seconds = 0; ///< seconds of computing by one core
    /// The part of core_seconds during which a run on the CPU already writes `writes_after`.
    double seconds_beside = 0;
    double device_seconds = 0; ///< seconds of computing by a device
    /// Seconds of one core: for decoding if the CPU computes, for decoding if a device computes, and for
    /// encoding. Set by choose_devices().
    double cpu_decoding = 0, device_decoding = 0, encoding = 0;
    /// Adds `units` units of work.
    void add(const Cost& cost, double units) { add(cost, units, units); }
    /// Adds different numbers of units on a core and on a device.
    void add(const Cost& cost, double on_core, double on_device) {
        core_seconds += cost.core * on_core;
        device_seconds += cost.device * on_device;
    }
};
/// The estimated seconds of a whole run, if the files are in the system's cache.
struct Estimate {
    double cpu = 0, device = 0;
};
Estimate estimate(const Work& work, int threads);
/// Returns "CPU, about 1.2 s; CUDA, about 2.4 s", or only the first part without a device.
std::string describe(const Estimate& estimate, bool with_device);

} // namespace hsi::tool
