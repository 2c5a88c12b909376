// SPDX-License-Identifier: MIT
// SPP on one GPU, on raw device pointers. The CUDA module, the tests and the benchmark use these functions.
//
// All launches are asynchronous on `stream` and throw Error if they fail. Cubes are band-sequential and
// packed: bands x lines x samples, single precision. The result for a pixel depends only on the values in its
// window, not on the tile. The order of every sum is therefore given by the band number, the offset in the
// window or the position in the scene.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::spp::gpu {

/// A tile and its window, in pixels.
struct TileShape {
    int samples = 0, lines = 0;           ///< size of the window
    int core_x = 0, core_y = 0;           ///< the core's first sample and line, relative to the window
    int core_samples = 0, core_lines = 0; ///< size of the core

    int pixels() const { return samples * lines; }
    int core_pixels() const { return core_samples * core_lines; }
};

/// The number of elements of each scratch buffer of launch_alpha(), for windows up to the given size.
struct AlphaSizes {
    size_t inverse = 0; ///< double, and as many floats: 1/|y| of each pixel of the window
    size_t angles = 0;  ///< float: angles of the offsets of one batch
    size_t sums = 0;    ///< double, twice: numerator and denominator of alpha; 0 if there is one batch
    size_t list = 0;    ///< int: pixels to recompute in double precision
    size_t weights = 0; ///< double
    uint64_t bytes() const { return inverse * 12 + angles * 4 + sums * 16 + list * 4 + weights * 8 + 4; }
};
AlphaSizes alpha_sizes(int window, int64_t window_samples, int64_t window_lines, int64_t core_pixels);

/// Returns beta(a,b) = 1/(a^2+b^2) (eq. 3) of the half window. Rows are a = 0..d, columns b = -d..d; beta is
/// 0 at the centre.
std::vector<double> half_window_weights(int window);

struct AlphaWork {
    const float* cube = nullptr; ///< bands x shape.pixels()
    int bands = 0;
    TileShape shape;
    int window = 5; ///< ws, odd, 3..63
    // Results, one value per pixel of the core; NaN if the pixel is invalid
    float* alpha = nullptr; ///< alpha in radians (eq. 1)
    float* rho = nullptr;   ///< rho (eq. 4); may be null
    float* scale = nullptr; ///< 1/rho
    // Scratch memory, see AlphaSizes
    double* inverse = nullptr;
    float* inverse_single = nullptr;
    float* angles = nullptr;
    double* numerator = nullptr;
    double* denominator = nullptr;
    int* list = nullptr;
    int* count = nullptr;            ///< one element
    const double* weights = nullptr; ///< half_window_weights(window)
};

/// Computes alpha, rho and 1/rho of the core's pixels with the three functions below.
void launch_alpha(const AlphaWork& work, cudaStream_t stream);

/// Computes inverse = 1/|y| for each pixel, 0 if it is invalid. inverse_single is the same in single
/// precision; it is NaN if single precision lacks the range, and the pixel's angles are then computed in
/// double precision.
void launch_norms(const float* cube, int bands, int pixels, double* inverse, float* inverse_single,
                  cudaStream_t stream);
/// Computes the angles between the window's pixels, and from these the results, in single precision. Also
/// lists the pixels that need double precision.
void launch_angles(const AlphaWork& work, cudaStream_t stream);
/// Computes the results of the listed pixels in double precision from the cube's values.
void launch_double_angles(const AlphaWork& work, cudaStream_t stream);

/// Computes y' = (y - c)/rho + c (eq. 5). `centroid` has c as two floats per band, the high and the low part.
/// `out` is bands x core pixels.
void launch_displacement(const float* cube, int bands, const TileShape& shape, const float* scale,
                         const float2* centroid, float* out, cudaStream_t stream);
/// Splits each value of c into two floats, the high and the low part, whose sum is c in nearly double
/// precision.
std::vector<float2> split_centroid(const std::vector<double>& centroid);

} // namespace hsi::spp::gpu
