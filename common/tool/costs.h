// SPDX-License-Identifier: MIT
// The cost of a run on the CPU and on a device, from which -device auto chooses. It includes bytes,
// compression, and the costs that the algorithms state (core/cost.h).
#pragma once

#include "core/cost.h"

#include <string>

namespace hsi::tool {

/// The seconds that a core takes to decode and to encode a byte of samples: floats with noise, at the default
/// levels. 0 if unknown. The codings have GDAL's and HDF5's names.
struct CodingCost {
    double decode = 0, encode = 0;
};
CodingCost coding_cost(const std::string& compression);

/// The approximate amount of work of a run, sufficient to estimate whether the CPU or a device is faster.
struct Work {
    double cpu_reads = 0,
           device_reads = 0;   ///< bytes of floats read in all passes, on the core or the device
    double writes = 0;         ///< bytes, in addition to reading and computing
    double writes_after = 0;   ///< bytes, after all other work
    double core_seconds = 0;   ///< of computing, by one core
    double seconds_beside = 0; ///< the part of core_seconds during which a run on the CPU writes
                               ///< `writes_after`
    double device_seconds = 0; ///< of computing, by a device
    double cpu_decoding = 0, device_decoding = 0, encoding = 0; ///< seconds of a core; set by
                                                                ///< choose_devices()
    /// Adds `units` units of work.
    void add(const Cost& cost, double units) { add(cost, units, units); }
    /// Adds different numbers of units on a core and on a device.
    void add(const Cost& cost, double on_core, double on_device) {
        core_seconds += cost.core * on_core;
        device_seconds += cost.device * on_device;
    }
};
/// The seconds from start to end, with the files in the system's cache.
struct Estimate {
    double cpu = 0, device = 0;
};
Estimate estimate(const Work& work, int threads);
/// Returns "CPU, about 1.2 s; CUDA, about 2.4 s", or only the first part without a device.
std::string describe(const Estimate& estimate, bool with_device);

} // namespace hsi::tool
