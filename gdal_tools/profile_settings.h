// SPDX-License-Identifier: MIT
// What gdal_hsi_profile is asked for, and what it writes.
#pragma once

#include "profile/profile.h"
#include "raster/sink/raster_sink.h"
#include "tool/run.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::tools {

struct ProfileSettings {
    profile::Kind kind = profile::Kind::eap;
    std::string attributes;              ///< -attribute, as given
    std::vector<std::string> thresholds; ///< -thresholds, as given
    bool eight = false, no_pca = false, components_given = false;
    int components = 7;
    /// The attributes that were chosen, with their thresholds; none: the default's.
    std::vector<profile::AttributeSet> sets;
};

/// Fills `sets`. \throws UsageError when the options contradict one another.
void resolve_profile(ProfileSettings& s);

/// The default thresholds filled in, which depend on the pixel's size.
profile::Options profile_options(const ProfileSettings& s, double pixel_metres);

/// True when a default threshold is one of area.
bool needs_pixel_size(const ProfileSettings& s);

raster::OutputSpec profile_raster(const stream::CubeShape& scene, const ProfileSettings& s,
                                  const profile::Options& options,
                                  const std::vector<std::string>& components);

/// Where planes lie and how many sides are worked on at once.
struct ProfilePlan {
    bool components_held = false;
    bool written = false;      ///< the profile goes to dst band by band as it is made
    bool profile_held = false; ///< else: it waits in memory, not in a file
    int workers = 1;
    uint64_t side_bytes = 0;
    uint64_t pass_bytes = 0; ///< for tiles beside the planes
};

/// Whole planes or nothing: what a tree says of a pixel may hang on any other. \throws Error when -memory
/// does not hold one side of a component. sink_takes_bands: dst does (RasterSink::will_take_bands()).
ProfilePlan plan_profile_planes(const tool::Run& run, const stream::CubeShape& components,
                                const profile::Options& options, bool sink_takes_bands);

} // namespace hsi::tools
