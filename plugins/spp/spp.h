// SPDX-License-Identifier: MIT
// SPP, spatial preprocessing for endmember identification.
//
// J. Delgado, G. Martin, J. Plaza, L. I. Jimenez, A. Plaza: Fast Spatial Preprocessing for Spectral Unmixing
// of Hyperspectral Data on Graphics Processing Units, IEEE JSTARS 9(2), 2016, equations 1 to 5:
//   alpha(i,j) = sum beta gamma / sum beta over the valid neighbours in the window,
//   beta(a,b) = 1/(a^2+b^2), gamma the spectral angle in radians;
//   rho = (1 + sqrt(alpha))^2;  y' = (y - c)/rho + c, c the mean of the scene.
// At the scene's border and next to invalid pixels, the weights are renormalised over the existing
// neighbours. A pixel without neighbours has alpha 0. Invalid pixels are NaN in the output.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "stream/operation.h"

#include <memory>
#include <vector>

namespace hsi::spp {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost value{1.8e-9, 0};   ///< seconds per value
inline constexpr Cost angle{0.09e-9, 0};  ///< seconds per value and angle that uses it
inline constexpr Cost window{0, 2.5e-14}; ///< seconds per byte of the scene and pixel of the window
} // namespace cost

inline constexpr int min_window = 3, max_window = 63;

struct Options {
    int window = 5;     ///< ws = 2d+1, odd, min_window..max_window
    bool cube = true;   ///< output: y' (all bands)
    bool alpha = false; ///< output: alpha in radians (one band)
    bool rho = false;   ///< output: rho (one band)
};

/// Angles are first computed in single precision, as 2 asin(|u - v|/2) of unit vectors u, v. If alpha is then
/// below this limit, it is computed again in double precision, because the square root in rho magnifies
/// rounding errors of small values.
inline constexpr double double_below = 2e-3;

/// Creates the CPU backend's operation. The requested outputs are in the order y', alpha, rho. The halo is d.
/// `centroid` is c, one value per band, in the data's unit.
std::unique_ptr<stream::Operation> make_displacement(const Options& options, std::vector<double> centroid);

/// Creates the operation for the first pass if y' of a scene is computed in several passes. It has two
/// outputs: y', and one band with 1/rho, NaN for invalid pixels. With 1/rho, the next pass needs no
/// neighbourhood. `window` is Options::window.
std::unique_ptr<stream::Operation> make_finding_displacement(int window, std::vector<double> centroid);
/// Creates the operation for later passes. Its input is the scene with 1/rho as an additional last band; its
/// output is y', bitwise equal to that of make_finding_displacement().
std::unique_ptr<stream::Operation> make_repeated_displacement(std::vector<double> centroid);

/// Creates the displacement of one band with known alpha. The scene has two bands, y and alpha in radians;
/// the output has one band, y'. A pixel is invalid (NaN in the output) if a value is not finite or alpha is
/// negative; y = 0 is a valid value. The result differs from make_displacement() only by the rounding of
/// alpha to single precision.
std::unique_ptr<stream::Operation> make_band_displacement(double centroid);

/// Returns the instruction set of the CPU backend's SIMD code ("AVX2", "AVX3", "SSE4" ...).
const char* simd_target();

/// Creates the displacement on the CPU or on devices (hsi_cuda_spp.so). Its centroid comes from an earlier
/// scan on the CPU (stream::StatisticsScan). The device starts while this scan runs.
class Backend {
  public:
    virtual ~Backend() = default;
    /// Creates the same operation as make_displacement(). \throws UsageError if Options::window is invalid.
    virtual std::unique_ptr<stream::Operation> make_displacement(const Options& options,
                                                                 std::vector<double> centroid) = 0;
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::spp
