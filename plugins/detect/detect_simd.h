// SPDX-License-Identifier: MIT
// The inner loops of detection; each is compiled for every instruction set and dispatched at run time. All in
// double precision, a lane a pixel (or a column): the width of a register changes no bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::detect {

/// Pixels of one call: their values in double stay in a second-level cache with the matrix they meet.
inline constexpr int64_t block_pixels = 64;

/// Rows of a matrix as the kernels read them: panels of six rows, in each the columns one after another, six
/// numbers a column. Rows beyond the last are zero.
class Panels {
  public:
    static constexpr int height = 6;
    Panels() = default;
    /// A matrix of `columns` columns, packed row by row.
    Panels(const std::vector<double>& matrix, int columns);
    /// A lower one, of as many columns as there are `scales`; panels end at the diagonal. Panels whose rows,
    /// times the scales, are no longer than `length` are also kept in single precision, if the scales are
    /// from 1e-30 to 1e30.
    Panels(const std::vector<double>& matrix, const std::vector<double>& scales, double length);

    int count() const { return static_cast<int>(m_columns.size()); }
    int columns(int panel) const { return m_columns[static_cast<size_t>(panel)]; }
    const double* values(int panel) const { return m_values.data() + m_begin[static_cast<size_t>(panel)]; }
    /// Null: not in single precision.
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
    double weight = 0;                     ///< of the range among the target's ranges
    double fit = 0;                        ///< 1 / sqrt(sum (L - mean)^2)
    double depth = 0;                      ///< (1 - min L) / sum (L - mean)^2
    double least_fit = 0, least_depth = 0; ///< with less in one range a target has no score
};

struct SimdKernels {
    /// rows[b] >= 0: row rows[b] of z = in - centre[rows[b]]; below 0: the band is looked at only. in:
    /// `bands` rows of block_pixels values, band_stride apart. magnitude[i] = sum of |in|. z, and singles, z
    /// in single precision (null: not wanted), are for the other kernels: strips of pixels, in each the rows.
    void (*take)(const float* in, ptrdiff_t band_stride, int bands, const int* rows, const double* centre,
                 int height, double* z, float* singles, double* magnitude);
    /// squared[i] = sum of the squares of column i of z.
    void (*square)(const double* z, int height, double* squared);
    /// z = max(z, part max z) down every column, logs = their logarithms; greatest[i], sum[i] = sum of z,
    /// product[i] = sum of z ln z. Where greatest[i] is not above 0, the others mean nothing.
    void (*take_logs)(double* z, int height, double part, double* logs, double* greatest, double* sum,
                      double* product);
    /// spectra: block_pixels of them, each `height` values. z: these less their means; inverse[i] = 1 /
    /// sqrt(sum of their squares), 0 where that sum is under 1e-12 height.
    void (*centre)(const double* spectra, int height, double* z, double* inverse);
    /// For the products of block_pixels centred spectra with a centred L, and `inverse` of centre(): F =
    /// product inverse line.fit, at most 1, and D = product line.depth, both 0 if the product is not above 0
    /// or inverse is 0. scores += weight F (how = 0), weight D (1) or weight F D (2), and depths += weight D;
    /// if F or D is less than the line requires, minus infinity instead.
    void (*add_fit)(const double* products, const double* inverse, const FitLine& line, int how,
                    double* scores, double* depths);
    /// y: `components` rows of block_pixels numbers; t, weights and signal: a number a component. filtered =
    /// sum weights y; apart = sqrt(mean (y - a t)^2 / ((1 - a)^2 signal + 1)), a = filtered cut to 0..1.
    void (*tune)(const double* y, int components, const double* t, const double* weights,
                 const double* signal, double* filtered, double* apart);
    /// out[row * block_pixels + i] = row times column i of z.
    void (*multiply)(const double* z, int height, const Panels& rows, double* out);
    /// squared[i] = |matrix times column i of z|^2; panels that are there in single precision meet `singles`.
    void (*quadratic)(const double* z, const float* singles, int height, const Panels& matrix,
                      double* squared);
    const char* target;
};
const SimdKernels& simd_kernels();

} // namespace hsi::detect
