// SPDX-License-Identifier: MIT
// Smoothing of spectra by their actual wavelengths, never across a gap.
//
// A. Savitzky, M. J. E. Golay: Smoothing and differentiation of data by simplified least squares procedures,
// Analytical Chemistry 36(8), 1964. P. A. Gorry: General least-squares smoothing and differentiation of
// nonuniformly spaced data by the convolution method, Analytical Chemistry 63(5), 1991. P. H. C. Eilers: A
// perfect smoother, Analytical Chemistry 75(14), 2003.
//
// All methods are linear maps of the bands of a segment. Lists are in file order.
#pragma once

#include "math/resampling.h"

#include <cstddef>
#include <vector>

namespace hsi::smooth {

/// Neighbouring bands, from `begin` to before `end`.
struct Segment {
    size_t begin = 0, end = 0;
    size_t size() const { return end - begin; }
};

/// Returns the median of the steps to a larger wavelength (nm); 0 without such steps.
double median_step(const std::vector<double>& wavelengths);

/// Returns the segments. A segment ends where the next wavelength is not larger (another detector) or more
/// than `max_gap` nm away. max_gap 0: 2.5 median steps, so that one missing band is bridged, but not a water
/// band.
std::vector<Segment> segments_of(const std::vector<double>& wavelengths, double max_gap = 0);

/// Weighted sums of bands that are the smoothed bands; weights have any sign.
struct Rows {
    std::vector<math::ResampledBand> bands;
    std::vector<size_t> left_out; ///< bands of segments that are too short
};

struct SavitzkyGolay {
    int window = 9;     ///< bands, odd
    int degree = 2;     ///< less than window
    int derivative = 0; ///< at most degree; per nm^derivative
};
/// Fits a least-squares polynomial to the `window` bands around each band. At the ends
/// of a segment, the window is shifted inwards. A segment of m < window bands is its
/// own window, of degree min(degree, m - 1); a segment of m <= derivative bands is left
/// out.
Rows savitzky_golay(const std::vector<double>& wavelengths, const std::vector<Segment>& segments,
                    const SavitzkyGolay& options);

/// Computes the mean of the bands of the segment at most (window - 1)/2 bands away.
Rows moving_mean(const std::vector<Segment>& segments, int window);

/// Computes the z that minimises |y - z|^2 + lambda |D z|^2 in each segment. D: order! times the divided
/// differences of order `order` over wavelengths in median steps; for even steps these are ordinary
/// differences.
class Whittaker {
  public:
    /// lambda > 0, order 1 to 3. Segments of at most `order` bands are unchanged.
    Whittaker(const std::vector<double>& wavelengths, std::vector<Segment> segments, double lambda,
              int order);
    /// values: a row of `pixels` for each band, in place. Each pixel is computed separately.
    void smooth(double* values, size_t pixels) const;

  private:
    std::vector<Segment> m_segments; ///< segments that are changed
    size_t m_order;
    std::vector<double> m_diagonal; ///< by band, of L D L^T = I + lambda D^T D
    std::vector<double> m_lower;    ///< `order` per band: of L, left of the diagonal, the nearest first
};

} // namespace hsi::smooth
