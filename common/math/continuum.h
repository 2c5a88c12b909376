// SPDX-License-Identifier: MIT
// Continuum removal: divides a spectrum by its upper convex hull.
//
// R. N. Clark, T. L. Roush: Reflectance spectroscopy: quantitative analysis techniques for remote sensing
// applications, J. Geophys. Res. 89 (B7), 1984. A monotone chain makes the hull of the points (wavelength,
// value) (A. M. Andrew: Another efficient algorithm for convex hulls in two dimensions, Information
// Processing Letters 9(5), 1979). For three points a, b, i in rising order, b is removed if
//   (v_b - v_a)(x_i - x_a) <= (v_i - v_a)(x_b - x_a)
// All decisions and values are computed in double precision.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace hsi::math {

/// Returns the indices of the bands whose wavelength (in nm; NaN: unknown) is in [from, to], in rising order
/// of wavelength. If bands are within 1e-6 nm of each other, only the first one in the file is included.
std::vector<size_t> rising_bands(const std::vector<double>& wavelengths_nm,
                                 double from = -std::numeric_limits<double>::infinity(),
                                 double to = std::numeric_limits<double>::infinity());

/// Removes the continuum of spectra with the same wavelengths. Use one object per thread, because the object
/// stores its latest hull.
class Continuum {
  public:
    /// x: rising wavelengths. \throws Error if there are fewer than 2 wavelengths, or if they do not rise.
    explicit Continuum(std::vector<double> x);
    size_t size() const { return m_x.size(); }
    const std::vector<double>& x() const { return m_x; }

    /// Computes ratios[i] = values[i] / hull(x[i]), which is exactly 1 at the vertices of the hull, never
    /// above 1, and negative for negative values. Returns false without a change of `ratios` if the first or
    /// the last value is not above 0, since the continuum does not exist then. All values must be finite.
    /// `ratios` may be `values`.
    bool remove(const double* values, double* ratios);
    /// Works as remove() for a spectrum with value i at values[i * stride] and its ratio at ratios[i *
    /// stride].
    bool remove(const double* values, double* ratios, ptrdiff_t stride);

  private:
    /// Writes all vertices of the hull, and few other points, to m_points. The monotone chain then examines
    /// only these points, which takes less time. \return the number of points
    size_t likely_points(const double* values);
    std::vector<double> m_x;
    std::vector<size_t> m_hull, m_points;
};

} // namespace hsi::math
