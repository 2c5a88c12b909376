// SPDX-License-Identifier: MIT
// The steps of paper 003 before its Markov random field: LORSAL, probabilities and weights, in double
// precision. The serial version (SAHIC_S) uses plain loops. The multicore version (SAHIC_M) uses OpenMP and
// optimised libraries: BLAS and LAPACK here, MKL in the paper. The method, and choices that the paper leaves
// open, follow sahic/lorsal.h. All training pixels remain anchors, and the border is periodic.
#pragma once

#include "math/linear_algebra.h"
#include "sahic/blas.h"
#include "sahic/lorsal.h"
#include "support/memory_cube.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace hsi::sahic::published {

/// Sets the number of threads of OpenBLAS. Other libraries use their own settings.
inline void set_blas_threads(int threads) {
    if (void* const set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
        reinterpret_cast<void (*)(int)>(set)(threads);
}

class Lorsal {
  public:
    /// Trains the classifier. threads: 0 for the serial version.
    Lorsal(const model::TrainingSet& set, const LorsalOptions& options, int threads)
        : m_threads(threads), m_samples(static_cast<int>(set.samples())), m_d(m_samples + 1),
          m_m(static_cast<int>(set.classes.size()) - 1), m_bands(set.features), m_scale(set.scale),
          m_label(detail::class_indices(set)),
          m_gamma(1 / (2 * options.delta * options.delta * detail::mean_square_distance(set))) {
        set_blas_threads(std::max(1, threads));
        for (const float v : set.values)
            m_anchor.push_back(static_cast<double>(v) / m_scale);
        m_kernel.resize(size(m_samples, m_samples));
        kernel_of(m_anchor.data(), m_samples, m_kernel.data());
        train(options);
    }

    /// Returns the class probabilities, [class][pixel].
    std::vector<float> probabilities(const test::Cube& cube) const {
        const int64_t pixels = cube.shape.pixels(), block = 256;
        std::vector<float> p(static_cast<size_t>((m_m + 1) * pixels));
        set_blas_threads(1);
#pragma omp parallel for num_threads(std::max(1, m_threads))
        for (int64_t first = 0; first < pixels; first += block) {
            const int count = static_cast<int>(std::min(block, pixels - first));
            std::vector<double> x(size(count, m_bands)), h(size(count, m_samples)), z(size(count, m_m));
            for (int b = 0; b < m_bands; ++b)
                for (int i = 0; i < count; ++i)
                    x[size(i, m_bands) + static_cast<size_t>(b)] =
                        static_cast<double>(cube.values[static_cast<size_t>(b * pixels + first + i)]) /
                        m_scale;
            kernel_of(x.data(), count, h.data());
            multiply(false, count, m_m, m_samples, h.data(), count, m_v.data() + 1, m_d, z.data(), count);
            for (int i = 0; i < count; ++i) {
                double total = 1;
                for (int k = 0; k < m_m; ++k)
                    total += z[size(k, count) + static_cast<size_t>(i)] =
                        std::exp(z[size(k, count) + static_cast<size_t>(i)] + m_v[size(k, m_d)]);
                for (int k = 0; k <= m_m; ++k)
                    p[static_cast<size_t>(k * pixels + first + i)] = static_cast<float>(
                        (k < m_m ? z[size(k, count) + static_cast<size_t>(i)] : 1.0) / total);
            }
        }
        return p;
    }

    /// Returns the weights of the pixels by equation 6.
    std::vector<float> weights(const test::Cube& cube) const {
        const int64_t samples = cube.shape.samples, lines = cube.shape.lines, pixels = samples * lines;
        std::vector<float> a(static_cast<size_t>(pixels));
#pragma omp parallel for num_threads(std::max(1, m_threads))
        for (int64_t y = 0; y < lines; ++y) {
            std::vector<double> sum(static_cast<size_t>(samples), 0.0);
            for (int b = 0; b < m_bands; ++b) {
                const float* row = cube.values.data() + b * pixels + y * samples;
                const float* below = cube.values.data() + b * pixels + (y + 1) % lines * samples;
                for (int64_t x = 0; x < samples; ++x) {
                    const double here = row[x], h = (row[x + 1 < samples ? x + 1 : 0] - here) / m_scale,
                                 v = (below[x] - here) / m_scale;
                    sum[static_cast<size_t>(x)] += h * h + v * v;
                }
            }
            for (int64_t x = 0; x < samples; ++x)
                a[static_cast<size_t>(y * samples + x)] =
                    static_cast<float>(1 / (1 + std::sqrt(sum[static_cast<size_t>(x)])));
        }
        return a;
    }

  private:
    static size_t size(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns); }

    /// Computes c = op(a) b, column-major. Sizes: c is rows x columns, op(a) is rows x inner, b is inner x
    /// columns.
    void multiply(bool transposed, int rows, int columns, int inner, const double* a, int lda,
                  const double* b, int ldb, double* c, int ldc) const {
        if (m_threads > 0) {
            blas::gemm(transposed ? blas::Op::transpose : blas::Op::none, blas::Op::none, rows, columns,
                       inner, 1.0, a, lda, b, ldb, 0.0, c, ldc);
            return;
        }
        for (int j = 0; j < columns; ++j) {
            double* to = c + size(j, ldc);
            std::fill_n(to, rows, 0.0);
            for (int l = 0; l < inner && !transposed; ++l)
                for (int i = 0; i < rows; ++i)
                    to[i] +=
                        a[size(l, lda) + static_cast<size_t>(i)] * b[size(j, ldb) + static_cast<size_t>(l)];
            for (int i = 0; i < rows && transposed; ++i)
                to[i] = std::inner_product(a + size(i, lda), a + size(i, lda) + inner, b + size(j, ldb), 0.0);
        }
    }

    /// Computes the kernel matrix h (count x J) = exp(-gamma |x_i - a_j|^2). x: bands x count.
    void kernel_of(const double* x, int count, double* h) const {
        const auto square = [&](const double* v) { return std::inner_product(v, v + m_bands, v, 0.0); };
        if (m_threads > 0)
            multiply(true, count, m_samples, m_bands, x, m_bands, m_anchor.data(), m_bands, h, count);
        std::vector<double> squares;
        for (int i = 0; i < count && m_threads > 0; ++i)
            squares.push_back(square(x + size(i, m_bands)));
        for (int j = 0; j < m_samples; ++j) {
            const double* a = m_anchor.data() + size(j, m_bands);
            const double of_anchor = m_threads > 0 ? square(a) : 0;
            for (int i = 0; i < count; ++i) {
                double& to = h[size(j, count) + static_cast<size_t>(i)];
                double distance = 0;
                if (m_threads > 0)
                    distance = std::max(0.0, squares[static_cast<size_t>(i)] + of_anchor - 2 * to);
                for (int b = 0; b < m_bands && m_threads == 0; ++b) {
                    const double d = x[size(i, m_bands) + static_cast<size_t>(b)] - a[b];
                    distance += d * d;
                }
                to = std::exp(-m_gamma * distance);
            }
        }
    }

    /// Decomposes R = H H' = U diag(values) U'. vectors: the columns of U, one after another.
    void decompose(std::vector<double>& vectors, std::vector<double>& values) const {
        std::vector<double> product(size(m_samples, m_samples)), r(size(m_d, m_d));
        multiply(true, m_samples, m_samples, m_samples, m_kernel.data(), m_samples, m_kernel.data(),
                 m_samples, product.data(), m_samples);
        r[0] = m_samples;
        for (int j = 0; j < m_samples; ++j) {
            const double* column = m_kernel.data() + size(j, m_samples);
            r[size(j + 1, m_d)] = r[static_cast<size_t>(j + 1)] =
                std::accumulate(column, column + m_samples, 0.0);
            std::copy_n(product.data() + size(j, m_samples), m_samples, r.data() + size(j + 1, m_d) + 1);
        }
        if (m_threads == 0) {
            auto eigen = math::eigen_symmetric(r, m_d);
            vectors = std::move(eigen.vectors);
            values = std::move(eigen.values);
            return;
        }
        vectors = std::move(r);
        values.resize(static_cast<size_t>(m_d));
        const int lwork = 1 + 6 * m_d + 2 * m_d * m_d, liwork = 3 + 5 * m_d;
        std::vector<double> work(static_cast<size_t>(lwork));
        std::vector<int> iwork(static_cast<size_t>(liwork));
        const int info =
            blas::eigen_lower(m_d, values.data(), work.data(), lwork, iwork.data(), liwork, vectors.data());
        if (info != 0) throw std::runtime_error("dsyevd: " + std::to_string(info));
    }

    void train(const LorsalOptions& o) {
        std::vector<double> u, values;
        decompose(u, values);
        const size_t all = size(m_d, m_m);
        std::vector<double> w(all), multiplier(all), right(all), turned(all), next(all),
            z(size(m_samples, m_m));
        m_v.assign(all, 0.0);
        double beta = o.beta;
        for (int it = 0; it < o.iterations; ++it, beta *= o.growth) {
            // The gradient of the negative log likelihood at w is H (P - Y).
            multiply(false, m_samples, m_m, m_samples, m_kernel.data(), m_samples, w.data() + 1, m_d,
                     z.data(), m_samples);
            residual(w, z);
            multiply(false, m_samples, m_m, m_samples, m_kernel.data(), m_samples, z.data(), m_samples,
                     right.data() + 1, m_d);
            for (int k = 0; k < m_m; ++k)
                right[size(k, m_d)] =
                    std::accumulate(z.data() + size(k, m_samples), z.data() + size(k + 1, m_samples), 0.0);
            for (size_t i = 0; i < all; ++i)
                right[i] = beta * (m_v[i] + multiplier[i]) - right[i];
            multiply(true, m_d, m_m, m_d, u.data(), m_d, right.data(), m_d, next.data(), m_d);
            solve(values, beta, next, turned);
            multiply(false, m_d, m_m, m_d, u.data(), m_d, turned.data(), m_d, w.data(), m_d);
            for (size_t i = 0; i < all; ++i) {
                const double t = w[i] - multiplier[i], limit = o.lambda_c / beta;
                m_v[i] = std::max(t - limit, 0.0) + std::min(t + limit, 0.0);
                multiplier[i] = (m_v[i] - t) / o.growth;
            }
        }
    }

    /// Replaces the logits in z by P - Y, without the last class.
    void residual(const std::vector<double>& w, std::vector<double>& z) const {
        for (int i = 0; i < m_samples; ++i) {
            const auto at = [&](int k) { return size(k, m_samples) + static_cast<size_t>(i); };
            double total = 1;
            for (int k = 0; k < m_m; ++k)
                total += z[at(k)] = std::exp(z[at(k)] + w[size(k, m_d)]);
            for (int k = 0; k < m_m; ++k)
                z[at(k)] = z[at(k)] / total - (m_label[static_cast<size_t>(i)] == k ? 1 : 0);
        }
    }

    /// Solves (B (x) diag(values) + beta I) turned = next + B (x) diag(values) turned_before, where B = 1/2
    /// (I - 1 1'/K) and (x) is the Kronecker product. `turned`: in: turned_before; out: the solution.
    void solve(const std::vector<double>& values, double beta, const std::vector<double>& next,
               std::vector<double>& turned) const {
        for (int i = 0; i < m_d; ++i) {
            const double s = std::max(values[static_cast<size_t>(i)], 0.0), along = s / (2.0 * (m_m + 1)),
                         across = s / 2;
            const auto at = [&](int k) { return size(k, m_d) + static_cast<size_t>(i); };
            double mean = 0, before = 0;
            for (int k = 0; k < m_m; ++k) {
                mean += next[at(k)] / m_m;
                before += turned[at(k)] / m_m;
            }
            for (int k = 0; k < m_m; ++k)
                turned[at(k)] = (mean + along * before) / (along + beta) +
                                (next[at(k)] - mean + across * (turned[at(k)] - before)) / (across + beta);
        }
    }

    const int m_threads, m_samples, m_d, m_m, m_bands;
    const double m_scale;
    const std::vector<int> m_label;
    const double m_gamma;
    /// Anchors (bands x J), kernel matrix (J x J), and sparse weights (d x M).
    std::vector<double> m_anchor, m_kernel, m_v;
};

} // namespace hsi::sahic::published
