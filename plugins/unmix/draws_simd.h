// SPDX-License-Identifier: MIT
// The computations of a realisation ("draw") for a few pixels at a time: the noise at a position, and the
// products with spectra. Each SIMD lane processes one pixel, and no multiplication is fused with an addition.
// The results are therefore bitwise equal in every instruction set and on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::unmix {

inline constexpr size_t draw_pixels = 32; ///< number of pixels that are processed together

struct DrawKernels {
    /// Computes noisy = values + sigma z, all [band][draw_pixels], and in `squared` the sums of noisy^2. z
    /// are the random numbers of the position (docs/gdal_hsi_unmix.md) in realisation `draw`, for pixels that
    /// start at number `first`.
    void (*add_noise)(const double* values, const double* sigma, int bands, uint32_t draw, uint64_t seed,
                      uint64_t first, double* noisy, double* squared);
    /// Computes products[k][draw_pixels] = sum over the bands, in order, of spectra[k][band] x[band][pixel].
    void (*multiply)(const double* x, int bands, const double* const* spectra, size_t count,
                     double* products);
};
const DrawKernels& draw_kernels();

/// The second word of a noise counter is this constant plus the realisation.
inline constexpr uint32_t noise_of_draw = 1u << 24;

} // namespace hsi::unmix
