// SPDX-License-Identifier: MIT
// The inner loop, which converts the abundances and hashes of a run of pixels to values of all bands.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::synth {

/// The maximum number of pixels in a run. All arrays of a run have this length and are aligned to 64 bytes.
inline constexpr size_t run_pixels = 512;

struct BandModel {
    float sigma = 0;             ///< standard deviation of the noise, scaled
    uint32_t key1 = 0, key2 = 0; ///< keys of the noise
};

struct RunInput {
    size_t pixels = 0; ///< 1..run_pixels
    int bands = 0;
    int active = 0;                          ///< number of materials in the run
    const float* const* abundance = nullptr; ///< [active] arrays of run_pixels abundances
    const float* spectra = nullptr;          ///< [bands][active], scaled
    const uint32_t* low = nullptr;           ///< [run_pixels] lower half of each pixel's hash
    const uint32_t* high = nullptr;          ///< [run_pixels] upper half
    const BandModel* model = nullptr;        ///< [bands]
};

/// Computes the values of a run. `dst` is the position of the run in band 0; `band_stride` is the number of
/// elements from one band to the next.
void run_values(const RunInput& in, float* dst, ptrdiff_t band_stride);

} // namespace hsi::synth
