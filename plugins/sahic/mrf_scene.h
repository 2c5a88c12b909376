// SPDX-License-Identifier: MIT
// The Markov random field over a scene of any size: as a whole if it fits in memory, else in tiles with a
// halo.
#pragma once

#include "core/host_memory.h"
#include "core/tile_plan.h"
#include "sahic/sahic.h"
#include "stream/pipeline.h"
#include "stream/plane_store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hsi::sahic {

/// The inputs of the plan of the Markov random field.
struct MrfRequest {
    stream::CubeShape shape; ///< of the scene; its bands do not matter
    int classes = 0;
    MrfOptions mrf;
    bool periodic = false; ///< the scene wraps around at its border
    uint64_t memory = 0;   ///< host bytes in total
    uint64_t device_memory = 0;
    int64_t tile_samples = 0, tile_lines = 0; ///< forced size of the tiles; 0: choose
    /// The memory of a solver for windows of this size.
    std::function<uint64_t(const MrfLimits&)> host_bytes, device_bytes;
};

struct MrfPlan {
    bool whole = true, store_in_memory = true;
    int64_t halo = 0;
    TilePlan tiles; ///< cores; windows are those of the tiles, or wrap around
    MrfLimits limits;
    uint64_t host_bytes = 0;
};

/// Returns a plan with the whole scene if it fits, else with tiles of the size for which the fewest pixels
/// are computed twice. \throws Error if no halo is wide enough for these options, or if the smallest tile
/// does not fit.
MrfPlan plan_mrf(const MrfRequest& request);

/// Pixels whose class is known and kept by the field.
struct FixedPixels {
    std::vector<int64_t> index;  ///< line * samples + sample, ascending
    std::vector<uint16_t> value; ///< class value of each
};

/// The requested outputs of class map, probabilities and confidence, in this order.
struct MrfOutputs {
    std::vector<stream::CubeSink*> sinks;
    bool probabilities = false, confidence = false;
    bool map = true;
    int probability_bands = 0; ///< only the first ones; 0: all classes
};

struct MrfResult {
    MrfResiduals residuals;
    stream::PassReport report;
    std::vector<int64_t> pixels_by_class; ///< in the order of the classes
};

/// The solver and its devices.
struct MrfSetup {
    std::unique_ptr<MrfSolver> solver; ///< made for the plan's limits; null on a rank that does not solve
    std::shared_ptr<HostAllocator> allocator; ///< allocator of buffers other than q
    std::shared_ptr<HostAllocator> of_q;
    HostBuffer<float> q; ///< of the plan's limits, if already allocated; else smooth_scene() allocates it
    bool joint = false;  ///< other ranks solve the same problem at the same time, in the same memory
};

/// Creates the solver; all ranks call it together. All ranks of the root's host solve a field of the whole
/// scene together if they can share memory and the backend supports this, otherwise the root alone. Any rank
/// solves tiles.
MrfSetup make_mrf_setup(Backend& backend, const MrfRequest& request, const MrfPlan& plan);

/// Smooths the probabilities (one plane per class, then the weight: the output of SpectralPass) and writes
/// the outputs tile by tile. `pass` gives progress and cancellation.
/// \throws Cancelled.
MrfResult smooth_scene(const MrfRequest& request, const MrfPlan& plan, const MrfSetup& by,
                       const stream::PlaneStore& planes, const FixedPixels& fixed,
                       const std::vector<ModelClass>& classes, const MrfOutputs& outputs,
                       const stream::PassOptions& pass);

} // namespace hsi::sahic
