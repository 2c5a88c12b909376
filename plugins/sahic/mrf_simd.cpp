// SPDX-License-Identifier: MIT
#include "sahic/mrf_simd.h"

#include <cmath>
#include <numbers>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sahic/mrf_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::sahic {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

// Rows are padded to whole vectors: loops run over the end.

template <bool isotropic>
void edges(const EdgeRow& r) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const V tiny = hn::Set(d, 1e-30f), one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
    for (int64_t i = 0; i < r.samples; i += lanes) {
        const V here = hn::LoadU(d, r.v4 + i);
        const V th = hn::MulSub(hn::LoadU(d, r.h_exists + i), hn::Sub(hn::LoadU(d, r.v4 + i + 1), here),
                                hn::LoadU(d, r.dh_old + i));
        const V tv = hn::MulSub(hn::LoadU(d, r.v_exists + i), hn::Sub(hn::LoadU(d, r.v4_below + i), here),
                                hn::LoadU(d, r.dv_old + i));
        const V ch = hn::LoadU(d, r.h_counts + i), cv = hn::LoadU(d, r.v_counts + i);
        const V threshold = hn::LoadU(d, r.threshold + i);
        V dh, dv; // minus the projection on the ball
        if (isotropic) {
            const V ph = hn::Mul(ch, th), pv = hn::Mul(cv, tv);
            const V norm = hn::Sqrt(hn::MulAdd(ph, ph, hn::Mul(pv, pv)));
            const V factor = hn::Min(one, hn::Div(threshold, hn::Max(norm, tiny)));
            dh = hn::Neg(hn::Mul(ph, factor));
            dv = hn::Neg(hn::Mul(pv, factor));
        } else {
            const V lowest = hn::Neg(threshold);
            dh = hn::Neg(hn::Mul(ch, hn::Min(hn::Max(th, lowest), threshold)));
            dv = hn::Neg(hn::Mul(cv, hn::Min(hn::Max(tv, lowest), threshold)));
        }
        if (r.dh) {
            hn::StoreU(dh, d, r.dh + i);
            hn::StoreU(dv, d, r.dv + i);
        }
        hn::StoreU(hn::MulAdd(two, dh, th), d, r.wh + i);
        hn::StoreU(hn::MulAdd(two, dv, tv), d, r.wv + i);
    }
}

void edges_isotropic(const EdgeRow& row) { edges<true>(row); }
void edges_anisotropic(const EdgeRow& row) { edges<false>(row); }

void pixels(const PixelRow& r) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const V zero = hn::Zero(d), quarter = hn::Set(d, 0.25f), rest = hn::Set(d, 1.0f - r.mu),
            inverse = hn::Set(d, 1.0f / (1.0f + r.mu)), wanted = hn::Set(d, r.wanted), one = hn::Set(d, 1.0f);
    for (int64_t i = 0; i < r.samples; i += lanes) {
        const V q = hn::LoadU(d, r.q + i), v4 = hn::LoadU(d, r.v4 + i), p = hn::LoadU(d, r.p + i),
                d1 = hn::LoadU(d, r.d1 + i), t = hn::LoadU(d, r.t + i);
        const V d4 = hn::Add(hn::Sub(hn::LoadU(d, r.d4 + i), q), v4);
        const auto valid = hn::Gt(hn::LoadU(d, r.valid + i), zero);
        const V v1 = hn::IfThenElse(valid, hn::MulAdd(rest, d1, p), q); // V1 + D1; no data term where invalid
        V next = hn::Mul(quarter, hn::Add(hn::Add(v1, hn::Abs(t)),
                                          hn::Add(hn::Add(q, hn::LoadU(d, r.e + i)), hn::Add(v4, d4))));
        if (r.fixed) {
            const V fixed = hn::LoadU(d, r.fixed + i);
            next =
                hn::IfThenElse(hn::Ge(fixed, zero), hn::IfThenElse(hn::Eq(fixed, wanted), one, zero), next);
        }
        hn::StoreU(hn::IfThenElseZero(valid, hn::Mul(inverse, hn::Add(hn::Sub(d1, next), p))), d, r.d1 + i);
        hn::StoreU(hn::Add(next, hn::Min(t, zero)), d, r.t + i); // q - D2, D2 = max(-t, 0)
        hn::StoreU(next, d, r.q + i);
        hn::StoreU(d4, d, r.d4 + i);
        hn::StoreU(hn::Add(next, hn::LoadU(d, r.sum + i)), d, r.sum + i);
        const V h = hn::Sub(hn::LoadU(d, r.wh + i - 1), hn::LoadU(d, r.wh + i));
        const V v = hn::Sub(hn::LoadU(d, r.wv_above + i), hn::LoadU(d, r.wv + i));
        hn::StoreU(hn::Add(hn::Sub(next, d4), hn::Add(h, v)), d, r.rhs + i);
    }
}

