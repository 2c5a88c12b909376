// SPDX-License-Identifier: MIT
// Rows of destriping in SIMD registers: valid pixels, and the correction.
#include "destripe/rows.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "destripe/rows_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "stream/pixel_run-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::destripe {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void add_magnitudes(const float* row, size_t count, float* magnitude) {
    const auto pixels = static_cast<int64_t>(count);
    stream::HWY_NAMESPACE::add_magnitudes(row, 0, {0, pixels, 0, pixels}, magnitude);
}

void correct_row(const float* HWY_RESTRICT from, const double* HWY_RESTRICT factor,
                 const double* HWY_RESTRICT offset, size_t count, float* HWY_RESTRICT to) {
    constexpr double most = std::numeric_limits<float>::max();
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, hn::ScalableTag<double>> f;
    const auto missing = hn::Set(d, std::numeric_limits<double>::quiet_NaN());
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto product = hn::Mul(hn::LoadU(d, factor + i), hn::PromoteTo(d, hn::LoadU(f, from + i)));
        const auto v = hn::Add(product, hn::LoadU(d, offset + i));
        const auto held = hn::Le(hn::Abs(v), hn::Set(d, most));
        hn::StoreU(hn::DemoteTo(f, hn::IfThenElse(held, v, missing)), f, to + i);
    }
    for (; i < count; ++i) {
        const double v = factor[i] * static_cast<double>(from[i]) + offset[i];
        to[i] = std::fabs(v) <= most ? static_cast<float>(v) : std::numeric_limits<float>::quiet_NaN();
    }
}

} // namespace HWY_NAMESPACE
} // namespace hsi::destripe
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::destripe {

HWY_EXPORT(add_magnitudes);
HWY_EXPORT(correct_row);

void add_magnitudes(const float* row, size_t count, float* magnitude) {
    HWY_DYNAMIC_DISPATCH(add_magnitudes)(row, count, magnitude);
}

void correct_row(const float* from, const double* factor, const double* offset, size_t count, float* to) {
    HWY_DYNAMIC_DISPATCH(correct_row)(from, factor, offset, count, to);
}

} // namespace hsi::destripe
#endif
