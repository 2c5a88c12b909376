// SPDX-License-Identifier: MIT
#include "compare/kernels_simd.h"

#include "stream/value_parts.h"

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

/// Loads a vector of floats as doubles. Only `left` floats are left in the run; zeros follow them.
HWY_INLINE hn::Vec<D> load(const float* p, size_t left) {
    const D d;
    const F f;
    const size_t n = hn::Lanes(d);
    if (left >= n) return hn::PromoteTo(d, hn::LoadU(f, p));
    HWY_ALIGN float part[HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(part, p, left * sizeof(float));
    return hn::PromoteTo(d, hn::Load(f, part));
}

/// A value that is divided into parts. Computes the sum of the parts, and the difference from another value.
template <int Parts>
struct Value {
    hn::Vec<D> part[Parts];
    HWY_INLINE Value(const float* p, ptrdiff_t stride, size_t left) {
        for (int k = 0; k < Parts; ++k)
            part[k] = load(p + k * stride, left);
    }
    HWY_INLINE hn::Vec<D> sum() const {
        if constexpr (Parts == 1)
            return part[0];
        else
            return hn::Add(part[0], hn::Add(part[1], part[2]));
    }
    HWY_INLINE hn::Vec<D> minus(const Value& o) const {
        if constexpr (Parts == 1)
            return hn::Sub(part[0], o.part[0]);
        else
            return hn::Add(hn::Sub(part[0], o.part[0]),
                           hn::Add(hn::Sub(part[1], o.part[1]), hn::Sub(part[2], o.part[2])));
    }
};

template <int Parts>
void FirstOf(const float* s, const float* t, ptrdiff_t stride, int bands, size_t pixels, RunSums& out) {
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
        const float* sb = s + b * Parts * stride;
        const float* tb = t + b * Parts * stride;
        for (size_t i = 0; i < pixels; i += n) {
            const Value<Parts> first(sb + i, stride, pixels - i), second(tb + i, stride, pixels - i);
            const auto sv = first.sum(), tv = second.sum(), gap = second.minus(first);
            hn::Store(hn::Add(hn::Load(d, out.sum + i), sv), d, out.sum + i);
            hn::Store(hn::Add(hn::Load(d, out.absolute + i), hn::Abs(sv)), d, out.absolute + i);
            hn::Store(hn::Add(hn::Load(d, out.square_s + i), hn::Mul(sv, sv)), d, out.square_s + i);
            hn::Store(hn::Add(hn::Load(d, out.square_t + i), hn::Mul(tv, tv)), d, out.square_t + i);
            hn::Store(hn::Add(hn::Load(d, out.difference + i), hn::Mul(gap, gap)), d, out.difference + i);
            hn::Store(hn::Max(hn::Load(d, out.largest + i), hn::Abs(gap)), d, out.largest + i);
        }
    }
}

template <int Parts>
void SecondOf(const float* s, const float* t, ptrdiff_t stride, int bands, size_t pixels, RunSums& out) {
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
        const float* sb = s + b * Parts * stride;
        const float* tb = t + b * Parts * stride;
        for (size_t i = 0; i < pixels; i += n) {
            const auto sv = Value<Parts>(sb + i, stride, pixels - i).sum();
            const auto tv = Value<Parts>(tb + i, stride, pixels - i).sum();
            const auto c = hn::Sub(sv, hn::Load(d, mean + i));
            const auto u = hn::Mul(sv, hn::Load(d, scale_s + i)), v = hn::Mul(tv, hn::Load(d, scale_t + i));
            const auto apart = hn::Sub(u, v), along = hn::Add(u, v);
            hn::Store(hn::Add(hn::Load(d, out.centred + i), hn::Mul(c, c)), d, out.centred + i);
            hn::Store(hn::Add(hn::Load(d, out.minus + i), hn::Mul(apart, apart)), d, out.minus + i);
            hn::Store(hn::Add(hn::Load(d, out.plus + i), hn::Mul(along, along)), d, out.plus + i);
        }
    }
}

/// Vectors of at most this many lanes. Pixel i of a run is added to sum i % 8, then the sums are added in
/// order.
constexpr size_t band_sums = 8;
using S = hn::CappedTag<double, band_sums>;

template <int Parts>
void BandSquaresOf(const float* s, const float* t, ptrdiff_t stride, int bands, size_t pixels,
                   const double* weight, double* out) {
    const S d;
    const size_t n = hn::Lanes(d);
    const auto part = [&](const float* p, size_t left) {
        const hn::Rebind<float, S> f;
        if (left >= n) return hn::PromoteTo(d, hn::LoadU(f, p));
        HWY_ALIGN float rest[band_sums] = {};
        std::memcpy(rest, p, left * sizeof(float));
        return hn::PromoteTo(d, hn::Load(f, rest));
    };
    for (int b = 0; b < bands; ++b) {
        const float* sb = s + b * Parts * stride;
        const float* tb = t + b * Parts * stride;
        HWY_ALIGN double sums[band_sums] = {};
        for (size_t i = 0; i < pixels; i += n) {
            auto gap = hn::Sub(part(tb + i, pixels - i), part(sb + i, pixels - i));
            if constexpr (Parts > 1)
                gap = hn::Add(gap, hn::Add(hn::Sub(part(tb + stride + i, pixels - i),
                                                   part(sb + stride + i, pixels - i)),
                                           hn::Sub(part(tb + 2 * stride + i, pixels - i),
                                                   part(sb + 2 * stride + i, pixels - i))));
            const auto used = hn::Ne(hn::LoadU(d, weight + i), hn::Zero(d));
            double* const to = sums + i % band_sums;
            hn::Store(hn::Add(hn::Load(d, to), hn::IfThenElseZero(used, hn::Mul(gap, gap))), d, to);
        }
        out[b] = 0;
        for (const double sum : sums)
            out[b] += sum;
    }
}

