// SPDX-License-Identifier: MIT
// Smooths a scene of any size with the Markov random field: the whole scene at once if it fits in memory,
// otherwise tile by tile, with a halo.
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
    /// Return the host bytes and the device bytes of a solver for windows up to these limits.
    std::function<uint64_t(const MrfLimits&)> host_bytes, device_bytes;
};

struct MrfPlan {
    bool whole = true, store_in_memory = true;
    int64_t halo = 0;
    TilePlan tiles; ///< cores of the tiles; with a wrapping border, windows extend beyond the scene
    MrfLimits limits;
    uint64_t host_bytes = 0;
};

/// Plans the whole scene at once if it fits, otherwise tiles. The plan chooses the size of tiles with which
/// the fewest pixels are computed repeatedly in halos. \throws Error if no halo is wide enough for these
/// options, or if the smallest tile does not fit.
MrfPlan plan_mrf(const MrfRequest& request);

/// Pixels whose class is known, so that smoothing does not change them.
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
    /// Buffer for the result q of the largest window. If it is empty, smooth_scene() allocates it with
    /// `of_q`.
    HostBuffer<float> q;
    /// True if other ranks solve the same problem at the same time, in the same memory.
    bool joint = false;
};

/// Creates the solver. All ranks call this function together. If the plan has the whole scene at once, the
/// ranks on the root's computer solve it together, provided that they can share memory and the backend
/// supports this. Otherwise the root solves it alone. If the plan has tiles, any rank can solve them.
MrfSetup make_mrf_setup(Backend& backend, const MrfRequest& request, const MrfPlan& plan);

/// Smooths the probabilities and writes the outputs tile by tile. `planes` has the outputs of SpectralPass:
/// the probabilities of each class, then the weight. `pass` has the functions for progress and cancellation.
/// \throws Cancelled.
MrfResult smooth_scene(const MrfRequest& request, const MrfPlan& plan, const MrfSetup& by,
                       const stream::PlaneStore& planes, const FixedPixels& fixed,
                       const std::vector<ModelClass>& classes, const MrfOutputs& outputs,
                       const stream::PassOptions& pass);

} // namespace hsi::sahic
