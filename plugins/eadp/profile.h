// SPDX-License-Identifier: MIT
// From component planes to a profile: the passes, their order and their tiles.
#pragma once

#include "eadp/eadp.h"
#include "stream/pipeline.h"
#include "stream/pixel_mask.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::eadp {

/// The conditions of the passes. Shares of one profile add up to 1.
struct ProfileRun {
    /// Bytes for tile buffers, without the memory of the source itself.
    uint64_t memory = uint64_t{1} << 30;
    /// Returns pass options. Its lanes are the threads that process one tile together, or one tile each; its
    /// memory is set here.
    std::function<stream::PassOptions(const std::string& name, double share)> pass;
    std::function<void(const stream::PassReport&)> finished = [](const stream::PassReport&) {};
    std::function<void(const std::string&)> warn = [](const std::string&) {};
    std::string folder = "."; ///< for planes that do not fit in memory
    /// Pixels that count in ranges and contrasts; null: all. The profile includes all pixels.
    std::shared_ptr<const stream::PixelMask> mask;
    /// The sink of open_sink() is expected to accept bands (stream::BandTaker).
    bool sink_takes_bands = false;
};

/// Facts about a component after the run; in the cascade, about every copy from which another copy starts.
struct ComponentFacts {
    int component = 0, copy = 0; ///< copy 0: the component itself
    Range range;
    double k = 0;
};

struct ProfileFacts {
    std::vector<ComponentFacts> components;
};

/// Returns the bands of the profile: for every component itself, then its copies.
inline int profile_bands(const Options& options, int components) {
    return components * (options.copies() + 1);
}

/// The plan of the diffusion pass (of the longest one in the cascade): one tile for the whole scene with all
/// threads, if it fits in memory; otherwise tiles with their halo, one thread per tile. With several ranks,
/// each processes a strip of the scene with all its threads.
struct DiffusionPlan {
    TilePlan plan;
    Way way = Way::tiles;
    int team = 1;
    uint64_t bytes = 0; ///< of buffers
};
DiffusionPlan plan_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                           const ProfileRun& run);
/// Returns the plan for planes that do not exist yet.
DiffusionPlan plan_profile(const stream::CubeShape& components, const Options& options, Backend& backend,
                           const ProfileRun& run);

/// Computes the profile. open_sink is called once, when the facts are known and before the first tile is
/// written; its sink has profile_bands() bands.
ProfileFacts make_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                          const std::function<stream::CubeSink&(const ProfileFacts&)>& open_sink,
                          const ProfileRun& run);

} // namespace hsi::eadp
