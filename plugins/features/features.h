// SPDX-License-Identifier: MIT
// Continuum removal of a scene, and the description of an absorption feature in a range of wavelengths:
// depth, position, width, area and asymmetry of the area between 1 and the continuum-removed spectrum r.
//
//   m         the first band with r within 1e-10 of the minimum;  D = 1 - r_m, the depth
//   position  the vertex of the parabola through the bands m-1, m, m+1, between the midpoints on both sides
//   width     between the crossings of 1 - D/2 on both sides of m, by linear interpolation
//   area      of 1 - r over the whole range, by trapezoids
//   asymmetry ((right - position) - (position - left)) / width: above 0 the long-wave side is wider
//
// If D is less than 1e-6 there is no feature: its depth is 0, and only its area is given. The depth is that
// of a band, without extrapolation. All decisions are made in double precision, pixel by pixel, so results do
// not depend on tiles, threads or the processor.
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
inline constexpr Cost continuum{8e-9, 2e-11}; ///< per value of a range: its hull and ratio
inline constexpr Cost fit{1.3e-10, 1e-12};    ///< per value of a feature's range
} // namespace cost

/// A range in which the spectrum has a separate continuum.
struct Range {
    std::vector<size_t> bands; ///< of the cube, by rising wavelength; at least 3
    std::vector<double> x;     ///< their rising wavelengths (nm)
};

struct Feature {
    double depth, position, width, area, asymmetry; ///< NaN: missing; in nm except for depth and asymmetry
};
inline constexpr int measures = 5; ///< bands per range, in this order

/// Returns the vertex of the parabola through three points at x[0] < x[1] < x[2], the second the lowest,
/// clamped to the midpoints; x[1] if the parabola does not open upwards.
double vertex(const double* x, double before, double least, double behind);

/// Returns the feature of a continuum-removed spectrum whose first and last value are 1; x as Range::x.
Feature feature_of(const std::vector<double>& x, const double* r);

enum class Output {
    removed,  ///< r, at the cube's bands; each band is in one range
    features, ///< `measures` bands per range
};

/// Computes features. The counts are complete after the pass.
class Features : public stream::CountingOperation {
  public:
    void exchange(parallel::Group& ranks) override;
    /// Returns the number of valid pixels without a continuum in some range, because an end of the range is
    /// not above 0.
    int64_t without_continuum() const { return m_open; }

  protected:
    int64_t m_open = 0;
};

/// Makes one output. A pixel is invalid (all NaN) if one of the `inputs` is not finite or all are zero. If an
/// end of a range is not above 0, this range is NaN, and with `removed` the whole pixel. \throws Error if a
/// range has fewer than 3 bands or a band that is not an input, and with `removed` if an input is in no range
/// or in two ranges.
std::unique_ptr<Features> make_features(int inputs, std::vector<Range> ranges, Output output);

/// \throws Error as make_features().
void check_ranges(int inputs, const std::vector<Range>& ranges, Output output);

/// Features on the CPU or on devices (hsi_cuda_features.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Works as the function above, with the same bits.
    virtual std::unique_ptr<Features> make_features(int inputs, std::vector<Range> ranges, Output output) = 0;
    /// Returns the seconds of all kernels since the backend was created, without copies, summed over the
    /// lanes; 0 on the CPU.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::features
