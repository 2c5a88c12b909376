// SPDX-License-Identifier: MIT
// Component planes to profile: which passes run, in which order, with which tiles.
#pragma once

#include "eadp/eadp.h"
#include "stream/pipeline.h"
#include "stream/pixel_mask.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::eadp {

/// How the passes may run. Shares of one profile add up to 1.
struct ProfileRun {
    /// Bytes for tile buffers, without the memory of the source itself.
    uint64_t memory = uint64_t{1} << 30;
    /// Its lanes are the threads that work on a tile together, or on one tile each; its memory is set here.
    std::function<stream::PassOptions(const std::string& name, double share)> pass;
    std::function<void(const stream::PassReport&)> finished = [](const stream::PassReport&) {};
    std::function<void(const std::string&)> warn = [](const std::string&) {};
    std::string folder = "."; ///< for planes that do not fit in memory
    /// Pixels that count in ranges and contrasts; null: all. The profile is made of all pixels.
    std::shared_ptr<const stream::PixelMask> mask;
    /// The sink of open_sink() will take bands (stream::BandTaker), as far as that is known.
    bool sink_takes_bands = false;
};

/// Facts about a component after the run; in the cascade, about every copy that another one starts from.
struct ComponentFacts {
    int component = 0, copy = 0; ///< copy 0: the component itself
    Range range;
    double k = 0;
};

struct ProfileFacts {
    std::vector<ComponentFacts> components;
};

/// Bands of the profile: for every component itself, then its copies.
inline int profile_bands(const Options& options, int components) {
    return components * (options.copies() + 1);
}

/// The plan of the diffusion pass (of the longest one in the cascade): one tile for the whole scene, with all
/// threads on it, if that fits in memory; else tiles with their halo, one thread each. Several ranks take a
/// strip of the scene each, with all threads of the rank on it.
struct DiffusionPlan {
    TilePlan plan;
    Way way = Way::tiles;
    int team = 1;
    uint64_t bytes = 0; ///< of buffers
};
DiffusionPlan plan_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                           const ProfileRun& run);
/// The same for planes that do not exist yet.
DiffusionPlan plan_profile(const stream::CubeShape& components, const Options& options, Backend& backend,
                           const ProfileRun& run);

/// Computes the profile. open_sink is called once, when the facts are known and before the first tile is
/// written; its sink has profile_bands() bands.
ProfileFacts make_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                          const std::function<stream::CubeSink&(const ProfileFacts&)>& open_sink,
                          const ProfileRun& run);

} // namespace hsi::eadp
