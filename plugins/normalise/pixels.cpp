// SPDX-License-Identifier: MIT
#include "normalise/pixels.h"

#include "math/elementary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::normalise {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr double fill = -9999;

double known(double v) { return std::isfinite(v) && v != fill ? v : unknown; }

} // namespace

void Pixels::Cosines::take(double degrees) {
    if (degrees == of) return;
    of = degrees;
    cosine = math::cos(degrees * degree);
    sine = math::sin(degrees * degree);
}

void Pixels::resize(size_t n) {
    state.assign(n, 0);
    if (ndvi.size() == n) return;
    for (auto* list : {&ndvi, &zenith, &tilt, &cos_i, &a, &factor[0], &factor[1]})
        list->resize(n);
    cell.resize(n);
    volume.resize(n);
    geometric.resize(n);
}

double value_of(const AngleInput& input, const CubeView<float>& in, int64_t y, int64_t x, int planes) {
    if (input.band < 0) return input.value ? known(*input.value) * input.factor + input.plus : unknown;
    const double v = known(static_cast<double>(in.row(planes + input.band, y)[x]));
    if (input.table.empty()) return v * input.factor + input.plus;
    if (!(v >= 0 && v < static_cast<double>(input.table.size()))) return unknown;
    return input.table[static_cast<size_t>(v)].value_or(unknown) * input.factor + input.plus;
}

void Pixels::look(const CubeView<float>& in, int64_t y, bool want_kernels) {
    const auto n = static_cast<size_t>(in.samples);
    resize(n);
    m_row.start(n);
    for (int b = 0; b < m_task.shape.bands; ++b)
        m_row.look(in.row(b, y));
    m_row.judge();
    for (size_t i = 0; i < n; ++i)
        if (m_row.is_valid(i)) look_at(in, y, i, want_kernels);
}

void Pixels::look_at(const CubeView<float>& in, int64_t y, size_t i, bool want_kernels) {
    state[i] = is_valid;
    double v[view::angle_count];
    for (int k = 0; k < view::angle_count; ++k)
        v[k] = m_method.needs(static_cast<Angle>(k)) ? value_of(m_task.angles[static_cast<size_t>(k)], in, y,
                                                                static_cast<int64_t>(i), m_task.shape.bands)
                                                     : 0;
    if (std::isnan(v[view::aspect]) && v[view::slope] == 0) v[view::aspect] = 0;
    for (const Angle k : {view::solar_zenith, view::sensor_zenith, view::slope})
        if (!(v[k] >= 0 && v[k] < 90)) return;
    for (const Angle k : {view::solar_azimuth, view::sensor_azimuth, view::aspect})
        if (std::isnan(v[k])) return;
    state[i] |= is_usable;
    zenith[i] = v[view::solar_zenith];
    tilt[i] = v[view::slope];
    const auto value = [&](int b) {
        return static_cast<double>(scaling_of(m_task, b).value(in.row(b, y)[static_cast<ptrdiff_t>(i)]));
    };
    const double n = value(m_task.near_infrared), s = value(m_task.red);
    ndvi[i] = n + s > 0 ? (n - s) / (n + s) : -1e9;
    if (const double k = std::ceil(100 * ndvi[i]); k > m_method.ndvi_min && k <= m_method.ndvi_max) {
        state[i] |= is_in_range;
        cell[i] = static_cast<int>(k) - m_method.ndvi_min - 1;
    }
    m_sun.take(v[view::solar_zenith]);
    light(i, v);
    if (want_kernels && m_method.brdf != Brdf::none) {
        const auto k = kernels(m_method, v[view::solar_zenith] * degree, v[view::sensor_zenith] * degree,
                               (v[view::sensor_azimuth] - v[view::solar_azimuth]) * degree);
        volume[i] = static_cast<float>(k[0]);
        geometric[i] = static_cast<float>(k[1]);
    }
}

void Pixels::light(size_t i, const double (&v)[view::angle_count]) {
    cos_i[i] = a[i] = factor[0][i] = factor[1][i] = 1;
    if (m_method.topography == Topography::none) {
        state[i] |= is_lit;
        return;
    }
    m_slope.take(v[view::slope]);
    m_azimuth.take(v[view::solar_azimuth] - v[view::aspect]);
    cos_i[i] = m_sun.cosine * m_slope.cosine + m_sun.sine * m_slope.sine * m_azimuth.cosine;
    if (cos_i[i] >= m_method.min_cos_i) state[i] |= is_lit;
    const double level = m_sun.cosine, plane = m_slope.cosine * m_sun.cosine;
    switch (m_method.topography) {
    case Topography::c:
        a[i] = level;
        break;
    case Topography::scs_c:
        a[i] = plane;
        break;
    case Topography::cosine:
        factor[0][i] = factor[1][i] = level / cos_i[i];
        break;
    case Topography::scs:
        factor[0][i] = factor[1][i] = plane / cos_i[i];
        break;
    default:
        limit(i);
    }
}

/// Computes the factors of Minnaert's method with its limit G. The factors differ between bands from 720 nm
/// on and bands below.
void Pixels::limit(size_t i) {
    const double t = zenith[i] + (zenith[i] < 45 ? 20 : zenith[i] <= 55 ? 15 : 10);
    const double base = m_method.topography == Topography::minnaert ? m_sun.cosine / cos_i[i] : 1;
    factor[0][i] = factor[1][i] = base;
    if (t >= 90) return;
    m_threshold.take(t);
    if (cos_i[i] >= m_threshold.cosine) return;
    const double share = std::max(cos_i[i], 0.0) / m_threshold.cosine;
    const bool green = ndvi[i] > 0.2;
    const auto cut = [&](double e) { return std::clamp(math::pow(share, e), 0.25, 1.0); };
    factor[0][i] = base * cut(green ? 1.0 / 3 : 0.5);
    factor[1][i] = base * cut(green ? 0.75 : 0.5);
}

} // namespace hsi::normalise
