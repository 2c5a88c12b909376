// SPDX-License-Identifier: MIT
#include "compare/kernels_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace hsi::compare::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using F = hn::Rebind<float, D>;

/// n floats as doubles, zero beyond the run.
HWY_INLINE hn::Vec<D> load(const float* p, size_t left) {
    const D d;
    const F f;
    const size_t n = hn::Lanes(d);
    if (left >= n) return hn::PromoteTo(d, hn::LoadU(f, p));
    HWY_ALIGN float part[HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(part, p, left * sizeof(float));
    return hn::PromoteTo(d, hn::Load(f, part));
}

void First(const float* s, const float* t, ptrdiff_t stride, int bands, size_t pixels, RunSums& out) {
    const D d;
    const size_t n = hn::Lanes(d);
    for (size_t i = 0; i < pixels; i += n) {
        const auto zero = hn::Zero(d);
        hn::Store(zero, d, out.sum + i);
        hn::Store(zero, d, out.absolute + i);
        hn::Store(zero, d, out.square_s + i);
        hn::Store(zero, d, out.square_t + i);
        hn::Store(zero, d, out.difference + i);
        hn::Store(zero, d, out.largest + i);
    }
    for (int b = 0; b < bands; ++b) {
        const float* sb = s + b * stride;
        const float* tb = t + b * stride;
        for (size_t i = 0; i < pixels; i += n) {
            const auto sv = load(sb + i, pixels - i), tv = load(tb + i, pixels - i);
            const auto gap = hn::Sub(tv, sv);
            hn::Store(hn::Add(hn::Load(d, out.sum + i), sv), d, out.sum + i);
            hn::Store(hn::Add(hn::Load(d, out.absolute + i), hn::Abs(sv)), d, out.absolute + i);
            hn::Store(hn::Add(hn::Load(d, out.square_s + i), hn::Mul(sv, sv)), d, out.square_s + i);
            hn::Store(hn::Add(hn::Load(d, out.square_t + i), hn::Mul(tv, tv)), d, out.square_t + i);
            hn::Store(hn::Add(hn::Load(d, out.difference + i), hn::Mul(gap, gap)), d, out.difference + i);
            hn::Store(hn::Max(hn::Load(d, out.largest + i), hn::Abs(gap)), d, out.largest + i);
        }
    }
}

void Second(const float* s, const float* t, ptrdiff_t stride, int bands, size_t pixels, RunSums& out) {
    const D d;
    const size_t n = hn::Lanes(d);
    HWY_ALIGN double mean[run_pixels], scale_s[run_pixels], scale_t[run_pixels];
    const auto one = hn::Set(d, 1.0), count = hn::Set(d, static_cast<double>(bands));
    for (size_t i = 0; i < pixels; i += n) {
        hn::Store(hn::Div(hn::Load(d, out.sum + i), count), d, mean + i);
        hn::Store(hn::Div(one, hn::Sqrt(hn::Load(d, out.square_s + i))), d, scale_s + i);
        hn::Store(hn::Div(one, hn::Sqrt(hn::Load(d, out.square_t + i))), d, scale_t + i);
        const auto zero = hn::Zero(d);
        hn::Store(zero, d, out.centred + i);
        hn::Store(zero, d, out.minus + i);
        hn::Store(zero, d, out.plus + i);
    }
    for (int b = 0; b < bands; ++b) {
        const float* sb = s + b * stride;
        const float* tb = t + b * stride;
        for (size_t i = 0; i < pixels; i += n) {
            const auto sv = load(sb + i, pixels - i), tv = load(tb + i, pixels - i);
            const auto c = hn::Sub(sv, hn::Load(d, mean + i));
            const auto u = hn::Mul(sv, hn::Load(d, scale_s + i)), v = hn::Mul(tv, hn::Load(d, scale_t + i));
            const auto apart = hn::Sub(u, v), along = hn::Add(u, v);
            hn::Store(hn::Add(hn::Load(d, out.centred + i), hn::Mul(c, c)), d, out.centred + i);
            hn::Store(hn::Add(hn::Load(d, out.minus + i), hn::Mul(apart, apart)), d, out.minus + i);
            hn::Store(hn::Add(hn::Load(d, out.plus + i), hn::Mul(along, along)), d, out.plus + i);
        }
    }
}

void Correlate(const double* in, ptrdiff_t stride, const double* taps, size_t n, double* out) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        auto sum = hn::Zero(d);
        for (int k = 0; k < ssim_taps; ++k)
            sum = hn::Add(
                sum, hn::Mul(hn::Set(d, taps[k]), hn::LoadU(d, in + static_cast<ptrdiff_t>(i) + k * stride)));
        hn::StoreU(sum, d, out + i);
    }
    for (; i < n; ++i) {
        double sum = 0;
        for (int k = 0; k < ssim_taps; ++k)
            sum = sum + taps[k] * in[static_cast<ptrdiff_t>(i) + k * stride];
        out[i] = sum;
    }
}

} // namespace hsi::compare::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::compare {

HWY_EXPORT(First);
HWY_EXPORT(Second);
HWY_EXPORT(Correlate);

void first_sums(const float* s, const float* t, ptrdiff_t stride, int bands, size_t pixels, RunSums& out) {
    HWY_DYNAMIC_DISPATCH(First)(s, t, stride, bands, pixels, out);
}
void second_sums(const float* s, const float* t, ptrdiff_t stride, int bands, size_t pixels, RunSums& out) {
    HWY_DYNAMIC_DISPATCH(Second)(s, t, stride, bands, pixels, out);
}
void correlate(const double* in, ptrdiff_t stride, const double* taps, size_t n, double* out) {
    HWY_DYNAMIC_DISPATCH(Correlate)(in, stride, taps, n, out);
}

} // namespace hsi::compare
#endif