void BandSquares(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
                 const double* weight, double* out) {
    (parts == 1 ? BandSquaresOf<1> : BandSquaresOf<stream::value_parts>)(s, t, stride, bands, pixels, weight,
                                                                         out);
}

void First(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
           RunSums& out) {
    (parts == 1 ? FirstOf<1> : FirstOf<stream::value_parts>)(s, t, stride, bands, pixels, out);
}

void Second(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
            RunSums& out) {
    (parts == 1 ? SecondOf<1> : SecondOf<stream::value_parts>)(s, t, stride, bands, pixels, out);
}

void Correlate(const double* HWY_RESTRICT in, ptrdiff_t stride, const double* taps, size_t n,
               double* HWY_RESTRICT out) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const double* at = in + i;
        auto sum = hn::Mul(hn::Set(d, taps[ssim_radius]), hn::LoadU(d, at + ssim_radius * stride));
        for (int k = 0; k < ssim_radius; ++k) {
            const auto both =
                hn::Add(hn::LoadU(d, at + k * stride), hn::LoadU(d, at + (2 * ssim_radius - k) * stride));
            sum = hn::Add(sum, hn::Mul(hn::Set(d, taps[k]), both));
        }
        hn::StoreU(sum, d, out + i);
    }
    for (; i < n; ++i) {
        const double* at = in + i;
        double sum = taps[ssim_radius] * at[ssim_radius * stride];
        for (int k = 0; k < ssim_radius; ++k)
            sum = sum + taps[k] * (at[k * stride] + at[(2 * ssim_radius - k) * stride]);
        out[i] = sum;
    }
}

void SsimValues(const double* const planes[6], double middle, double c1, double c2, size_t n,
                double* HWY_RESTRICT out) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    HWY_ALIGN double part[HWY_MAX_BYTES / sizeof(double)];
    const auto two = hn::Set(d, 2.0), zero = hn::Zero(d), one = hn::Set(d, 1.0);
    const auto k1 = hn::Set(d, c1), k2 = hn::Set(d, c2), shift = hn::Set(d, middle);
    for (size_t i = 0; i < n; i += lanes) {
        const size_t count = n - i < lanes ? n - i : lanes;
        const auto get = [&](int p) {
            if (count == lanes) return hn::LoadU(d, planes[p] + i);
            std::memcpy(part, planes[p] + i, count * sizeof(double));
            for (size_t k = count; k < lanes; ++k)
                part[k] = 1;
            return hn::Load(d, part);
        };
        const auto share = hn::Div(one, get(0));
        const auto ds = hn::Mul(get(1), share), dt = hn::Mul(get(2), share);
        const auto vs = hn::Max(zero, hn::Sub(hn::Mul(get(3), share), hn::Mul(ds, ds)));
        const auto vt = hn::Max(zero, hn::Sub(hn::Mul(get(4), share), hn::Mul(dt, dt)));
        const auto covariance = hn::Sub(hn::Mul(get(5), share), hn::Mul(ds, dt));
        const auto ms = hn::Add(ds, shift), mt = hn::Add(dt, shift);
        const auto above =
            hn::Mul(hn::Add(hn::Mul(two, hn::Mul(ms, mt)), k1), hn::Add(hn::Mul(two, covariance), k2));
        const auto below =
            hn::Mul(hn::Add(hn::Add(hn::Mul(ms, ms), hn::Mul(mt, mt)), k1), hn::Add(hn::Add(vs, vt), k2));
        // 0 / 0: both images are flat and equal, so their ssim is 1.
        const auto value = hn::IfThenElse(hn::Eq(below, zero), one, hn::Div(above, below));
        if (count == lanes) {
            hn::StoreU(value, d, out + i);
        } else {
            hn::Store(value, d, part);
            std::memcpy(out + i, part, count * sizeof(double));
        }
    }
}

} // namespace hsi::compare::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::compare {

HWY_EXPORT(First);
HWY_EXPORT(Second);
HWY_EXPORT(BandSquares);
HWY_EXPORT(Correlate);
HWY_EXPORT(SsimValues);

void first_sums(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
                RunSums& out) {
    HWY_DYNAMIC_DISPATCH(First)(s, t, stride, parts, bands, pixels, out);
}
void second_sums(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
                 RunSums& out) {
    HWY_DYNAMIC_DISPATCH(Second)(s, t, stride, parts, bands, pixels, out);
}
void band_squares(const float* s, const float* t, ptrdiff_t stride, int parts, int bands, size_t pixels,
                  const double* weight, double* out) {
    HWY_DYNAMIC_DISPATCH(BandSquares)(s, t, stride, parts, bands, pixels, weight, out);
}
void correlate(const double* in, ptrdiff_t stride, const double* taps, size_t n, double* out) {
    HWY_DYNAMIC_DISPATCH(Correlate)(in, stride, taps, n, out);
}
void ssim_values(const double* const planes[6], double middle, double c1, double c2, size_t n, double* out) {
    HWY_DYNAMIC_DISPATCH(SsimValues)(planes, middle, c1, c2, n, out);
}

} // namespace hsi::compare
#endif
