// SPDX-License-Identifier: MIT
// The volume and geometric kernels of BRDF models.
#include "math/elementary.h"
#include "normalise/normalise.h"

#include <algorithm>
#include <cmath>

namespace hsi::normalise {
namespace {

constexpr double pi = 3.14159265358979323846;

double cut(double v) { return std::clamp(v, -1.0, 1.0); }

double volume_kernel(Volume kind, double cos_s, double sin_s, double cos_v, double sin_v, double cos_w) {
    const double cos_x = cut(cos_s * cos_v + sin_s * sin_v * cos_w);
    const double f = (pi / 2 - math::acos(cos_x)) * cos_x + std::sqrt(1 - cos_x * cos_x);
    return kind == Volume::ross_thick ? f / (cos_s + cos_v) - pi / 4 : f / (cos_s * cos_v) - pi / 2;
}

double geometric_kernel(const Method& m, double tan_s, double tan_v, double cos_w, double sin_w) {
    // b_r transforms the angles so that crowns become spheres.
    const double s = m.b_r * tan_s, v = m.b_r * tan_v;
    const double sec_s = std::sqrt(1 + s * s), sec_v = std::sqrt(1 + v * v), sum = sec_s + sec_v;
    const double d2 = s * s + v * v - 2 * s * v * cos_w, cross = s * v * sin_w;
    const double cos_t = cut(m.h_b * std::sqrt(std::max(d2, 0.0) + cross * cross) / sum);
    const double overlap = (math::acos(cos_t) - std::sqrt(1 - cos_t * cos_t) * cos_t) * sum / pi;
    const double e = 1 + 1 / (sec_s * sec_v) + s / sec_s * (v / sec_v) * cos_w;
    switch (m.geometric) {
    case Geometric::li_sparse:
        return overlap - sum + e * sec_v / 2;
    case Geometric::li_sparse_r:
        return overlap - sum + e * sec_s * sec_v / 2;
    case Geometric::li_dense:
        return e * sec_v / (sum - overlap) - 2;
    case Geometric::li_dense_r:
        break;
    }
    return e * sec_s * sec_v / (sum - overlap) - 2;
}

} // namespace

std::array<double, 2> kernels(const Method& m, double sun, double view, double azimuth) {
    const double cos_s = math::cos(sun), sin_s = math::sin(sun), cos_v = math::cos(view),
                 sin_v = math::sin(view), cos_w = math::cos(azimuth), sin_w = math::sin(azimuth);
    return {volume_kernel(m.volume, cos_s, sin_s, cos_v, sin_v, cos_w),
            geometric_kernel(m, sin_s / cos_s, sin_v / cos_v, cos_w, sin_w)};
}

const char* name_of(Topography v) {
    static constexpr const char* names[] = {"none", "cosine", "c", "scs", "scs+c", "minnaert", "minnaert-g"};
    return names[static_cast<size_t>(v)];
}
const char* name_of(Brdf v) {
    static constexpr const char* names[] = {"none", "universal", "flex"};
    return names[static_cast<size_t>(v)];
}
const char* name_of(Volume v) { return v == Volume::ross_thick ? "ross-thick" : "ross-thin"; }
const char* name_of(Geometric v) {
    static constexpr const char* names[] = {"li-sparse", "li-sparse-r", "li-dense", "li-dense-r"};
    return names[static_cast<size_t>(v)];
}

bool Method::needs(Angle angle) const {
    switch (angle) {
    case view::solar_zenith:
    case view::solar_azimuth:
        return true;
    case view::slope:
    case view::aspect:
        return topography != Topography::none;
    default:
        return brdf != Brdf::none;
    }
}

} // namespace hsi::normalise
