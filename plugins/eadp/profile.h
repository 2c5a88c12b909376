// SPDX-License-Identifier: MIT
// The passes that compute a profile from component planes, their order and their tiles.
#pragma once

#include "eadp/eadp.h"
#include "stream/pipeline.h"
#include "stream/pixel_mask.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::eadp {

/// The settings for the passes of a profile. `share` is a pass's fraction of the whole work; all shares add
/// up to 1.
struct ProfileRun {
    /// Bytes for tile buffers, excluding the memory of the source.
    uint64_t memory = uint64_t{1} << 30;
    /// Returns the options of a pass. Their number of workers is the number of threads, which process either
    /// one tile together or one tile each. make_profile() then replaces their memory.
    std::function<stream::PassOptions(const std::string& name, double share)> pass;
    std::function<void(const stream::PassReport&)> finished = [](const stream::PassReport&) {};
    std::function<void(const std::string&)> warn = [](const std::string&) {};
    std::string folder = "."; ///< folder for planes that do not fit in memory
    /// Pixels that count in ranges and contrasts; null: all pixels. The profile includes all pixels in both
    /// cases.
    std::shared_ptr<const stream::PixelMask> mask;
    /// True if the sink that open_sink() will return is expected to accept whole bands (stream::BandTaker).
    bool sink_takes_bands = false;
};

/// The facts about a component after the run. With cascade evolution, there are also facts about every copy
/// from which another copy starts.
struct ComponentFacts {
    int component = 0, copy = 0; ///< copy 0: the component itself
    Range range;
    double k = 0;
};

struct ProfileFacts {
    std::vector<ComponentFacts> components;
};

/// Returns the number of bands of the profile: each component and its copies.
inline int profile_bands(const Options& options, int components) {
    return components * (options.copies() + 1);
}

/// The plan of the diffusion pass; with cascade evolution, of the longest diffusion pass. If the whole scene
/// fits in memory, it is one tile for all threads. Otherwise tiles have a halo, and each thread processes one
/// tile. With several ranks, each rank processes a strip of the scene with all its threads.
struct DiffusionPlan {
    TilePlan plan;
    Way way = Way::tiles;
    int team = 1;
    uint64_t bytes = 0; ///< size of the buffers in bytes
};
DiffusionPlan plan_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                           const ProfileRun& run);
/// Returns the plan for planes that do not exist yet.
DiffusionPlan plan_profile(const stream::CubeShape& components, const Options& options, Backend& backend,
                           const ProfileRun& run);

/// Computes the profile. Calls open_sink once, when the facts are known and before the first tile is written.
/// The sink that it returns must have profile_bands() bands.
ProfileFacts make_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                          const std::function<stream::CubeSink&(const ProfileFacts&)>& open_sink,
                          const ProfileRun& run);

} // namespace hsi::eadp
