// SPDX-License-Identifier: MIT
// The number of threads of a run (-threads), and of workers on a device.
#pragma once

#include "stream/pipeline.h"

#include <cstdint>
#include <string>

namespace hsi::tool {

inline constexpr int most_threads = 1024;
/// Returns the number of threads of each of `sharing` processes on one machine. given = true: `text` is the
/// value of -threads; a number applies to each process, and ALL_CPUS is divided among the processes. given =
/// false: GDAL_NUM_THREADS, or else all processors that this process may use, are divided among the
/// processes. \throws UsageError
int thread_count(const std::string& text, bool given, int sharing);

/// The number of bytes of a raw scene for each worker (lane) on a device. Workers wait only for the file and
/// for the device. Each worker has a stream, buffers on the device and pinned memory, and creating and
/// freeing them takes longer than reading a few dozen megabytes. So there is one worker per piece of this
/// size, and never fewer than the minimum below.
inline constexpr uint64_t bytes_worth_a_lane = uint64_t{64} << 20;
inline constexpr int least_device_lanes = 4;
/// Replaces bytes_worth_a_lane inside another program, in which streams, buffers and pinned memory are kept
/// for the next call.
inline constexpr uint64_t bytes_worth_a_kept_lane = uint64_t{16} << 20;
/// The maximum number of workers per device if each worker has large buffers there (SAHIC's classifier): 8
/// workers read 10 GB in 0.60 s, 16 workers in 0.455 s.
inline constexpr int most_lanes_a_device = 16;
/// Makes the pass compute on a device, in `bytes` of its memory; 0: on the CPU.
void set_device_memory(stream::PassOptions& pass, uint64_t bytes);

} // namespace hsi::tool
