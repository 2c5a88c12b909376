// SPDX-License-Identifier: MIT
// The diffusion of paper 001 on the CPU by OpenMP. The paper's GPU speed-up of 11.6 refers to this version:
// Algorithm 4, with the steps of eadp.cuh as parallel loops, one component after another, and two passes over
// the plane per FED step. The paper uses T = double; T = float is also measured.
#pragma once

#include "eadp/eadp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace hsi::eadp::published {

/// Function that is called after each stage of Table III, with the name of the stage.
using CpuTick = std::function<void(const char*)>;

template <class T>
class CpuProfile {
  public:
    CpuProfile(int samples, int lines, const Options& options, int threads, CpuTick tick)
        : m_w(samples), m_h(lines), m_options(options), m_threads(threads), m_tick(std::move(tick)) {
        const auto weights = gaussian_weights(options.sigma);
        m_taps.assign(weights.begin(), weights.end());
        for (auto* v : {&m_start, &m_a, &m_b, &m_gx, &m_gy, &m_g})
            v->resize(static_cast<size_t>(m_w) * static_cast<size_t>(m_h));
    }

    /// Computes the copies of one component with independent evolution, g2 and one cycle. x: the component;
    /// out: its copies, one after another.
    void run(const float* x, float* out) {
        const size_t n = m_start.size();
        std::copy_n(x, n, m_start.begin());
        m_tick("setup");
        smooth();
        m_tick("Gaussian");
        scharr();
        m_tick("Scharr");
        const double k = contrast();
        m_tick("contrast");
        const T k2 = static_cast<T>(k * k);
        each_line([&](int, size_t row) {
            for (size_t i = row; i < row + static_cast<size_t>(m_w); ++i)
                m_g[i] = 1 / (1 + (m_gx[i] * m_gx[i] + m_gy[i] * m_gy[i]) / k2);
        });
        m_tick("diffusivity");
        for (int copy = 0; copy < m_options.copies(); ++copy) {
            std::copy(m_start.begin(), m_start.end(), m_a.begin());
            for (const double tau : fed_taus(m_options.times[static_cast<size_t>(copy)], 1))
                step(static_cast<T>(tau));
            std::transform(m_a.begin(), m_a.end(), out + static_cast<size_t>(copy) * n,
                           [](T v) { return static_cast<float>(v); });
        }
        m_tick("FED");
    }

  private:
    template <class F>
    void each_line(F work) const {
#pragma omp parallel for num_threads(m_threads)
        for (int y = 0; y < m_h; ++y)
            work(y, static_cast<size_t>(y) * static_cast<size_t>(m_w));
    }
    static int mirror(int i, int n) { return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i; }
    size_t at(int y, int x) const {
        return static_cast<size_t>(y) * static_cast<size_t>(m_w) + static_cast<size_t>(x);
    }

    /// Smooths m_start, first along rows, then along columns. The result is m_b.
    void smooth() {
        const int radius = gaussian_radius(m_options.sigma);
        const auto tap = [&](int t) { return m_taps[static_cast<size_t>(std::abs(t))]; };
        each_line([&](int y, size_t row) {
            for (int x = 0; x < m_w; ++x) {
                T sum = 0;
                if (x >= radius && x + radius < m_w)
                    for (int t = -radius; t <= radius; ++t)
                        sum += tap(t) * m_start[row + static_cast<size_t>(x + t)];
                else
                    for (int t = -radius; t <= radius; ++t)
                        sum += tap(t) * m_start[at(y, mirror(x + t, m_w))];
                m_a[row + static_cast<size_t>(x)] = sum;
            }
        });
        each_line([&](int y, size_t row) {
            std::fill_n(m_b.begin() + static_cast<ptrdiff_t>(row), m_w, T(0));
            for (int t = -radius; t <= radius; ++t) {
                const size_t from = at(mirror(y + t, m_h), 0);
                for (size_t x = 0; x < static_cast<size_t>(m_w); ++x)
                    m_b[row + x] += tap(t) * m_a[from + x];
            }
        });
    }

    void scharr() {
        each_line([&](int y, size_t row) {
            const size_t up = at(std::max(y - 1, 0), 0), down = at(std::min(y + 1, m_h - 1), 0);
            for (int x = 0; x < m_w; ++x) {
                const auto l = static_cast<size_t>(std::max(x - 1, 0)), c = static_cast<size_t>(x),
                           r = static_cast<size_t>(std::min(x + 1, m_w - 1));
                const T ul = m_b[up + l], ur = m_b[up + r], ll = m_b[down + l], lr = m_b[down + r];
                m_gx[row + c] = (3 * (lr - ll + ur - ul) + 10 * (m_b[row + r] - m_b[row + l])) / 32;
                m_gy[row + c] = (3 * (lr + ll - ur - ul) + 10 * (m_b[down + c] - m_b[up + c])) / 32;
            }
        });
    }

    double magnitude(size_t i) const {
        return std::sqrt(static_cast<double>(m_gx[i] * m_gx[i] + m_gy[i] * m_gy[i]));
    }

    /// Finds the largest gradient and computes the histogram. Returns the contrast at the histogram's
    /// percentile.
    double contrast() {
        double largest = 0;
        const int64_t n = static_cast<int64_t>(m_start.size());
#pragma omp parallel for num_threads(m_threads) reduction(max : largest)
        for (int64_t i = 0; i < n; ++i)
            largest = std::max(largest, magnitude(static_cast<size_t>(i)));
        Histogram histogram{};
        int64_t* const bins = histogram.data();
#pragma omp parallel for num_threads(m_threads) reduction(+ : bins[:histogram_bins])
        for (int64_t i = 0; i < n; ++i)
            if (const double m = magnitude(static_cast<size_t>(i)); m > 0)
                ++bins[std::min(histogram_bins - 1, static_cast<int>(histogram_bins * m / largest))];
        Range range;
        range.steepest = largest;
        return contrast_of(range, histogram, m_options.percentile);
    }

    /// Computes fed_nld_step and fed_nld_update of the paper, without flux over the border.
    void step(T tau) {
        const T* const l = m_a.data();
        const T* const g = m_g.data();
        each_line([&](int y, size_t row) {
            const size_t up = y > 0 ? row - static_cast<size_t>(m_w) : row,
                         down = y + 1 < m_h ? row + static_cast<size_t>(m_w) : row;
            const auto flux = [&](size_t p, size_t left, size_t right, size_t above, size_t below) {
                return tau * T(0.5) *
                       ((g[p] + g[right]) * (l[right] - l[p]) + (g[p] + g[left]) * (l[left] - l[p]) +
                        (g[p] + g[below]) * (l[below] - l[p]) + (g[p] + g[above]) * (l[above] - l[p]));
            };
            const auto last = static_cast<size_t>(m_w - 1);
            m_b[row] = flux(row, row, row + std::min<size_t>(1, last), up, down);
            for (size_t x = 1; x < last; ++x)
                m_b[row + x] = flux(row + x, row + x - 1, row + x + 1, up + x, down + x);
            if (last > 0)
                m_b[row + last] = flux(row + last, row + last - 1, row + last, up + last, down + last);
        });
        each_line([&](int, size_t row) {
            for (size_t i = row; i < row + static_cast<size_t>(m_w); ++i)
                m_a[i] += m_b[i];
        });
    }

    const int m_w, m_h;
    const Options m_options;
    const int m_threads;
    const CpuTick m_tick;
    std::vector<T> m_taps, m_start, m_a, m_b, m_gx, m_gy, m_g; ///< [line][sample]
};

} // namespace hsi::eadp::published
