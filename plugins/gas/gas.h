// SPDX-License-Identifier: MIT
// Converts radiance to the enhancement of a gas (ppm m), with a separate background for each group of columns
// of the scanner. The symbols are: k, the unit absorption (1/ppm m, negative); x, a pixel; m and C, the mean
// and the covariance (divisor n) of the group's n pixels in the statistics; V, the shrinkage; M = (1-V) C + V
// diag C.
//   mf         t = k m (by bands),  w = M^-1 t,  a = (x-m)'w/(t'w)
//   lognormal  the same for ln x, with t = k
//   mag1c      K = 1e5 k;  r = x'm/(m'm);  t = K m, w = M^-1 t, q = t'w;  a = max(0, (x-m)'w/(r q))
//     repeat   p = 1/(r (a + 1e-9));  z = x - r a t;  m, C of z;  t = K m, w = M^-1 t, q = max(t'w, 1);
//              a = max(0, ((x-m)'w - p)/(r q));     enhancement 1e5 a, albedo r
// Let m0 and C0 be the mean and the covariance of x, d = r a, e = d - mean d, c = sum e (x - m0)/n, b = sum
// e^2/n, and t the previous t. Then C = C0 - c t' - t c' + b t t' and m = m0 - mean(d) t. With these
// formulas, an iteration reads each pixel once.
//
// D. R. Thompson et al.: Real-time remote detection and measurement for airborne imaging spectroscopy: a case
// study with methane, Atmospheric Measurement Techniques 8, 2015 (mf); M. D. Foote et al.: Fast and Accurate
// Retrieval of Methane Concentration From Imaging Spectrometer Data Using Sparsity Prior, IEEE Trans.
// Geoscience and Remote Sensing 58(9), 2020 (mag1c); A. Schaum: A uniformly most powerful detector of gas
// plumes against a cluttered background, Remote Sensing of Environment 260, 2021, and Z. Pei et al., ibid.
// 295, 2023 (lognormal); J. E. Fahlen et al.: Sensitivity and Uncertainty in Matched-Filter-Based Gas
// Detection With Imaging Spectroscopy, IEEE Trans. Geoscience and Remote Sensing 62, 2024.
//
// Values are read in single precision; everything else is in double precision. A pixel is valid if its values
// are finite and not all zero (lognormal: and all positive).
#pragma once

#include "core/cost.h"
#include "stream/column_strips.h"
#include "stream/operation.h"
#include "stream/pixel_mask.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::gas {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost products{3.5e-11, 6e-13}; ///< seconds per value and band: the covariance of a group
inline constexpr Cost look{3e-10, 3e-12};       ///< seconds per value and iteration
} // namespace cost

enum class Method { mag1c, mf, lognormal };
enum class Output { enhancement, uncertainty, sensitivity, albedo };

/// The noise of a band at radiance L: |A sqrt(L + B) + D|.
struct NoiseBand {
    double a = 0, b = 0, d = 0;
};

struct FilterOptions {
    Method method = Method::mag1c;
    std::vector<double> absorption; ///< unit absorption k, one value per band of the scene
    double shrinkage = 0;           ///< shrinkage V of the covariance, if ledoit_wolf is false
    bool ledoit_wolf = false;       ///< V is computed for each group (detect/groups/groups.h)
    int iterations = 30;            ///< number of iterations of mag1c
    bool albedo = true, sparsity = true;
    std::vector<Output> outputs{Output::enhancement};
    /// true: there is a second output. It repeats the enhancement and the uncertainty of the first output, as
    /// far as `outputs` has them, in the order of `outputs`.
    bool keep = false;
    std::vector<NoiseBand> noise; ///< one entry per band; needed for Output::uncertainty
    double radiance_scale = 1;    ///< factor from stored values to the radiance of `noise`
};

enum class GroupState : uint8_t {
    filtered,
    few_pixels, ///< fewer than 2 pixels, or without shrinkage at most as many pixels as bands
    singular    ///< no variance, or a Cholesky pivot of at most 1e-12 of its diagonal element
};
struct GroupRecord {
    GroupState state = GroupState::few_pixels;
    int64_t pixels = 0; ///< pixels that count in the group's statistics
    double shrinkage = 0;
};

/// The operation that filters a scene. Its first output has one band for each of FilterOptions::outputs;
/// missing values are NaN. FilterOptions::keep requests a second output. Tiles have all lines.
class Filter : public stream::Operation {
  public:
    int64_t valid() const { return m_valid; }
    int64_t invalid() const { return m_invalid; }
    int64_t in_bad_groups() const { return m_in_bad_groups; } ///< valid pixels whose group has no values
    int64_t dark() const { return m_dark; }                   ///< valid pixels whose albedo is not above 0
    /// Returns the records of all groups. They are complete after the pass.
    virtual const std::vector<GroupRecord>& groups() const = 0;

  protected:
    int64_t m_valid = 0, m_invalid = 0, m_in_bad_groups = 0, m_dark = 0;
};

/// Creates a filter. `mask` selects the pixels that count in the statistics; null selects all. The mask must
/// outlive the filter. \throws Error if the lists in `options` do not have one value per band.
std::unique_ptr<Filter> make_filter(const stream::CubeShape& scene, const stream::Columns& columns,
                                    const FilterOptions& options, const stream::PixelMask* mask);

/// Creates filters. This class creates them on the CPU; the class in hsi_cuda_gas.so overrides it for
/// devices.
class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::unique_ptr<Filter> make_filter(const stream::CubeShape& scene,
                                                const stream::Columns& columns, const FilterOptions& options,
                                                const stream::PixelMask* mask) {
        return gas::make_filter(scene, columns, options, mask);
    }
    /// Returns the total time in seconds of all kernels since the backend was created, summed over the
    /// workers; 0 on the CPU.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

/// Simulated radiance spectra for different amounts of the gas.
struct RadianceTable {
    std::vector<double> wavelengths_nm;
    std::vector<double> concentrations;         ///< amounts of gas in ppm m
    std::vector<std::vector<double>> radiances; ///< one spectrum per concentration
};

/// Returns the unit absorption k of each band. centres, widths: centre C and FWHM of the bands in nm. The
/// spectral response of a band at wavelength x is g = exp(-(x-C)^2/(2 sigma^2)). For each concentration c
/// with the radiances L_c, l_c = ln(sum g L_c / sum g). k is the slope of l_c over c by least squares. k is
/// NaN for a band whose centre is outside the table. As in mag1c, sums over x are not weighted by the spacing
/// of x.
std::vector<double> unit_absorption(const RadianceTable& table, const std::vector<double>& centres,
                                    const std::vector<double>& widths);

/// Returns the noise coefficients at each centre (nm). They are interpolated linearly, or extrapolated, from
/// `rows`, the coefficients at the wavelengths `nm`. `nm` has at least two wavelengths, in rising order.
std::vector<NoiseBand> noise_at(const std::vector<double>& nm, const std::vector<NoiseBand>& rows,
                                const std::vector<double>& centres);

/// Returns the instruction set of the CPU's loops.
const char* simd_target();

} // namespace hsi::gas
