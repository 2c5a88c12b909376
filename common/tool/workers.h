// SPDX-License-Identifier: MIT
// The count of workers of a run, and of those that a device gets.
#pragma once

#include "stream/pipeline.h"

#include <cstdint>
#include <string>

namespace hsi::tool {

inline constexpr int most_threads = 1024;
/// -threads, for each of `sharing` processes of one machine. given = false: GDAL_NUM_THREADS, else all
/// processors that this process may use. \throws UsageError
int thread_count(const std::string& text, bool given, int sharing);

/// For a raw scene that goes through a device. Its lanes wait only for the file and for the device. Each has
/// a stream, buffers on the device and pinned memory, which take longer to make and to free than a few dozen
/// megabytes take to read. So there is one lane for each piece of this size, and never fewer than the minimum
/// below.
inline constexpr uint64_t bytes_worth_a_lane = uint64_t{64} << 20;
inline constexpr int least_device_lanes = 4;
/// In a program that is not ours, where all of these stay for the next call.
inline constexpr uint64_t bytes_worth_a_kept_lane = uint64_t{16} << 20;
/// Where each lane holds large buffers on a device (SAHIC's classifier): 8 lanes read 10 GB in 0.60 s, 16 in
/// 0.455.
inline constexpr int most_lanes_a_device = 16;
/// Makes the pass compute on a device, in so many bytes of its memory; 0: it does not.
void set_device_memory(stream::PassOptions& pass, uint64_t bytes);

} // namespace hsi::tool
