// SPDX-License-Identifier: MIT
// The plan of gdal_hsi_profile's work. gdal_hsi_info also shows it.
#pragma once

#include "core/error.h"
#include "core/host_memory.h"
#include "profile/profile.h"
#include "tool/run.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace hsi::tools {

/// Describes where planes are stored, and how many sides are computed at the same time. A side is the bright
/// or the dark half of the profile of a component (plugins/profile).
struct ProfilePlan {
    bool components_held = false;
    bool written = false; ///< true if each band of the profile is written to dst as soon as it is computed
    /// True if the bands are stored in memory until the end; false: in a temporary file.
    bool profile_held = false;
    int workers = 1;
    uint64_t side_bytes = 0;
    uint64_t pass_bytes = 0; ///< memory for tiles, in addition to the planes
};

/// Plans the storage of the planes. They are stored whole, because the tree at a pixel may depend on any
/// other pixel. sink_takes_bands: true if dst accepts single bands (will_take_bands()). \throws Error if
/// -memory is too small for one side of a component.
inline ProfilePlan plan_profile_planes(const tool::Run& run, const stream::CubeShape& components,
                                       const profile::Options& options, bool sink_takes_bands) {
    ProfilePlan plan;
    plan.written = sink_takes_bands;
    uint64_t left = run.buffer_memory();
    plan.side_bytes = profile::side_bytes(options, components.pixels());
    if (plan.side_bytes > left)
        throw Error("a component of " + std::to_string(components.samples) + "x" +
                        std::to_string(components.lines) + " pixels needs " +
                        format_byte_size(plan.side_bytes) + " at once, but -memory leaves " +
                        format_byte_size(left),
                    "Give more -memory, or cut the scene with -srcwin.");
    const int most = std::min(run.options().threads, 2 * components.bands);
    const stream::CubeShape profiles{components.samples, components.lines,
                                     components.bands * options.bands()};
    if (components.float_bytes() <= (left - plan.side_bytes) / 2) {
        plan.components_held = true;
        left -= components.float_bytes();
    }
    if (!plan.written && profiles.float_bytes() + plan.side_bytes * static_cast<uint64_t>(most) <= left) {
        plan.profile_held = true;
        left -= profiles.float_bytes();
    }
    plan.workers = static_cast<int>(std::min<uint64_t>(left / plan.side_bytes, static_cast<uint64_t>(most)));
    plan.pass_bytes = left;
    return plan;
}

} // namespace hsi::tools
