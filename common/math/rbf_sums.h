// SPDX-License-Identifier: MIT
// Computes weighted sums of Gaussian (RBF) kernel values, f_o(x) = sum over v of w_ov exp(-gamma |x -
// s_v|^2). These sums take most of the time of support vector machines and of regressions on RBF features.
// The kernels are compiled for several instruction sets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::math {

/// Stores vectors s and weights w as the kernel reads them, in groups of four. The last group is padded with
/// vectors of weight zero.
class RbfPanels {
  public:
    static constexpr size_t group_size = 4; ///< vectors that are evaluated together

    RbfPanels() = default;
    RbfPanels(int features, int outputs, double gamma)
        : m_features(features), m_outputs(outputs), m_gamma(gamma) {}

    /// Appends `count` vectors as new groups. vector(v, f) is feature f of vector v, and weight(o, v) is the
    /// weight of vector v in output o.
    template <class Vector, class Weight>
    void append(size_t count, const Vector& vector, const Weight& weight) {
        const auto features = static_cast<size_t>(m_features), outputs = static_cast<size_t>(m_outputs);
        for (size_t first = 0; first < count; first += group_size) {
            const auto at = [&](size_t k) { return std::min(first + k, count - 1); };
            for (size_t f = 0; f < features; ++f)
                for (size_t k = 0; k < group_size; ++k)
                    m_vectors.push_back(vector(at(k), f));
            for (size_t k = 0; k < group_size; ++k) {
                double sum = 0;
                for (size_t f = 0; f < features; ++f)
                    sum += vector(at(k), f) * vector(at(k), f);
                m_squares.push_back(sum);
            }
            for (size_t o = 0; o < outputs; ++o)
                for (size_t k = 0; k < group_size; ++k)
                    m_weights.push_back(first + k < count ? weight(o, first + k) : 0.0);
        }
    }

    int features() const { return m_features; }
    int outputs() const { return m_outputs; }
    double gamma() const { return m_gamma; }
    int64_t groups() const { return static_cast<int64_t>(m_squares.size() / group_size); }
    const std::vector<double>& vectors() const { return m_vectors; } ///< [group][feature][4]
    const std::vector<double>& squares() const { return m_squares; } ///< [group][4], |s|^2
    const std::vector<double>& weights() const { return m_weights; } ///< [group][output][4]

  private:
    int m_features = 0, m_outputs = 0;
    double m_gamma = 1;
    std::vector<double> m_vectors, m_squares, m_weights;
};

struct RbfKernels {
    int width; ///< pixels that are evaluated together
    /// Adds f_o(x), summed over the groups [first, last), to sums[output][width]. x: [feature][width]; x2:
    /// [width], |x|^2. The value of a pixel does not depend on its index in the block.
    void (*add_sums)(const RbfPanels& panels, int64_t first, int64_t last, const double* x, const double* x2,
                     double* sums);
    const char* target;
};

const RbfKernels& rbf_kernels();

} // namespace hsi::math
