// SPDX-License-Identifier: MIT
// Removes stripes along the columns of a pushbroom scanner. A level z_j of each column and band is compared
// with its low pass M, and the difference is subtracted from the column's pixels.
//
//   difference  z is the sum of the steps up to the column. A step is the median over lines of x_j - x_i,
//   where
//               i is the previous usable column. Result: x + M - z
//   ratio       the same with ln x of positive values; result: x exp(M - z)
//   moment      z is the mean of the column, s its standard deviation, S the low pass of s; result:
//               (x - z) S/s + M
//   median      z is the median of the column; result: x + M - z
//
// A column is usable if it has at least 20 valid pixels; other columns are unchanged. The low pass at j is
// the least-squares line through the levels of the columns within (window - 1)/2 of j. Columns that are more
// than 3 robust deviations (1.4826 MAD) from their line are then left out, and the line is fitted again.
#pragma once

#include "stream/cube_source.h"
#include "stream/operation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::destripe {

enum class Method { difference, ratio, moment, median };

/// The correction: result = factor * value + offset. Both have one number per band and column,
/// [band][column].
struct Columns {
    size_t samples = 0;
    std::vector<double> factor, offset;
    size_t usable = 0; ///< number of usable columns
};

/// The scan that finds the levels. Tiles have all lines.
class LevelScan : public stream::Operation {
  public:
    /// Returns the correction after the pass over `scene`. Single columns are read again if the columns
    /// before them are not usable. `window`: odd.
    virtual Columns columns(const stream::CubeSource& scene, int window) const = 0;
    /// Returns the number of valid pixels. Bands without any valid value make all pixels invalid.
    virtual int64_t valid_pixels() const = 0;
};
std::unique_ptr<LevelScan> make_scan(const stream::CubeShape& scene, Method method);

/// Returns the low pass of the levels of usable columns. places: numbers of these columns, in ascending
/// order. A level with fewer than 3 columns in its window is returned unchanged.
std::vector<double> low_pass(const std::vector<size_t>& places, const std::vector<double>& levels,
                             int window);

/// Corrects a scene. The counts are complete after the pass.
class Correction : public stream::Operation {
  public:
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    int64_t valid() const { return m_valid; }
    int64_t invalid() const { return m_invalid; }

  protected:
    int64_t m_valid = 0, m_invalid = 0;
};
/// Makes one output with the bands of the cube; invalid pixels are NaN in all bands.
std::unique_ptr<Correction> make_correction(int bands, Columns columns);

} // namespace hsi::destripe
