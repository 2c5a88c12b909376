// SPDX-License-Identifier: MIT
// Smooths spectra by Savitzky-Golay, moving means or Whittaker, with regard to their actual wavelengths.
// Smoothing never crosses a gap between segments of bands.
//
// A. Savitzky, M. J. E. Golay: Smoothing and differentiation of data by simplified least squares procedures,
// Analytical Chemistry 36(8), 1964. P. A. Gorry: General least-squares smoothing and differentiation of
// nonuniformly spaced data by the convolution method, Analytical Chemistry 63(5), 1991. P. H. C. Eilers: A
// perfect smoother, Analytical Chemistry 75(14), 2003.
//
// Each method is a linear map of the bands of a segment. Lists have one value per band, in the order of the
// file.
#pragma once

#include "math/resampling.h"

#include <cstddef>
#include <vector>

namespace hsi::smooth {

/// Neighbouring bands with indices from `begin` to `end` - 1.
struct Segment {
    size_t begin = 0, end = 0;
    size_t size() const { return end - begin; }
};

/// Returns the median of the positive steps between neighbouring wavelengths (nm); 0 if there are none.
double median_step(const std::vector<double>& wavelengths);

/// Returns the segments. A segment ends where the next wavelength is not larger (another detector) or more
/// than `max_gap` nm away. If max_gap is 0, the limit is 2.5 median steps. This limit bridges one missing
/// band, but not a water vapour band.
std::vector<Segment> segments_of(const std::vector<double>& wavelengths, double max_gap = 0);

/// The smoothed bands as weighted sums of bands. Weights may be negative.
struct Rows {
    std::vector<math::ResampledBand> bands;
    std::vector<size_t> left_out; ///< bands in segments that are too short
};

struct SavitzkyGolay {
    int window = 9;     ///< number of bands, odd
    int degree = 2;     ///< degree of the polynomial, less than window
    int derivative = 0; ///< order of the derivative, at most degree; the result is per nm^derivative
};
/// Fits a least-squares polynomial to the `window` bands around each band. At the ends of a segment, the
/// window is shifted inwards. If a segment has m < window bands, the window is the whole segment, and the
/// degree is min(degree, m - 1). A segment of m <= derivative bands is left out.
Rows savitzky_golay(const std::vector<double>& wavelengths, const std::vector<Segment>& segments,
                    const SavitzkyGolay& options);

/// Computes, for each band, the mean over the bands of its segment that are at most (window - 1)/2 bands
/// away.
Rows moving_mean(const std::vector<Segment>& segments, int window);

/// Smooths the values y of each segment: z minimises |y - z|^2 + lambda |D z|^2. D z are divided differences
/// of order `order`, times order!, with wavelengths in units of the median step. For equal steps, these are
/// ordinary differences.
class Whittaker {
  public:
    /// Requires lambda > 0 and an order of 1 to 3. Segments of at most `order` bands are unchanged.
    Whittaker(const std::vector<double>& wavelengths, std::vector<Segment> segments, double lambda,
              int order);
    /// Smooths `values` in place, which has a row of `pixels` values for each band. Each pixel is computed
    /// separately.
    void smooth(double* values, size_t pixels) const;

  private:
    std::vector<Segment> m_segments; ///< segments that are smoothed
    size_t m_order;
    std::vector<double> m_diagonal; ///< D of L D L^T = I + lambda D^T D, one value per band
    /// `order` elements of L per band, left of the diagonal, the nearest element first.
    std::vector<double> m_lower;
};

} // namespace hsi::smooth
