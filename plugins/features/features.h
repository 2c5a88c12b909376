// SPDX-License-Identifier: MIT
// Removes the continuum of a scene's spectra, and describes absorption features. The feature in a range of
// wavelengths is the area between 1 and the continuum-removed spectrum r; it has a depth, position, width,
// area and asymmetry:
//
//   m         the first band with r within 1e-10 of the minimum;  D = 1 - r_m, the depth
//   position  the vertex of the parabola through the bands m-1, m, m+1, between the midpoints on both sides
//   width     between the crossings of 1 - D/2 on both sides of m, by linear interpolation
//   area      of 1 - r over the whole range, by trapezoids
//   asymmetry ((right - position) - (position - left)) / width: above 0 the long-wave side is wider
//
// If D is less than 1e-6, the spectrum has no feature: the depth is 0, and only the area is computed. The
// depth is the depth at band m, without interpolation. All decisions are made in double precision, pixel by
// pixel, so results do not depend on tiles, threads or the processor.
#pragma once

#include "core/cost.h"
#include "stream/counting_operation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::features {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost continuum{8e-9, 2e-11}; ///< seconds per value of a range, for hull and ratio
inline constexpr Cost fit{1.3e-10, 1e-12};    ///< seconds per value of a feature's range
} // namespace cost

/// A range in which the spectrum has a separate continuum.
struct Range {
    std::vector<size_t> bands; ///< indices of the cube's bands, by rising wavelength; at least 3
    std::vector<double> x;     ///< rising wavelengths of the bands (nm)
};

struct Feature {
    double depth, position, width, area, asymmetry; ///< position and width in nm, area in nm; NaN: missing
};
inline constexpr int measures = 5; ///< output bands per range, in the order of Feature

/// Returns the x of the vertex of the parabola through three points at x[0] < x[1] < x[2], with the values
/// `before`, `least` and `behind`. The second value must be the lowest. The result is limited to the
/// midpoints between the points. Returns x[1] if the parabola does not open upwards.
double vertex(const double* x, double before, double least, double behind);

/// Returns the feature of a continuum-removed spectrum `r`, whose first and last values are 1. `x` has the
/// wavelengths of its bands, as Range::x.
Feature feature_of(const std::vector<double>& x, const double* r);

enum class Output {
    removed,  ///< r at the cube's bands; each band is in one range
    features, ///< `measures` bands per range
};

/// The operation that computes features. Its counts are complete after the pass.
class Features : public stream::CountingOperation {
  public:
    void exchange(parallel::Group& ranks) override;
    /// Returns the number of valid pixels that have no continuum in at least one range, because the spectrum
    /// at an end of the range is not above 0.
    int64_t without_continuum() const { return m_open; }

  protected:
    int64_t m_open = 0;
};

/// Creates the operation with the requested output. A pixel is invalid (all NaN) if any of the `inputs`
/// values is not finite or if all are zero. If the spectrum at an end of a range is not above 0, the features
/// of this range are NaN; with Output::removed, the whole pixel is NaN. \throws Error if a range has fewer
/// than 3 bands or a band that is not an input. With Output::removed, also throws if an input is in no range
/// or in two ranges.
std::unique_ptr<Features> make_features(int inputs, std::vector<Range> ranges, Output output);

/// Checks the ranges. \throws Error in the same cases as make_features().
void check_ranges(int inputs, const std::vector<Range>& ranges, Output output);

/// Features on the CPU or on devices (hsi_cuda_features.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Creates the same operation as the function above, with bitwise equal results.
    virtual std::unique_ptr<Features> make_features(int inputs, std::vector<Range> ranges, Output output) = 0;
    /// Returns the total time in seconds of all kernels since the backend was created, without copies, summed
    /// over the workers; 0 on the CPU.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::features
