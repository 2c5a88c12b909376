// SPDX-License-Identifier: MIT
// Removes stripes along the columns of a pushbroom scanner. In each band, column j has a level z_j. The low
// pass M_j of the levels across the columns is the level without stripes. The pixels x of the column are
// corrected by the difference:
//
//   difference  z_j is the sum of the steps up to column j. A step is the median over the lines of x_j - x_i,
//               where i is the previous usable column. With fewer than 20 pairs of valid pixels, the step
//               is 0. Result: x + M - z
//   ratio       the same with ln x of positive values; result: x exp(M - z)
//   moment      z_j is the mean of the column, s its standard deviation, and S the low pass of s.
//               Result: (x - z) S/s + M
//   median      z_j is the median of the column; result: x + M - z
//
// A column is usable if it has at least 20 valid pixels; other columns are unchanged. M_j is the value at j
// of the least-squares line through the levels of the usable columns within (window - 1)/2 of j. After this
// first fit, each usable column has a residual z_j - M_j. MAD is the median absolute deviation of the
// residuals of the band. Columns with |z_j - M_j| > 3 * 1.4826 MAD are then left out, and all lines are
// fitted again.
#pragma once

#include "stream/cube_source.h"
#include "stream/operation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::destripe {

enum class Method { difference, ratio, moment, median };

/// The correction: result = factor * value + offset. `factor` and `offset` have one value per band and
/// column, [band][column]: 1 and 0 for columns that are not usable.
struct Columns {
    size_t samples = 0;
    std::vector<double> factor, offset;
    size_t usable = 0; ///< number of usable columns
};

/// The scan that finds the levels. Tiles have all lines.
class LevelScan : public stream::Operation {
  public:
    /// Returns the correction. Call it after the pass over `scene`. For difference and ratio, a column behind
    /// a gap of unusable columns is read again, together with the last usable column. `window`: width of the
    /// low pass in columns, odd.
    virtual Columns columns(const stream::CubeSource& scene, int window) const = 0;
    /// Returns the number of valid pixels. Bands without any valid value make all pixels invalid.
    virtual int64_t valid_pixels() const = 0;
};
std::unique_ptr<LevelScan> make_scan(const stream::CubeShape& scene, Method method);

/// Returns the low pass of the levels of usable columns. places: the indices of these columns, in ascending
/// order. If fewer than 3 columns are in the window of a level, the level is returned unchanged.
std::vector<double> low_pass(const std::vector<size_t>& places, const std::vector<double>& levels,
                             int window);

/// The operation that corrects a scene. Its counts of pixels are complete after the pass.
class Correction : public stream::Operation {
  public:
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    int64_t valid() const { return m_valid; }
    int64_t invalid() const { return m_invalid; }

  protected:
    int64_t m_valid = 0, m_invalid = 0;
};
/// Makes the correction. Its output has all bands of the cube; invalid pixels are NaN in all of them.
std::unique_ptr<Correction> make_correction(int bands, Columns columns);

} // namespace hsi::destripe
