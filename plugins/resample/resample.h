// SPDX-License-Identifier: MIT
// Spectra of a scene at the bands of another spectrometer: every pixel times a sparse matrix of weights
// (math/resampling.h), in double precision.
//
// Each sum adds its bands in the order of the source, and a pixel's sums depend only on that pixel, so
// results do not depend on tiles, threads or register widths.
#pragma once

#include "core/cost.h"
#include "math/resampling.h"
#include "stream/counting_operation.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::resample {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost weight{1e-10, 3e-13}; ///< per pixel and band of the scene in the sum of a new band
} // namespace cost

/// Counts of the pass, which are complete after it.
using Resampling = stream::CountingOperation;

/// Makes one output with a band for each of `bands`, which use at least one of the cube's `inputs` bands
/// each. A pixel is invalid (NaN in all bands) if one of its inputs, with a weight or not, is not finite or
/// all are zero. \throws Error if a source is not an input.
std::unique_ptr<Resampling> make_resampling(int inputs, std::vector<math::ResampledBand> bands);

/// \throws Error as make_resampling().
void check_weights(int inputs, const std::vector<math::ResampledBand>& bands);

/// Resampling on devices (hsi_cuda_resample.so), for steps whose pixels are there.
class Backend {
  public:
    virtual ~Backend() = default;
    /// Works as the function above, with the same sums from fused products.
    virtual std::unique_ptr<Resampling> make_resampling(int inputs,
                                                        std::vector<math::ResampledBand> bands) = 0;
    /// Returns the seconds of all kernels since the backend was created, without copies, summed over the
    /// lanes.
    virtual double kernel_seconds() const = 0;
    /// Returns the free bytes of the device with the least free memory.
    virtual uint64_t free_memory() const = 0;
};

/// Returns the instruction set of the SIMD code.
const char* simd_target();

} // namespace hsi::resample
