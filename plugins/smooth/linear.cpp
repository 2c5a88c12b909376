// SPDX-License-Identifier: MIT
#include "smooth/linear.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi::smooth {

double median_step(const std::vector<double>& wavelengths) {
    std::vector<double> steps;
    for (size_t b = 1; b < wavelengths.size(); ++b)
        if (wavelengths[b] > wavelengths[b - 1]) steps.push_back(wavelengths[b] - wavelengths[b - 1]);
    if (steps.empty()) return 0;
    std::sort(steps.begin(), steps.end());
    const size_t half = steps.size() / 2;
    return steps.size() % 2 == 1 ? steps[half] : (steps[half - 1] + steps[half]) / 2;
}

std::vector<Segment> segments_of(const std::vector<double>& wavelengths, double max_gap) {
    constexpr double usual_steps = 2.5;
    if (!(max_gap > 0)) max_gap = usual_steps * median_step(wavelengths);
    std::vector<Segment> segments;
    for (size_t b = 0; b < wavelengths.size(); ++b) {
        const double step = b > 0 ? wavelengths[b] - wavelengths[b - 1] : 0;
        if (!(step > 0 && step <= max_gap)) segments.push_back({b, b});
        segments.back().end = b + 1;
    }
    return segments;
}

namespace {

/// Returns the weights w for which sum w_k y_k is coefficient d of the least-squares polynomial of degree p
/// through n values at t. w = Q R^-T e_d, where V = Q R has the powers of t as columns.
std::vector<double> coefficient_weights(const std::vector<double>& t, size_t p, size_t d) {
    const size_t n = t.size();
    std::vector<std::vector<double>> q(p + 1, std::vector<double>(n, 1.0)),
        r(p + 1, std::vector<double>(p + 1));
    for (size_t j = 0; j <= p; ++j) {
        for (size_t k = 0; k < n && j > 0; ++k)
            q[j][k] = std::pow(t[k], static_cast<double>(j));
        // A single pass leaves rounding errors, so the projection is subtracted twice.
        for (int twice = 0; twice < 2; ++twice)
            for (size_t i = 0; i < j; ++i) {
                double dot = 0;
                for (size_t k = 0; k < n; ++k)
                    dot += q[i][k] * q[j][k];
                r[i][j] += dot;
                for (size_t k = 0; k < n; ++k)
                    q[j][k] -= dot * q[i][k];
            }
        double square = 0;
        for (const double v : q[j])
            square += v * v;
        r[j][j] = std::sqrt(square);
        for (double& v : q[j])
            v /= r[j][j];
    }
    std::vector<double> u(p + 1), weights(n);
    for (size_t i = d; i <= p; ++i) {
        double rest = i == d ? 1 : 0;
        for (size_t j = d; j < i; ++j)
            rest -= r[j][i] * u[j];
        u[i] = rest / r[i][i];
        for (size_t k = 0; k < n; ++k)
            weights[k] += q[i][k] * u[i];
    }
    return weights;
}

math::ResampledBand row_of(size_t band, size_t first, std::vector<double> weights) {
    math::ResampledBand row;
    row.target = band;
    for (size_t k = 0; k < weights.size(); ++k)
        row.sources.push_back(first + k);
    row.weights = std::move(weights);
    return row;
}

} // namespace

Rows savitzky_golay(const std::vector<double>& wavelengths, const std::vector<Segment>& segments,
                    const SavitzkyGolay& options) {
    const auto derivative = static_cast<size_t>(options.derivative);
    double factorial = 1;
    for (size_t k = 2; k <= derivative; ++k)
        factorial *= static_cast<double>(k);
    Rows rows;
    for (const Segment& segment : segments) {
        const size_t n = std::min(static_cast<size_t>(options.window), segment.size()),
                     degree = std::min(static_cast<size_t>(options.degree), n - 1);
        for (size_t b = segment.begin; b < segment.end; ++b) {
            if (segment.size() <= derivative) {
                rows.left_out.push_back(b);
                continue;
            }
            const size_t first =
                std::clamp(b - std::min(b - segment.begin, n / 2), segment.begin, segment.end - n);
            std::vector<double> t;
            double scale = 0;
            for (size_t k = first; k < first + n; ++k) {
                t.push_back(wavelengths[k] - wavelengths[b]);
                scale = std::max(scale, std::fabs(t.back()));
            }
            for (double& v : t)
                v /= scale > 0 ? scale : 1;
            auto weights = coefficient_weights(t, degree, derivative);
            for (double& w : weights)
                w *= factorial / std::pow(scale, static_cast<double>(derivative));
            rows.bands.push_back(row_of(b, first, std::move(weights)));
        }
    }
    return rows;
}

