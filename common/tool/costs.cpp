// SPDX-License-Identifier: MIT
#include "tool/costs.h"

#include "core/text.h"

#include <algorithm>
#include <cstdio>

namespace hsi::tool {

Estimate estimate(const Work& work, int threads) {
    // Speeds in bytes per second, measured on 16 cores and an NVIDIA H200 (docs/measurements_runs.md): one
    // thread reads cached files; all threads read cached files; all threads write a file; input is copied to
    // a device.
    constexpr double reads = 2.5e9, most_reads = 40e9, writes = 4.2e9, copies = 25e9;
    // In seconds: the start and end of a process of ours, and the start and end of a device (measured on an
    // H100).
    constexpr double process = 0.08, device = 0.33;
    const double reading = std::min(most_reads, reads * threads), written = work.writes / writes;
    // Workers read and compute in turn while others write; a device also computes at the same time.
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

CodingCost coding_cost(const std::string& compression) {
    struct Codec {
        const char* name;
        CodingCost cost;
    };
    // Seconds per byte to decode and to encode (docs/measurements_runs.md).
    static constexpr Codec codecs[] = {{"DEFLATE", {2.5e-9, 4.3e-9}},      {"ZSTD", {1.7e-9, 5.6e-9}},
                                       {"LZW", {5.5e-9, 1.1e-8}},          {"LERC", {1.4e-9, 2.5e-9}},
                                       {"LERC_DEFLATE", {3.9e-9, 5.2e-9}}, {"LERC_ZSTD", {2.4e-9, 4.4e-9}}};
    for (const Codec& codec : codecs)
        if (equal_names(compression, codec.name)) return codec.cost;
    return {};
}

} // namespace hsi::tool
