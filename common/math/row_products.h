// SPDX-License-Identifier: MIT
// Multiplies rows of weights with blocks of pixels in double precision, and performs related steps. These
// steps take most of the time of linear models with many members, principal components and Gaussian
// processes. The kernels are compiled for several instruction sets. The value of a pixel does not depend on
// its index in the block or on the width of a register.
#pragma once

#include "math/resampling.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::math {

/// Stores rows of weights as the kernel reads them, in groups of four. The last group is padded with zeros.
class RowPanels {
  public:
    static constexpr size_t group_size = 4;

    RowPanels() = default;
    /// `rows`: [row][length].
    RowPanels(const std::vector<double>& rows, size_t length) : RowPanels(rows, length, length) {}
    /// Row r is zero after its first `first` + r entries; these zeros are left out of the products.
    RowPanels(const std::vector<double>& rows, size_t length, size_t first)
        : m_rows(length > 0 ? rows.size() / length : 0), m_length(length), m_first(first) {
        const size_t groups = (m_rows + group_size - 1) / group_size;
        for (size_t g = 0; g < groups; ++g) {
            m_begin.push_back(m_weights.size());
            for (size_t b = 0; b < length_of(g); ++b)
                for (size_t k = g * group_size; k < (g + 1) * group_size; ++k)
                    m_weights.push_back(k < m_rows ? rows[k * length + b] : 0.0);
        }
    }
    size_t rows() const { return m_rows; }
    size_t groups() const { return m_begin.size(); }
    /// Returns the number of doubles of the results of one pixel: rows(), rounded up to whole groups.
    size_t results() const { return m_begin.size() * group_size; }
    size_t length() const { return m_length; } ///< length of the longest row
    size_t length_of(size_t group) const {
        return std::min(m_length, m_first + (group + 1) * group_size - 1);
    }
    const double* weights_of(size_t group) const { return m_weights.data() + m_begin[group]; }

  private:
    size_t m_rows = 0, m_length = 0, m_first = 0;
    std::vector<double> m_weights; ///< [group][entry][4]
    std::vector<size_t> m_begin;
};

/// Kernels for blocks of `width` pixels, stored as [entry][pixel].
struct RowKernels {
    int width; ///< pixels that are evaluated together
    /// Computes x: for each of `bands`, the weighted sum of value * scale + offset over its source bands.
    /// `in` has `count` pixels ([band][pixel], `stride` numbers per band). The rest of the block is filled
    /// with zeros. scale and offset: one per band of `in`, or null.
    void (*load)(const std::vector<ResampledBand>& bands, const double* scale, const double* offset,
                 const float* in, ptrdiff_t stride, size_t count, double* x);
    /// Computes z = (x - centre) * factor for each entry. squares: the sum of z^2 for each pixel.
    void (*standardise)(const double* x, const double* centre, const double* factor, size_t entries,
                        double* z, double* squares);
    /// Computes results[row], the dot product of the row and x, for each pixel. Each sum adds the entries in
    /// their order.
    void (*multiply)(const RowPanels& panels, const double* x, double* results);
    /// Computes results[row], the dot product of the row and x plus the offset of the row. sums: the sum of
    /// the squared results over all rows, for each pixel. offsets: one per row, padded with zeros to
    /// panels.results().
    void (*sum_squares)(const RowPanels& panels, const double* offsets, const double* x, double* results,
                        double* sums);
    /// Adds the sum of weights[row] * values[row] over all rows to `sums`, for each pixel. add_squares() adds
    /// the sum of weights[row] * values[row]^2.
    void (*add)(const double* values, const double* weights, size_t rows, double* sums);
    void (*add_squares)(const double* values, const double* weights, size_t rows, double* sums);
    /// Computes values = exp(-gamma d^2) with d^2 = |x|^2 + |s|^2 - 2 values. The input `values` are the
    /// products of pixels x and rows s; `of_pixels` and `of_rows` are their squared lengths.
    void (*kernels)(double* values, const double* of_pixels, const double* of_rows, size_t rows,
                    double gamma);
    const char* target;
};

const RowKernels& row_kernels();

} // namespace hsi::math
