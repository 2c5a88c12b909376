// SPDX-License-Identifier: MIT
// The inner loops of detection, compiled for every instruction set and selected at run time. Unless stated
// otherwise, they compute in double precision. Each SIMD lane has one pixel, so results do not depend on the
// width of a register.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::detect {

/// Pixels per call. Their values in double precision fit into a second-level cache together with the matrix.
inline constexpr int64_t block_pixels = 64;

/// A matrix in the kernels' layout: panels of six rows, stored column by column with six values per column.
/// Missing rows are zero.
class Panels {
  public:
    static constexpr int height = 6;
    Panels() = default;
    /// Copies a matrix with `columns` columns, whose rows follow each other in memory.
    Panels(const std::vector<double>& matrix, int columns);
    /// Copies a lower triangular matrix; its panels end at the diagonal. `scales` has one value per column. A
    /// panel is also kept in single precision if two conditions hold. Each of its rows has at most the
    /// Euclidean length `length` after its elements were multiplied by the scales of their columns. These
    /// scales are within 1e-30 to 1e30.
    Panels(const std::vector<double>& matrix, const std::vector<double>& scales, double length);

    int count() const { return static_cast<int>(m_columns.size()); }
    int columns(int panel) const { return m_columns[static_cast<size_t>(panel)]; }
    const double* values(int panel) const { return m_values.data() + m_begin[static_cast<size_t>(panel)]; }
    /// Returns null if the panel is not kept in single precision.
    const float* singles(int panel) const {
        return m_is_single[static_cast<size_t>(panel)]
                   ? m_singles.data() + m_begin[static_cast<size_t>(panel)]
                   : nullptr;
    }

  private:
    void add(const std::vector<double>& matrix, size_t width, size_t first, size_t count);

    std::vector<int> m_columns;
    std::vector<size_t> m_begin;
    std::vector<double> m_values;
    std::vector<float> m_singles;
    std::vector<char> m_is_single;
};

/// The regression of pixels on a feature L (detect/fit/fit.h).
struct FitLine {
    double weight = 0; ///< weight of the range; the weights of a target's ranges add up to 1
    double fit = 0;    ///< 1 / sqrt(sum (L - mean)^2)
    double depth = 0;  ///< (1 - min L) / sum (L - mean)^2
    /// If F or D is less in any range of a target, the target's score is 0.
    double least_fit = 0, least_depth = 0;
};

struct SimdKernels {
    /// Centres a block. If rows[b] >= 0, row rows[b] of z becomes in - centre[rows[b]]. If rows[b] < 0, the
    /// band only adds to the magnitude. in: `bands` rows of block_pixels values, band_stride apart.
    /// magnitude[i] = sum of |in|. singles: receives z in single precision, may be null. z and singles are in
    /// the layout of the other kernels: strips of pixels, stored row by row.
    void (*take)(const float* in, ptrdiff_t band_stride, int bands, const int* rows, const double* centre,
                 int height, double* z, float* singles, double* magnitude);
    /// Computes squared[i] = sum of the squares of column i of z.
    void (*square)(const double* z, int height, double* squared);
    /// Replaces every z of column i by max(z, part * greatest[i]), where greatest[i] is the maximum of the
    /// column. Computes logs = ln z, sum[i] = sum of z and product[i] = sum of z ln z from the new values. If
    /// greatest[i] is not above 0, the other results are meaningless.
    void (*take_logs)(double* z, int height, double part, double* logs, double* greatest, double* sum,
                      double* product);
    /// Writes block_pixels spectra of `height` values to z, each minus its mean. inverse[i] = 1 / sqrt(sum of
    /// the squares of column i of z), or 0 if this sum is below 1e-12 height.
    void (*centre)(const double* spectra, int height, double* z, double* inverse);
    /// Adds the fits of a feature to scores and depths. products: the products of block_pixels centred
    /// spectra with the centred L. inverse: 1 / length of these spectra, from centre(). F = product * inverse
    /// * line.fit, at most 1, and D = product * line.depth; both are 0 if the product is not above 0 or
    /// inverse is 0. scores += weight F (how = 0), weight D (how = 1) or weight F D (how = 2), and depths +=
    /// weight D. If F or D is less than `line` requires, score and depth become minus infinity.
    void (*add_fit)(const double* products, const double* inverse, const FitLine& line, int how,
                    double* scores, double* depths);
    /// y: `components` rows of block_pixels values. t, weights and signal: one value per component. Computes
    /// filtered = sum weights y, and apart = sqrt(mean (y - a t)^2 / ((1 - a)^2 signal + 1)), where a is
    /// `filtered`, limited to 0..1.
    void (*tune)(const double* y, int components, const double* t, const double* weights,
                 const double* signal, double* filtered, double* apart);
    /// Computes out[row * block_pixels + i] = row times column i of z.
    void (*multiply)(const double* z, int height, const Panels& rows, double* out);
    /// Computes squared[i] = |matrix times column i of z|^2. Panels that are kept in single precision are
    /// multiplied with `singles`, which is z in single precision from take().
    void (*quadratic)(const double* z, const float* singles, int height, const Panels& matrix,
                      double* squared);
    const char* target;
};
const SimdKernels& simd_kernels();

} // namespace hsi::detect
