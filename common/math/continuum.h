// SPDX-License-Identifier: MIT
// Continuum removal: a spectrum divided by its upper convex hull.
//
// R. N. Clark, T. L. Roush: Reflectance spectroscopy: quantitative analysis techniques for remote sensing
// applications, J. Geophys. Res. 89 (B7), 1984. The hull of the points (wavelength, value) is made by a
// monotone chain (A. M. Andrew: Another efficient algorithm for convex hulls in two dimensions, Information
// Processing Letters 9(5), 1979): of a, b, i in rising order b goes when
//   (v_b - v_a)(x_i - x_a) <= (v_i - v_a)(x_b - x_a)
// Everything is decided and computed in double precision.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace hsi::math {

/// Indices of the bands with a wavelength (nm; NaN: unknown) in [from, to], in rising order of wavelength;
/// among bands within 1e-6 nm of each other, only the first in the file.
std::vector<size_t> rising_bands(const std::vector<double>& wavelengths_nm,
                                 double from = -std::numeric_limits<double>::infinity(),
                                 double to = std::numeric_limits<double>::infinity());

/// Removes the continuum of spectra that share their wavelengths. Use one object per thread: it keeps the
/// hull that it made last.
class Continuum {
  public:
    /// x: wavelengths, each above the one before. \throws Error when there are fewer than 2 or they do not
    /// rise.
    explicit Continuum(std::vector<double> x);
    size_t size() const { return m_x.size(); }
    const std::vector<double>& x() const { return m_x; }

    /// ratios[i] = values[i] / hull(x[i]): exactly 1 at the hull's vertices, never above 1, negative where a
    /// value is. Returns false, with `ratios` untouched, if the first or the last value is not above 0, since
    /// the continuum does not exist then. All values are finite; `ratios` may be `values`.
    bool remove(const double* values, double* ratios);
    /// The same for a spectrum with value i at values[i * stride] and its ratio at ratios[i * stride].
    bool remove(const double* values, double* ratios, ptrdiff_t stride);

  private:
    /// Writes all vertices, and few other points, into m_points, by a test that is cheaper than the chain.
    /// \return their count
    size_t likely_points(const double* values);
    std::vector<double> m_x;
    std::vector<size_t> m_hull, m_points;
};

} // namespace hsi::math
