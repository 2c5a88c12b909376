// SPDX-License-Identifier: MIT
// The computations of draws for a few pixels at a time: noise of a position, and products with spectra. Every
// lane is a pixel, and no multiplication is fused with an addition, so the bits are the same in every
// instruction set, and on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::unmix {

inline constexpr size_t draw_pixels = 32; ///< pixels that are processed together

struct DrawKernels {
    /// noisy = values + sigma z, all [band][draw_pixels]; squared: the sums of noisy^2. z: the random numbers
    /// of the position (docs/gdal_hsi_unmix.md) in draw `draw`, for the pixels from number `first` on.
    void (*add_noise)(const double* values, const double* sigma, int bands, uint32_t draw, uint64_t seed,
                      uint64_t first, double* noisy, double* squared);
    /// products[k][draw_pixels] = sum over the bands, in their order, of spectra[k][band] x[band][pixel].
    void (*multiply)(const double* x, int bands, const double* const* spectra, size_t count,
                     double* products);
};
const DrawKernels& draw_kernels();

/// The second word of a counter of noise: this constant and the draw.
inline constexpr uint32_t noise_of_draw = 1u << 24;

} // namespace hsi::unmix