void sums(int64_t samples, const float* sum, float inverse_classes, float* d3, float* e) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const V one = hn::Set(d, 1.0f), share = hn::Set(d, inverse_classes), two = hn::Set(d, 2.0f);
    for (int64_t i = 0; i < samples; i += lanes) {
        const V before = hn::LoadU(d, d3 + i);
        const V b = hn::MulAdd(hn::Sub(one, hn::LoadU(d, sum + i)), share, before);
        hn::StoreU(hn::MulSub(two, b, before), d, e + i);
        hn::StoreU(b, d, d3 + i);
    }
}

void interleave(const float* const rows[4], int64_t n, float* out) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < n; i += lanes)
        hn::StoreInterleaved4(hn::LoadU(d, rows[0] + i), hn::LoadU(d, rows[1] + i), hn::LoadU(d, rows[2] + i),
                              hn::LoadU(d, rows[3] + i), d, out + 4 * i);
}

void deinterleave(const float* in, int64_t n, float* const rows[4]) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < n; i += lanes) {
        V a, b, c, e;
        hn::LoadInterleaved4(d, in + 4 * i, a, b, c, e);
        hn::StoreU(a, d, rows[0] + i);
        hn::StoreU(b, d, rows[1] + i);
        hn::StoreU(c, d, rows[2] + i);
        hn::StoreU(e, d, rows[3] + i);
    }
}

template <class D>
struct Complex {
    hn::Vec<D> re, im;
};
template <class D>
HWY_INLINE Complex<D> operator+(const Complex<D>& a, const Complex<D>& b) {
    return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class D>
HWY_INLINE Complex<D> operator-(const Complex<D>& a, const Complex<D>& b) {
    return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}

/// y[q + s (r p + j)] = w^(p j) DFT_r(x[q + s (p + m k)], k)_j for all p and q.
template <int radix, class D>
void stage(D d, const FftPlan::Stage& st, const float* xr, const float* xi, float* yr, float* yi) {
    using C = Complex<D>;
    using W = hn::Vec<D>;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t row = 4 * st.s;    // floats that share a twiddle
    const int64_t leap = row * st.m; // from one input of a butterfly to the next
    for (int64_t p = 0; p < st.m; ++p) {
        const float *wr = st.re.data() + p * (radix - 1), *wi = st.im.data() + p * (radix - 1);
        const float *ar = xr + p * row, *ai = xi + p * row;
        float *br = yr + p * radix * row, *bi = yi + p * radix * row;
        for (int64_t i = 0; i < row; i += lanes) {
            const auto load = [&](int k) HWY_ATTR {
                return C{hn::LoadU(d, ar + k * leap + i), hn::LoadU(d, ai + k * leap + i)};
            };
            const auto store = [&](int j, const C& v) HWY_ATTR {
                if (j == 0) {
                    hn::StoreU(v.re, d, br + i);
                    hn::StoreU(v.im, d, bi + i);
                    return;
                }
                const W c = hn::Set(d, wr[j - 1]), s = hn::Set(d, wi[j - 1]);
                hn::StoreU(hn::NegMulAdd(v.im, s, hn::Mul(v.re, c)), d, br + j * row + i);
                hn::StoreU(hn::MulAdd(v.im, c, hn::Mul(v.re, s)), d, bi + j * row + i);
            };
            const auto minus_i = [&](const C& v) HWY_ATTR { return C{v.im, hn::Neg(v.re)}; };
            const auto times = [&](float f, const C& v) HWY_ATTR {
                const W c = hn::Set(d, f);
                return C{hn::Mul(c, v.re), hn::Mul(c, v.im)};
            };
            // a + f v: fused here, in so many words, and nowhere by the compiler
            const auto plus = [&](const C& a, float f, const C& v) HWY_ATTR {
                const W c = hn::Set(d, f);
                return C{hn::MulAdd(c, v.re, a.re), hn::MulAdd(c, v.im, a.im)};
            };
            if constexpr (radix == 2) {
                const C a = load(0), b = load(1);
                store(0, a + b);
                store(1, a - b);
            } else if constexpr (radix == 4) {
                const C a = load(0), b = load(1), c = load(2), e = load(3);
                const C s0 = a + c, s1 = a - c, s2 = b + e, s3 = minus_i(b - e);
                store(0, s0 + s2);
                store(1, s1 + s3);
                store(2, s0 - s2);
                store(3, s1 - s3);
            } else if constexpr (radix == 3) {
                const C a = load(0), b = load(1), c = load(2);
                const C sum = b + c, turn = minus_i(b - c), half = plus(a, -0.5f, sum);
                constexpr float sine = 0.86602540378443864676f;
                store(0, a + sum);
                store(1, plus(half, sine, turn));
                store(2, plus(half, -sine, turn));
            } else {
                const C a = load(0), b = load(1), c = load(2), e = load(3), f = load(4);
                const C s1 = b + f, s2 = c + e, d1 = minus_i(b - f), d2 = minus_i(c - e);
                constexpr float c1 = 0.30901699437494742410f, c2 = -0.80901699437494742410f;
                constexpr float n1 = 0.95105651629515357212f, n2 = 0.58778525229247312917f;
                const C m1 = plus(plus(a, c1, s1), c2, s2), m2 = plus(plus(a, c2, s1), c1, s2);
                const C t1 = plus(times(n1, d1), n2, d2), t2 = plus(times(n2, d1), -n1, d2);
                store(0, a + s1 + s2);
                store(1, m1 + t1);
                store(2, m2 + t2);
                store(3, m2 - t2);
                store(4, m1 - t1);
            }
        }
    }
}

template <class D>
void any_stage(D d, const FftPlan::Stage& st, const float* xr, const float* xi, float* yr, float* yi) {
    switch (st.radix) {
    case 2:
        return stage<2>(d, st, xr, xi, yr, yi);
    case 3:
        return stage<3>(d, st, xr, xi, yr, yi);
    case 4:
        return stage<4>(d, st, xr, xi, yr, yi);
    default:
        return stage<5>(d, st, xr, xi, yr, yi);
    }
}

void fft(const FftPlan& plan, float* re, float* im, float* other_re, float* other_im) {
    const Tag d;
    const hn::CappedTag<float, 4> narrow;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    float *xr = re, *xi = im, *yr = other_re, *yi = other_im;
    for (const auto& st : plan.stages) {
        if (4 * st.s % lanes == 0)
            any_stage(d, st, xr, xi, yr, yi);
        else
            any_stage(narrow, st, xr, xi, yr, yi);
        std::swap(xr, yr);
        std::swap(xi, yi);
    }
    if (xr == re) return;
    for (int64_t i = 0; i < 4 * plan.n; i += lanes) {
        hn::StoreU(hn::LoadU(d, xr + i), d, re + i);
        hn::StoreU(hn::LoadU(d, xi + i), d, im + i);
    }
}

void causal(int64_t count, const float* z, const float* before, const float* in, float* out) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < count; i += lanes)
        hn::StoreU(hn::MulAdd(hn::LoadU(d, z + i), hn::LoadU(d, before + i), hn::LoadU(d, in + i)), d,
                   out + i);
}

