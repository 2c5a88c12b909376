// SPDX-License-Identifier: MIT
#include "atdca/basis.h"

#include <cmath>

namespace hsi::atdca {
namespace {

constexpr double unit_roundoff = 0x1p-53;

constexpr int strands = 32; // partial sums of a dot product, one per lane of a GPU's warp

template <class T>
double dot(const double* a, const T* b, int n) {
    double part[strands] = {};
    int i = 0;
    for (; i + strands <= n; i += strands)
        for (int k = 0; k < strands; ++k)
            part[k] += a[i + k] * static_cast<double>(b[i + k]);
    for (int k = 0; i + k < n; ++k)
        part[k] += a[i + k] * static_cast<double>(b[i + k]);
    for (int half = strands / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k)
            part[k] += part[k + half];
    return part[0];
}

} // namespace

Basis::Basis(int bands) : m_bands(bands) { update_p(); }

void Basis::add(const float* spectrum) {
    std::vector<double> r(spectrum, spectrum + m_bands);
    orthogonalise(r);
    const double norm = std::sqrt(dot(r.data(), r.data(), m_bands));
    for (double v : r)
        m_q.push_back(v / norm);
    ++m_size;
    update_p();
}

void Basis::orthogonalise(std::vector<double>& r) const {
    std::vector<double> c(static_cast<size_t>(m_size));
    // A single round would leave components along q_k, as large as the rounding errors of the cancellation.
    for (int round = 0; round < 2; ++round) {
        for (int k = 0; k < m_size; ++k)
            c[static_cast<size_t>(k)] = dot(q(k), r.data(), m_bands);
        for (int k = 0; k < m_size; ++k)
            for (int b = 0; b < m_bands; ++b)
                r[static_cast<size_t>(b)] -= c[static_cast<size_t>(k)] * q(k)[b];
    }
}

void Basis::update_p() {
    m_p.assign(static_cast<size_t>(m_bands), 1.0);
    orthogonalise(m_p);
    m_p_squared = dot(m_p.data(), m_p.data(), m_bands);
}

Basis Basis::first(int size) const {
    Basis b(m_bands);
    b.m_size = size;
    b.m_q.assign(m_q.begin(), m_q.begin() + static_cast<ptrdiff_t>(size) * m_bands);
    b.update_p();
    return b;
}

double Basis::squared_norm(const float* x, int bands) {
    double sum = 0;
    for (int b = 0; b < bands; ++b) {
        const auto v = static_cast<double>(x[b]);
        sum += v * v;
    }
    return sum;
}

double Basis::squared_residual(const float* x) const {
    double s = squared_norm(x, m_bands);
    for (int k = 0; k < m_size; ++k) {
        const double c = dot(q(k), x, m_bands);
        s -= c * c;
    }
    return s;
}

double Basis::score(const float* x, const Options& options) const {
    if (m_size == 0 || options.method == Method::osp) return squared_residual(x);
    const double c = dot(m_p.data(), x, m_bands);
    return options.score == Score::sign ? c : std::fabs(c);
}

double osp_error(int bands, int targets, double squared_norm) {
    return 8.0 * (targets + 1) * (bands + 4) * unit_roundoff * squared_norm;
}

double gs_error(int bands, double p_squared, double squared_norm) {
    return 4.0 * (bands + 4) * unit_roundoff * std::sqrt(p_squared * squared_norm);
}

} // namespace hsi::atdca
