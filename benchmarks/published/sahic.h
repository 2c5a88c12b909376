// SPDX-License-Identifier: MIT
// The Markov random field of paper 003 as published in its Algorithm 1, in double precision, with all
// variables stored. SAHIC_S is the serial version, on one thread; SAHIC_M uses OpenMP on several threads. The
// border is periodic. The steps are those of the paper's kernels, so that each can be timed (Table VIII).
// Where the paper gives no details, the steps follow sahic.cuh.
#pragma once

#include "mixed_radix_fft.h"
#include "sahic/sahic.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

namespace hsi::sahic::published {

class Field {
  public:
    Field(const MrfProblem& problem, const MrfOptions& options, int threads)
        : m_mu(options.mu), m_threads(threads), m_classes(problem.classes), m_lines(problem.lines),
          m_samples(problem.samples), m_pixels(m_lines * m_samples), m_all(m_classes * m_pixels),
          m_row(static_cast<int>(m_samples)), m_column(static_cast<int>(m_lines)) {
        p.assign(problem.p, problem.p + m_all);
        q = v1 = v2 = v3 = v4 = p;
        for (auto* v : {&d1, &d2, &d3, &d4, &s})
            v->assign(static_cast<size_t>(m_all), 0.0);
        for (auto* v : {&v5h, &v5v, &d5h, &d5v})
            v->assign(static_cast<size_t>(m_all), 0.0);
        for (auto* v : {&inner, &mid_h, &mid_v})
            v->assign(static_cast<size_t>(m_all), 0.0);
        sum.resize(static_cast<size_t>(m_pixels));
        for (int64_t i = 0; i < m_pixels; ++i) {
            threshold.push_back(options.lambda * static_cast<double>(problem.weight[i]) / options.mu);
            if (problem.fixed[i] > 0) m_fixed.push_back({i, problem.fixed[i] - 1});
        }
        // A difference of neighbouring pixels multiplies a wave e^(iax) by (e^(ia) - 1).
        const double turn = 2 * std::acos(-1.0);
        for (int64_t i = 0; i < m_pixels; ++i) {
            fh.push_back(
                std::polar(1.0, turn * static_cast<double>(i % m_samples) / static_cast<double>(m_samples)) -
                1.0);
            fv.push_back(
                std::polar(1.0, turn * static_cast<double>(i / m_samples) / static_cast<double>(m_lines)) -
                1.0);
            il.push_back(1 / (1 + std::norm(fh.back()) + std::norm(fv.back())));
        }
    }

    void iterate(int count) {
        for (int i = 0; i < count; ++i) {
            q_step();
            fixq_step();
            nu_aux3_sum_step();
            vs_step();
            transforms_before();
            v4_step();
            transforms_after();
            v5_step();
            d4_step();
        }
    }
    std::vector<float> result() const { return {q.begin(), q.end()}; }

