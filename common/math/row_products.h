// SPDX-License-Identifier: MIT
// Products of rows of weights with a block of pixels, and exponentials, in double precision: what linear
// models with many members, principal components and Gaussian processes spend their time on. Compiled for
// several instruction sets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::math {

/// Rows of weights as the kernel reads them: in groups of four, the last of which is filled up with zeros.
class RowPanels {
  public:
    static constexpr size_t group_size = 4;

    RowPanels() = default;
    /// `rows`: [row][length]. lower: row r has zeros behind entry r, which are left out of the products.
    RowPanels(const std::vector<double>& rows, size_t length, bool lower = false)
        : m_rows(length > 0 ? rows.size() / length : 0), m_length(length), m_lower(lower) {
        for (size_t first = 0; first < m_rows; first += group_size) {
            m_begin.push_back(m_weights.size());
            for (size_t b = 0; b < length_of(first / group_size); ++b)
                for (size_t k = first; k < first + group_size; ++k)
                    m_weights.push_back(k < m_rows ? rows[k * length + b] : 0.0);
        }
    }
    size_t rows() const { return m_rows; }
    size_t groups() const { return m_begin.size(); }
    /// Doubles of the results of one pixel: rows(), filled up to whole groups.
    size_t results() const { return m_begin.size() * group_size; }
    size_t length_of(size_t group) const {
        return m_lower ? std::min(m_length, (group + 1) * group_size) : m_length;
    }
    const double* weights_of(size_t group) const { return m_weights.data() + m_begin[group]; }

  private:
    size_t m_rows = 0, m_length = 0;
    bool m_lower = false;
    std::vector<double> m_weights; ///< [group][entry][4]
    std::vector<size_t> m_begin;
};

struct RowKernels {
    int width; ///< pixels that are evaluated together
    /// results[row][width] = the row times x ([entry][width]). Each sum runs over the entries in their order,
    /// and a pixel's value does not depend on its place.
    void (*multiply)(const RowPanels& panels, const double* x, double* results);
    /// values[i] = exp(values[i]) of count x width numbers.
    void (*exponentials)(double* values, size_t count);
    const char* target;
};

const RowKernels& row_kernels();

} // namespace hsi::math
