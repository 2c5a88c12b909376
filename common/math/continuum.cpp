// SPDX-License-Identifier: MIT
#include "math/continuum.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi::math {

std::vector<size_t> rising_bands(const std::vector<double>& wavelengths_nm, double from, double to) {
    constexpr double same = 1e-6;
    std::vector<size_t> order;
    for (size_t b = 0; b < wavelengths_nm.size(); ++b)
        if (const double w = wavelengths_nm[b]; std::isfinite(w) && w >= from && w <= to) order.push_back(b);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return wavelengths_nm[a] < wavelengths_nm[b]; });
    std::vector<size_t> rising;
    for (size_t i = 0; i < order.size();) {
        size_t first = order[i], k = i + 1;
        for (; k < order.size() && wavelengths_nm[order[k]] - wavelengths_nm[order[i]] <= same; ++k)
            first = std::min(first, order[k]);
        rising.push_back(first);
        i = k;
    }
    return rising;
}

namespace {

/// The number of points in a block. The highest point of each block is examined first.
constexpr size_t block = 8;

/// Computes the upper hull of the points (x[i], v[i * stride]) that next() returns in their order, ending
/// with x.size(). Writes the indices of the vertices to `hull`, which has room for all points. \return the
/// number of vertices
template <class Next>
size_t chain(const std::vector<double>& at, const double* v, ptrdiff_t stride, size_t* hull, Next next) {
    const double* const x = at.data();
    const auto value = [=](size_t i) { return v[static_cast<ptrdiff_t>(i) * stride]; };
    size_t count = 0;
    for (size_t i = next(); i < at.size(); i = next()) {
        const double xi = x[i], vi = value(i);
        while (count >= 2) {
            const size_t a = hull[count - 2], b = hull[count - 1];
            const double va = value(a);
            if ((value(b) - va) * (xi - x[a]) > (vi - va) * (x[b] - x[a])) break;
            --count;
        }
        hull[count++] = i;
    }
    return count;
}

} // namespace

Continuum::Continuum(std::vector<double> x) : m_x(std::move(x)), m_hull(m_x.size()), m_points(m_x.size()) {
    if (m_x.size() < 2) throw Error("internal: a continuum of fewer than 2 bands");
    for (size_t i = 1; i < m_x.size(); ++i)
        if (!(m_x[i] > m_x[i - 1])) throw Error("internal: wavelengths of a continuum do not rise");
}

bool Continuum::remove(const double* values, double* ratios) { return remove(values, ratios, 1); }

size_t Continuum::likely_points(const double* v) {
    const size_t n = m_x.size();
    // The candidates are the highest point of every block, and both ends.
    size_t points = 0;
    double highest = v[0];
    m_points[points++] = 0;
    for (size_t first = 1; first + 1 < n; first += block) {
        const size_t end = std::min(first + block, n - 1);
        size_t top = first;
        double most = v[first];
        for (size_t i = first + 1; i < end; ++i) {
            top = v[i] > most ? i : top;
            most = v[i] > most ? v[i] : most;
        }
        highest = std::max(highest, most);
        m_points[points++] = top;
    }
    m_points[points++] = n - 1;
    size_t at = 0;
    const size_t count = chain(m_x, v, 1, m_hull.data(), [&] { return at < points ? m_points[at++] : n; });
    // A point that is below the hull by more than a rounding error is not a vertex.
    const double margin = 1e-12 * std::max(highest, v[n - 1]);
    points = 0;
    for (size_t k = 1; k < count; ++k) {
        const size_t a = m_hull[k - 1], b = m_hull[k];
        const double va = v[a], xa = m_x[a], slope = (v[b] - va) / (m_x[b] - xa), least = va - margin;
        m_points[points++] = a;
        for (size_t i = a + 1; i < b; ++i) {
            m_points[points] = i;
            points += v[i] >= least + slope * (m_x[i] - xa) ? 1 : 0;
        }
    }
    m_points[points++] = n - 1;
    return points;
}

bool Continuum::remove(const double* values, double* ratios, ptrdiff_t stride) {
    const size_t n = m_x.size();
    const auto v = [=](size_t i) { return values[static_cast<ptrdiff_t>(i) * stride]; };
    // The hull is concave: if both ends are positive, all of it is positive.
    if (!(v(0) > 0 && v(n - 1) > 0)) return false;
    const double* const x = m_x.data();
    size_t* const hull = m_hull.data();
    size_t count = 0, at = 0;
    if (stride == 1 && n >= 4 * block) {
        const size_t points = likely_points(values);
        count = chain(m_x, values, stride, hull, [&] { return at < points ? m_points[at++] : n; });
    } else {
        count = chain(m_x, values, stride, hull, [&] { return at++; });
    }
    for (size_t k = 1; k < count; ++k) {
        const size_t a = hull[k - 1], b = hull[k];
        const double va = v(a), slope = (v(b) - va) / (x[b] - x[a]);
        for (size_t i = a + 1; i < b; ++i) {
            const double ratio = v(i) / (va + slope * (x[i] - x[a]));
            ratios[static_cast<ptrdiff_t>(i) * stride] = std::min(ratio, 1.0);
        }
        // The ratio at `a` is set only now: `ratios` may be `values`, and this segment needed the value at
        // `a`.
        if (k > 1) ratios[static_cast<ptrdiff_t>(a) * stride] = 1;
    }
    ratios[0] = 1;
    ratios[static_cast<ptrdiff_t>(n - 1) * stride] = 1;
    return true;
}

} // namespace hsi::math
