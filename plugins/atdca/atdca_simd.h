// SPDX-License-Identifier: MIT
// The inner loops of the CPU backend. Each is compiled for every instruction set and selected at run time.
//
// Spectra are stored in groups: `group` pixels next to each other, band by band. So a group is one contiguous
// piece of memory, [band][pixel] with bands * group floats, for any width of the scene. A SIMD vector has one
// band of neighbouring pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace hsi::atdca {

inline constexpr int group = 16;
inline constexpr int64_t strip = 32 * group; ///< pixels that are processed together
/// The most vectors that one call of dots() multiplies with a group. With this number, the accumulators for
/// half a group, the pixels and a broadcast value fit into the 16 registers of AVX2.
inline constexpr int vectors = 5;
/// ||x||^2 of an invalid pixel. It remains less than every score when squares are subtracted.
inline constexpr double invalid_norm = -std::numeric_limits<double>::infinity();

struct SimdKernels {
    /// Packs `count` pixels into groups. In `in`, the pixels are contiguous in each band, and bands are
    /// `band_stride` apart. Sets norm[i] to ||x||^2, summed band by band as in Basis::squared_norm(), or to
    /// invalid_norm for an invalid pixel. The last group is padded with zero spectra, whose norm is
    /// invalid_norm. Returns the number of valid pixels.
    int64_t (*pack)(const float* in, ptrdiff_t band_stride, int bands, int64_t count, float* groups,
                    double* norm);
    /// Computes c[v * group + i] = sum over bands of q[v][b] * x_i[b] in double precision, for v < count <=
    /// vectors.
    void (*dots)(const float* one_group, int bands, const double* const* q, int count, double* c);
    /// For one group: subtracts c[i]^2 from s[i], and sets up[i] to a float that is not less than s[i] +
    /// error. Returns the greatest s[i].
    double (*subtract_squares)(const double* c, double error, double* s, float* up);
    /// For one group: sets f[i] to |c[i]| (c[i] if `sign`), or to invalid_norm if norm[i] is not positive.
    /// Sets up[i] to a float that is not less than f[i] + error. Returns the greatest f[i].
    double (*projections)(const double* c, const double* norm, bool sign, double error, double* f, float* up);
    /// Computes c[i] = sum over bands of q[b] * x_i[b] in single precision, which is used only to find
    /// candidates.
    void (*rough_dots)(const float* one_group, int bands, const float* q, float* c);
    float (*rough_dot)(const float* a, const float* b, int count);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::atdca