    void q_step() {
        each([this](int64_t i, int64_t) {
            q[u(i)] = 0.25 *
                      (v1[u(i)] + d1[u(i)] + v2[u(i)] + d2[u(i)] + v3[u(i)] + d3[u(i)] + v4[u(i)] + d4[u(i)]);
        });
    }
    void fixq_step() {
        for (const Fixed& f : m_fixed)
            for (int k = 0; k < m_classes; ++k)
                q[u(k * m_pixels + f.pixel)] = k == f.label ? 1.0 : 0.0;
    }
    void nu_aux3_sum_step() {
#pragma omp parallel for num_threads(m_threads)
        for (int64_t i = 0; i < m_pixels; ++i) {
            double total = 0;
            for (int64_t at = i; at < m_all; at += m_pixels)
                total += s[u(at)] = q[u(at)] - d3[u(at)];
            sum[u(i)] = total;
        }
    }
    void vs_step() {
        each([this](int64_t i, int64_t at) {
            v1[u(i)] = (p[u(i)] + m_mu * (q[u(i)] - d1[u(i)])) / (1 + m_mu);
            v2[u(i)] = std::max(q[u(i)] - d2[u(i)], 0.0);
            v3[u(i)] = s[u(i)] + (1 - sum[u(at)]) / m_classes;
            d1[u(i)] -= q[u(i)] - v1[u(i)];
            d2[u(i)] -= q[u(i)] - v2[u(i)];
            d3[u(i)] -= q[u(i)] - v3[u(i)];
        });
    }
    /// Computes `inner`, the inverse transform of L F(a + H'(V5 + D5)), without its scale.
    void transforms_before() {
        each([this](int64_t i, int64_t) {
            inner[u(i)] = q[u(i)] - d4[u(i)];
            mid_h[u(i)] = v5h[u(i)] + d5h[u(i)];
            mid_v[u(i)] = v5v[u(i)] + d5v[u(i)];
        });
        for (auto* planes : {&inner, &mid_h, &mid_v})
            transform(*planes, false);
        each([this](int64_t i, int64_t at) {
            inner[u(i)] = il[u(at)] * (inner[u(i)] + times(std::conj(fh[u(at)]), mid_h[u(i)]) +
                                       times(std::conj(fv[u(at)]), mid_v[u(i)]));
        });
        transform(inner, true);
    }
    void v4_step() {
        each([this](int64_t i, int64_t) {
            v4[u(i)] = inner[u(i)].real() / static_cast<double>(m_pixels);
            mid_h[u(i)] = mid_v[u(i)] = v4[u(i)];
        });
    }
    /// Computes mid_h = F^-1(FH F(V4)) and mid_v = F^-1(FV F(V4)), without their scale.
    void transforms_after() {
        transform(mid_h, false);
        transform(mid_v, false);
        each([this](int64_t i, int64_t at) {
            mid_h[u(i)] = times(fh[u(at)], mid_h[u(i)]);
            mid_v[u(i)] = times(fv[u(at)], mid_v[u(i)]);
        });
        transform(mid_h, true);
        transform(mid_v, true);
    }
    void v5_step() {
        each([this](int64_t i, int64_t at) {
            const double h = mid_h[u(i)].real() / static_cast<double>(m_pixels),
                         v = mid_v[u(i)].real() / static_cast<double>(m_pixels), limit = threshold[u(at)];
            const double th = h - d5h[u(i)], tv = v - d5v[u(i)];
            const double over = std::max(std::sqrt(th * th + tv * tv) - limit, 0.0),
                         factor = over / (over + limit);
            v5h[u(i)] = factor * th;
            v5v[u(i)] = factor * tv;
            d5h[u(i)] -= h - v5h[u(i)];
            d5v[u(i)] -= v - v5v[u(i)];
        });
    }
    void d4_step() {
        each([this](int64_t i, int64_t) { d4[u(i)] -= q[u(i)] - v4[u(i)]; });
    }

  private:
    struct Fixed {
        int64_t pixel;
        int label;
    };
    static size_t u(int64_t i) { return static_cast<size_t>(i); }
    /// Multiplies complex numbers without the checks for infinities that the product of std::complex makes.
    static std::complex<double> times(std::complex<double> a, std::complex<double> b) {
        return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    }
    /// Calls work(place, pixel) for all classes and pixels. place: index in arrays of [class][pixel].
    template <class F>
    void each(F work) const {
#pragma omp parallel for collapse(2) num_threads(m_threads)
        for (int k = 0; k < m_classes; ++k)
            for (int64_t y = 0; y < m_lines; ++y)
                for (int64_t at = y * m_samples; at < (y + 1) * m_samples; ++at)
                    work(k * m_pixels + at, at);
    }
    void transform(std::vector<std::complex<double>>& planes, bool backward) const {
        fft::transform(m_row, m_column, planes.data(), m_classes, backward, m_threads);
    }

    const double m_mu;
    const int m_threads, m_classes;
    const int64_t m_lines, m_samples, m_pixels, m_all;
    const fft::Fft m_row, m_column;
    std::vector<Fixed> m_fixed;
    std::vector<double> p, q, v1, v2, v3, v4, d1, d2, d3, d4, s, v5h, v5v, d5h, d5v; ///< [class][pixel]
    std::vector<double> sum, threshold, il;                                          ///< [pixel]
    std::vector<std::complex<double>> fh, fv, inner, mid_h, mid_v;
};

} // namespace hsi::sahic::published
