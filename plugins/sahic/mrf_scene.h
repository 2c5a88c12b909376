// SPDX-License-Identifier: MIT
// The Markov random field over a scene of any size: as a whole if it fits in memory, otherwise in tiles with
// a halo.
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

/// The inputs for planning the Markov random field.
struct MrfRequest {
    stream::CubeShape shape; ///< size of the scene; its number of bands is ignored
    int classes = 0;
    MrfOptions mrf;
    bool periodic = false; ///< true if the scene wraps around at its border
    uint64_t memory = 0;   ///< host bytes in total
    uint64_t device_memory = 0;
    int64_t tile_samples = 0, tile_lines = 0; ///< requested size of the tiles; 0: chosen by the plan
    /// Return the memory of a solver for windows of this size.
    std::function<uint64_t(const MrfLimits&)> host_bytes, device_bytes;
};

struct MrfPlan {
    bool whole = true, store_in_memory = true;
    int64_t halo = 0;
    TilePlan tiles; ///< cores of the tiles; with a wrapping border, windows extend beyond the scene
    MrfLimits limits;
    uint64_t host_bytes = 0;
};

/// Returns a plan with the whole scene if it fits, otherwise with tiles. The size of the tiles is the size
/// with the fewest pixels that are computed twice. \throws Error if no halo is wide enough for these options,
/// or if the smallest tile does not fit.
MrfPlan plan_mrf(const MrfRequest& request);

/// Pixels whose class is known and which the field does not change.
struct FixedPixels {
    std::vector<int64_t> index;  ///< line * samples + sample, ascending
    std::vector<uint16_t> value; ///< class value of each pixel
};

/// The requested outputs: class map, probabilities and confidence, in this order.
struct MrfOutputs {
    std::vector<stream::CubeSink*> sinks;
    bool probabilities = false, confidence = false;
    bool map = true;
    int probability_bands = 0; ///< number of probability bands, from the first class on; 0: all classes
};

struct MrfResult {
    MrfResiduals residuals;
    stream::PassReport report;
    std::vector<int64_t> pixels_by_class; ///< number of pixels per class, in the order of the classes
};

/// The solver and the memory that it uses.
struct MrfSetup {
    std::unique_ptr<MrfSolver> solver; ///< solver for the plan's limits; null on a rank that does not solve
    /// Allocator of all buffers except q.
    std::shared_ptr<HostAllocator> allocator;
    std::shared_ptr<HostAllocator> of_q;
    /// Buffer for the plan's limits, if it is already allocated; otherwise smooth_scene() allocates it.
    HostBuffer<float> q;
    /// True if other ranks solve the same problem at the same time, in the same memory.
    bool joint = false;
};

/// Creates the solver. All ranks call this function together. If the ranks on the root's host can share
/// memory, and the backend supports this, they solve a field of the whole scene together. Otherwise the root
/// solves it alone. Tiles can be solved by any rank.
MrfSetup make_mrf_setup(Backend& backend, const MrfRequest& request, const MrfPlan& plan);

/// Smooths the probabilities and writes the outputs tile by tile. `planes` has one plane per class, then the
/// weight, which is the output of SpectralPass. `pass` has the functions for progress and cancellation.
/// \throws Cancelled.
MrfResult smooth_scene(const MrfRequest& request, const MrfPlan& plan, const MrfSetup& by,
                       const stream::PlaneStore& planes, const FixedPixels& fixed,
                       const std::vector<ModelClass>& classes, const MrfOutputs& outputs,
                       const stream::PassOptions& pass);

} // namespace hsi::sahic
