// SPDX-License-Identifier: MIT
// Stripes along the columns of a pushbroom scanner: a level z_j of each column and band is compared with its
// low pass M, and the difference is taken from the column's pixels.
//
//   difference  z adds up medians over lines of x_j - x_i, i the usable column before; x + M - z
//   ratio       the same of ln x, of positive values; x exp(M - z)
//   moment      mean m and standard deviation s of the column; (x - m) S/s + M, S the low pass of s
//   median      z is the median of the column; x + M - z
//
// A column is usable when it has at least 20 valid pixels; others stay as they are. The low pass at j is the
// line of least squares through the columns within (window - 1)/2, and again without columns that are further
// than 3 robust deviations (1.4826 MAD) from it.
#pragma once

#include "stream/cube_source.h"
#include "stream/operation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::destripe {

enum class Method { difference, ratio, moment, median };

/// result = factor * value + offset: a number for each band and column, [band][column].
struct Columns {
    size_t samples = 0;
    std::vector<double> factor, offset;
    size_t usable = 0; ///< columns
};

/// The scan that finds the levels. Tiles have all lines.
class LevelScan : public stream::Operation {
  public:
    /// Call it after the pass over `scene`; single columns are read again if columns before them are not
    /// usable. `window`: odd.
    virtual Columns columns(const stream::CubeSource& scene, int window) const = 0;
    /// Bands without a single valid pixel make all pixels invalid.
    virtual int64_t valid_pixels() const = 0;
};
std::unique_ptr<LevelScan> make_scan(const stream::CubeShape& scene, Method method);

/// The low pass of the levels of usable columns (`places`, rising); a level itself where it has none.
std::vector<double> low_pass(const std::vector<size_t>& places, const std::vector<double>& levels,
                             int window);

/// Counts of the pass; complete after it.
class Correction : public stream::Operation {
  public:
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    int64_t valid() const { return m_valid; }
    int64_t invalid() const { return m_invalid; }

  protected:
    int64_t m_valid = 0, m_invalid = 0;
};
/// One output with the bands of the cube; invalid pixels are NaN throughout.
std::unique_ptr<Correction> make_correction(int bands, Columns columns);

} // namespace hsi::destripe
