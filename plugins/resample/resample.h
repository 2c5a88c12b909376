// SPDX-License-Identifier: MIT
// Spectra of a scene at the bands of another spectrometer: every pixel times a sparse matrix of weights
// (math/resampling.h), in double precision.
//
// Each sum runs over its bands in the order of the source, and a pixel's sums depend on that pixel alone: no
// tile, thread or width of a register changes a bit.
#pragma once

#include "core/cost.h"
#include "math/resampling.h"
#include "stream/counting_operation.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::resample {

/// Its costs, for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost weight{1e-10, 3e-13}; ///< a pixel and a band of the scene that a new band takes part of
} // namespace cost

/// Counts of the pass; complete after it.
using Resampling = stream::CountingOperation;

/// Makes one output with a band for each of `bands`, from at least one of the cube's `inputs` bands each. A
/// pixel is invalid, NaN in all bands, when one of its inputs, with a weight or not, is not finite or all are
/// zero. \throws Error when a source is not an input.
std::unique_ptr<Resampling> make_resampling(int inputs, std::vector<math::ResampledBand> bands);

/// \throws Error as make_resampling().
void check_weights(int inputs, const std::vector<math::ResampledBand>& bands);

/// Resampling on devices (hsi_cuda_resample.so), for links whose pixels are there.
class Backend {
  public:
    virtual ~Backend() = default;
    /// As the function above; the same sums, of fused products.
    virtual std::unique_ptr<Resampling> make_resampling(int inputs,
                                                        std::vector<math::ResampledBand> bands) = 0;
    /// Seconds that kernels took since the backend was made, copies left out, added over the lanes.
    virtual double kernel_seconds() const = 0;
    /// Device bytes that are free, of the device that has least.
    virtual uint64_t free_memory() const = 0;
};

/// Where the SIMD code was dispatched to.
const char* simd_target();

} // namespace hsi::resample
