// SPDX-License-Identifier: MIT
// Complex two-dimensional FFTs of any size in double precision, for programs as they were published. The
// published programs call libraries (MKL, FFTW, cuFFT) that the suite cannot use because of their licence or
// because there is no package. The FFT is self-sorting, in the order of the prime factors, and transforms
// eight lines or columns at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

namespace hsi::fft {

class Fft {
  public:
    /// Lines per group; data are [n][width], with separate arrays for re and im.
    static constexpr int width = 8;
    explicit Fft(int n) : m_n(n) {
        for (int rest = n, r = 2; rest > 1; ++r)
            for (; rest % r == 0; rest /= r)
                m_radices.push_back(r);
        for (int i = 0; i < n; ++i)
            m_root.push_back(std::polar(1.0, -2 * std::acos(-1.0) * i / n));
    }
    int size() const { return m_n; }

    /// Transforms forward with scale 1. For the backward transform, exchange re and im. other_re and
    /// other_im: buffers of the same size. The result may be in these buffers; re and im are set to the
    /// result.
    void run(double*& re, double*& im, double*& other_re, double*& other_im) const {
        int length = m_n, stride = 1;
        for (const int r : m_radices) {
            for (int p = 0; p < length / r; ++p)
                for (int q = 0; q < stride; ++q)
                    butterfly(r, length / r, stride, p, q, re, im, other_re, other_im);
            length /= r;
            stride *= r;
            std::swap(re, other_re);
            std::swap(im, other_im);
        }
    }

  private:
    /// Transforms r values at distances of a stride, with their twiddle factors. Sums and differences of a
    /// value and its mirror image need only real factors.
    void butterfly(int r, int m, int stride, int p, int q, const double* re, const double* im, double* to_re,
                   double* to_im) const {
        const auto from = [&](int j) { return width * (q + stride * (p + m * j)); };
        const auto to = [&](int k) { return width * (q + stride * (r * p + k)); };
        const int half = (r - 1) / 2, step = m_n / r, twiddle = stride * p;
        double sum[max_half][2][width], difference[max_half][2][width];
        for (int j = 1; j <= half; ++j)
            for (int w = 0; w < width; ++w) {
                const int a = from(j) + w, b = from(r - j) + w;
                sum[j - 1][0][w] = re[a] + re[b];
                sum[j - 1][1][w] = im[a] + im[b];
                difference[j - 1][0][w] = re[a] - re[b];
                difference[j - 1][1][w] = im[a] - im[b];
            }
        const double *first_re = re + from(0), *first_im = im + from(0);
        for (int k = 0; k <= r / 2; ++k) {
            double even_re[width], even_im[width], odd_re[width] = {}, odd_im[width] = {};
            // Sign of the middle value, which is its own mirror image if r is even.
            const double middle = k % 2 == 0 ? 1.0 : -1.0;
            const int centre = r % 2 == 0 ? from(r / 2) : 0;
            for (int w = 0; w < width; ++w) {
                even_re[w] = first_re[w] + (r % 2 == 0 ? middle * re[centre + w] : 0.0);
                even_im[w] = first_im[w] + (r % 2 == 0 ? middle * im[centre + w] : 0.0);
            }
            for (int j = 1; j <= half; ++j) {
                const std::complex<double> root = m_root[static_cast<size_t>(j * k % r * step)];
                const double c = root.real(), s = root.imag();
                for (int w = 0; w < width; ++w) {
                    even_re[w] += c * sum[j - 1][0][w];
                    even_im[w] += c * sum[j - 1][1][w];
                    odd_re[w] -= s * difference[j - 1][1][w];
                    odd_im[w] += s * difference[j - 1][0][w];
                }
            }
            put(to(k), m_root[static_cast<size_t>(twiddle * k % m_n)], 1, even_re, even_im, odd_re, odd_im,
                to_re, to_im);
            if (k > 0 && k < r - k)
                put(to(r - k), m_root[static_cast<size_t>(twiddle * (r - k) % m_n)], -1, even_re, even_im,
                    odd_re, odd_im, to_re, to_im);
        }
    }
    /// Stores (even + sign * odd) times the twiddle factor.
    static void put(int at, std::complex<double> by, double sign, const double* even_re,
                    const double* even_im, const double* odd_re, const double* odd_im, double* re,
                    double* im) {
        const double c = by.real(), s = by.imag();
        for (int w = 0; w < width; ++w) {
            const double a = even_re[w] + sign * odd_re[w], b = even_im[w] + sign * odd_im[w];
            re[at + w] = a * c - b * s;
            im[at + w] = a * s + b * c;
        }
    }
    static constexpr int max_half = 256; ///< allows prime factors up to 513
    int m_n;
    std::vector<int> m_radices;
    std::vector<std::complex<double>> m_root;
};

/// Transforms `count` planes of lines x samples in place, one after another, with scale 1. OpenMP distributes
/// the groups of lines or columns.
inline void transform(const Fft& along_lines, const Fft& down_columns, std::complex<double>* planes,
                      int64_t count, bool backward, int threads) {
    const int64_t samples = along_lines.size(), lines = down_columns.size();
    for (const bool columns : {false, true}) {
        const Fft& fft = columns ? down_columns : along_lines;
        const int64_t n = fft.size(), others = columns ? samples : lines,
                      groups = (others + Fft::width - 1) / Fft::width;
        const int64_t step = columns ? samples : 1, apart = columns ? 1 : samples;
#pragma omp parallel for num_threads(threads)
        for (int64_t unit = 0; unit < count * groups; ++unit) {
            std::vector<double> buffer(static_cast<size_t>(4 * Fft::width * n));
            double *re = buffer.data(), *im = re + Fft::width * n, *other = im + Fft::width * n,
                   *other_im = other + Fft::width * n;
            const int64_t first = unit % groups * Fft::width,
                          here = std::min<int64_t>(Fft::width, others - first);
            std::complex<double>* const data = planes + unit / groups * samples * lines + first * apart;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t w = 0; w < here; ++w) {
                    const auto v = data[i * step + w * apart];
                    re[i * Fft::width + w] = backward ? v.imag() : v.real();
                    im[i * Fft::width + w] = backward ? v.real() : v.imag();
                }
            fft.run(re, im, other, other_im);
            for (int64_t i = 0; i < n; ++i)
                for (int64_t w = 0; w < here; ++w) {
                    const double a = re[i * Fft::width + w], b = im[i * Fft::width + w];
                    data[i * step + w * apart] =
                        backward ? std::complex<double>(b, a) : std::complex<double>(a, b);
                }
        }
    }
}

} // namespace hsi::fft
