// SPDX-License-Identifier: MIT
// SPP, spatial preprocessing for endmember identification.
//
// J. Delgado, G. Martin, J. Plaza, L. I. Jimenez, A. Plaza: Fast Spatial Preprocessing for Spectral Unmixing
// of Hyperspectral Data on Graphics Processing Units, IEEE JSTARS 9(2), 2016, equations 1 to 5:
//   alpha(i,j) = sum beta gamma / sum beta over the valid neighbours in the window, beta(a,b) = 1/(a^2+b^2),
//   gamma the spectral angle in radians; rho = (1 + sqrt(alpha))^2; y' = (y - c)/rho + c, c the mean of the
//   scene.
// At the scene's border and next to invalid pixels the weights are renormalised over the neighbours that
// exist; a pixel without any has alpha 0. Invalid pixels are NaN in the output.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "stream/operation.h"

#include <memory>
#include <vector>

namespace hsi::spp {

/// Its costs, for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost value{1.8e-9, 0};   ///< a value
inline constexpr Cost angle{0.09e-9, 0};  ///< a value and an angle that it takes part in
inline constexpr Cost window{0, 2.5e-14}; ///< a byte of the scene and a pixel of the window
} // namespace cost

inline constexpr int min_window = 3, max_window = 63;

struct Options {
    int window = 5;     ///< ws = 2d+1, odd, min_window..max_window
    bool cube = true;   ///< output: y' (all bands)
    bool alpha = false; ///< output: alpha in radians (one band)
    bool rho = false;   ///< output: rho (one band)
};

/// The enabled outputs are in this order: y', alpha, rho. The halo is d. The single-precision angle is 2
/// asin(|u - v|/2) on unit vectors u, v; if alpha is below double_below, it is computed again in double
/// precision: the square root in rho magnifies rounding there.
inline constexpr double double_below = 2e-3;

/// The CPU backend (SIMD chosen at run time). `centroid`: c, a value a band, in the data's unit.
std::unique_ptr<stream::Operation> make_displacement(const Options& options, std::vector<double> centroid);

/// For a scene that is computed more than once: the result of looking around each pixel is one number, 1/rho,
/// with which the next pass needs no neighbourhood. It is make_displacement() with two outputs: y', and 1/rho
/// as multiplied by, one band; NaN for invalid pixels. window: as Options::window.
std::unique_ptr<stream::Operation> make_finding_displacement(int window, std::vector<double> centroid);
/// y' of a scene with 1/rho as a further band after its own, equal to the bit to
/// make_finding_displacement()'s.
std::unique_ptr<stream::Operation> make_repeated_displacement(std::vector<double> centroid);

/// The displacement of one band whose alpha is known already: a scene of two bands, y and alpha in radians,
/// gives one, y'. Invalid (NaN out) where a value is not finite or alpha is negative; y = 0 is a value. Equal
/// to make_displacement() up to the rounding of alpha to single precision.
std::unique_ptr<stream::Operation> make_band_displacement(double centroid);

/// Where the CPU backend's SIMD code was dispatched to ("AVX2", "AVX3", "SSE4" ...).
const char* simd_target();

/// The displacement, on the CPU or on devices (hsi_cuda_spp.so). The centroid before it is a scan of the CPU
/// (stream::StatisticsScan), which a device has started by the end of.
class Backend {
  public:
    virtual ~Backend() = default;
    /// As make_displacement(); an invalid Options::window is a UsageError.
    virtual std::unique_ptr<stream::Operation> make_displacement(const Options& options,
                                                                 std::vector<double> centroid) = 0;
    /// Device bytes that are free, of the device that has least; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::spp