void anticausal(int64_t count, const float* z, const float* gain, float* state, float* inout) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < count; i += lanes) {
        const V s = hn::MulAdd(hn::LoadU(d, z + i), hn::LoadU(d, state + i), hn::LoadU(d, inout + i));
        hn::StoreU(s, d, state + i);
        hn::StoreU(hn::Mul(hn::LoadU(d, gain + i), s), d, inout + i);
    }
}

const MrfKernels& field_kernels() {
    static const MrfKernels table{
        edges_isotropic, edges_anisotropic, pixels, sums, interleave, deinterleave, fft, causal, anticausal};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::sahic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::sahic {
HWY_EXPORT(field_kernels);

const MrfKernels& mrf_kernels() { return HWY_DYNAMIC_DISPATCH(field_kernels)(); }

int64_t FftPlan::good_size(int64_t least) {
    for (int64_t m = (least + 15) / 16;; ++m) {
        int64_t rest = m;
        for (const int64_t factor : {2, 3, 5})
            while (rest % factor == 0)
                rest /= factor;
        if (rest == 1) return 16 * m;
    }
}

FftPlan::FftPlan(int64_t size) : n(size) {
    int64_t rest = size, s = 1;
    while (rest > 1) {
        Stage st;
        st.radix = rest % 4 == 0 ? 4 : rest % 2 == 0 ? 2 : rest % 3 == 0 ? 3 : 5;
        st.m = rest / st.radix;
        st.s = s;
        for (int64_t p = 0; p < st.m; ++p)
            for (int j = 1; j < st.radix; ++j) {
                const double angle =
                    -2.0 * std::numbers::pi * static_cast<double>(p * j) / static_cast<double>(rest);
                st.re.push_back(static_cast<float>(std::cos(angle)));
                st.im.push_back(static_cast<float>(std::sin(angle)));
            }
        s *= st.radix;
        rest = st.m;
        stages.push_back(std::move(st));
    }
}

} // namespace hsi::sahic
#endif
