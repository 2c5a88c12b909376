// SPDX-License-Identifier: MIT
// Spectra of a scene at the bands of another spectrometer: each pixel is multiplied by a sparse matrix of
// weights (math/resampling.h), in double precision.
//
// Each sum adds its bands in the order of the source. The sums of a pixel depend only on this pixel. Results
// therefore do not depend on tiles, threads or register widths.
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
inline constexpr Cost weight{1e-10, 3e-13}; ///< seconds per pixel and source band of a new band
} // namespace cost

/// The operation that resamples a scene. Its counts of valid and invalid pixels are complete after the pass.
using Resampling = stream::CountingOperation;

/// Creates an operation whose output has one band for each of `bands`, which are weighted sums of the cube's
/// `inputs` bands. A pixel is invalid (NaN in all bands) if any of its `inputs` values is not finite, even
/// one without a weight, or if all are zero. \throws Error if a sum has no bands, or uses a band that is not
/// an input.
std::unique_ptr<Resampling> make_resampling(int inputs, std::vector<math::ResampledBand> bands);

/// Checks the weights. \throws Error in the same cases as make_resampling().
void check_weights(int inputs, const std::vector<math::ResampledBand>& bands);

/// Resampling on devices (hsi_cuda_resample.so), for steps whose pixels are on the device.
class Backend {
  public:
    virtual ~Backend() = default;
    /// Creates the same operation as the function above. Sums add the same terms in the same order, with
    /// fused multiply-add.
    virtual std::unique_ptr<Resampling> make_resampling(int inputs,
                                                        std::vector<math::ResampledBand> bands) = 0;
    /// Returns the total time in seconds of all kernels since the backend was created, without copies, summed
    /// over the workers.
    virtual double kernel_seconds() const = 0;
    /// Returns the free bytes of the device with the least free memory.
    virtual uint64_t free_memory() const = 0;
};

/// Returns the instruction set of the SIMD code.
const char* simd_target();

} // namespace hsi::resample