Rows moving_mean(const std::vector<Segment>& segments, int window) {
    const auto half = static_cast<size_t>(window - 1) / 2;
    Rows rows;
    for (const Segment& segment : segments)
        for (size_t b = segment.begin; b < segment.end; ++b) {
            const size_t first = b - std::min(half, b - segment.begin),
                         end = std::min(b + half + 1, segment.end);
            rows.bands.push_back(
                row_of(b, first, std::vector<double>(end - first, 1 / static_cast<double>(end - first))));
        }
    return rows;
}

Whittaker::Whittaker(const std::vector<double>& wavelengths, std::vector<Segment> segments, double lambda,
                     int order)
    : m_order(static_cast<size_t>(order)), m_diagonal(wavelengths.size(), 1.0),
      m_lower(wavelengths.size() * m_order) {
    const double step = median_step(wavelengths);
    double factorial = 1;
    for (int k = 2; k <= order; ++k)
        factorial *= k;
    for (const Segment& segment : segments) {
        if (segment.size() <= m_order) continue;
        m_segments.push_back(segment);
        // First the band matrix is built, then its factors replace it in the same memory.
        for (size_t first = segment.begin; first + m_order < segment.end; ++first) {
            std::vector<double> d(m_order + 1, factorial);
            for (size_t j = 0; j <= m_order; ++j)
                for (size_t l = 0; l <= m_order; ++l)
                    if (l != j) d[j] /= (wavelengths[first + j] - wavelengths[first + l]) / step;
            for (size_t j = 0; j <= m_order; ++j) {
                m_diagonal[first + j] += lambda * d[j] * d[j];
                for (size_t back = 1; back <= j; ++back)
                    m_lower[(first + j) * m_order + back - 1] += lambda * d[j] * d[j - back];
            }
        }
        for (size_t b = segment.begin; b < segment.end; ++b) {
            const size_t reach = std::min(m_order, b - segment.begin);
            double* const row = m_lower.data() + b * m_order;
            for (size_t back = reach; back > 0; --back) {
                const size_t j = b - back; // before this step, row[back - 1] is L(b, j) D(j)
                for (size_t further = back + 1; further <= reach && further - back <= m_order; ++further) {
                    const size_t i = b - further;
                    row[back - 1] -=
                        row[further - 1] * m_diagonal[i] * m_lower[j * m_order + further - back - 1];
                }
                row[back - 1] /= m_diagonal[j];
            }
            for (size_t back = 1; back <= reach; ++back)
                m_diagonal[b] -= row[back - 1] * row[back - 1] * m_diagonal[b - back];
        }
    }
}

void Whittaker::smooth(double* values, size_t pixels) const {
    const auto row = [&](size_t band) { return values + band * pixels; };
    const auto subtract = [&](double* to, const double* from, double factor) {
        for (size_t i = 0; i < pixels; ++i)
            to[i] -= factor * from[i];
    };
    for (const Segment& segment : m_segments) {
        for (size_t b = segment.begin; b < segment.end; ++b)
            for (size_t back = 1; back <= std::min(m_order, b - segment.begin); ++back)
                subtract(row(b), row(b - back), m_lower[b * m_order + back - 1]);
        // Divides by the diagonal, then substitutes backwards.
        for (size_t b = segment.end; b-- > segment.begin;) {
            double* const to = row(b);
            for (size_t i = 0; i < pixels; ++i)
                to[i] /= m_diagonal[b];
            for (size_t ahead = 1; ahead <= m_order && b + ahead < segment.end; ++ahead)
                subtract(to, row(b + ahead), m_lower[(b + ahead) * m_order + ahead - 1]);
        }
    }
}

} // namespace hsi::smooth
