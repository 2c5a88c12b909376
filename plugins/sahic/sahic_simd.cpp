// SPDX-License-Identifier: MIT
#include "sahic/sahic_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sahic/sahic_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/cache_control.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::sahic {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

// Rows are padded to whole vectors, so loops may run past the end.

/// Prefetches from memory. The processor's own prefetching stops at each page boundary (4 KiB) of each plane.
HWY_INLINE void soon(const float* at) { hwy::Prefetch(at + 256); }

/// Computes D5' from t5. D5' is minus the projection of t5 on the ball of the threshold.
template <bool isotropic>
HWY_INLINE void dual(V threshold, V& h, V& v) {
    const Tag d;
    h = hn::Neg(h);
    v = hn::Neg(v);
    if (isotropic) {
        const V square = hn::MulAdd(h, h, hn::Mul(v, v));
        const auto outside = hn::Gt(square, hn::Mul(threshold, threshold));
        // This case is rare, since the threshold is many times as large as most differences.
        if (!hn::AllFalse(d, outside)) {
            const V factor = hn::Div(threshold, hn::Sqrt(square));
            h = hn::IfThenElse(outside, hn::Mul(h, factor), h);
            v = hn::IfThenElse(outside, hn::Mul(v, factor), v);
        }
    } else {
        const V lowest = hn::Neg(threshold);
        h = hn::Min(hn::Max(h, lowest), threshold);
        v = hn::Min(hn::Max(v, lowest), threshold);
    }
}

template <bool isotropic, bool all>
void edges(const EdgeRow& r) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < r.samples; i += lanes) {
        const V threshold = hn::LoadU(d, r.threshold + i), here = hn::LoadU(d, r.v4 + i);
        const V ch = all ? threshold : hn::LoadU(d, r.h_counts + i),
                cv = all ? ch : hn::LoadU(d, r.v_counts + i);
        const auto duals = [&](V th, V tv, V& dh, V& dv) HWY_ATTR {
            dh = all ? th : hn::Mul(ch, th);
            dv = all ? tv : hn::Mul(cv, tv);
            dual<isotropic>(threshold, dh, dv);
        };
        soon(r.th_old + i);
        soon(r.tv_old + i);
        const V th_old = hn::LoadU(d, r.th_old + i), tv_old = hn::LoadU(d, r.tv_old + i);
        V dh_old, dv_old, dh, dv;
        duals(th_old, tv_old, dh_old, dv_old);
        const V th = hn::Sub(hn::Sub(hn::LoadU(d, r.v4 + i + 1), here), dh_old);
        const V tv = hn::Sub(hn::Sub(hn::LoadU(d, r.v4_below + i), here), dv_old);
        duals(th, tv, dh, dv);
        if (r.th) {
            hn::StoreU(th, d, r.th + i);
            hn::StoreU(tv, d, r.tv + i);
        }
        const V vh_old = hn::Add(th_old, dh_old), vv_old = hn::Add(tv_old, dv_old);
        const V vh = hn::Add(th, dh), vv = hn::Add(tv, dv);
        hn::StoreU(hn::Sub(vh_old, th), d, r.uh + i);
        hn::StoreU(hn::Sub(vv_old, tv), d, r.uv + i);
        hn::StoreU(hn::Sub(hn::Add(vh, vh), vh_old), d, r.sh + i);
        hn::StoreU(hn::Sub(hn::Add(vv, vv), vv_old), d, r.sv + i);
    }
}

void edges_isotropic(const EdgeRow& row) { row.h_counts ? edges<true, false>(row) : edges<true, true>(row); }
void edges_anisotropic(const EdgeRow& row) {
    row.h_counts ? edges<false, false>(row) : edges<false, true>(row);
}

template <bool all>
void pixels_of(const SiteRow& r) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const V zero = hn::Zero(d), quarter = hn::Set(d, 0.25f), rest = hn::Set(d, 1.0f - r.mu),
            inverse = hn::Set(d, 1.0f / (1.0f + r.mu)), wanted = hn::Set(d, r.wanted), one = hn::Set(d, 1.0f);
    for (int64_t i = 0; i < r.samples; i += lanes) {
        soon(r.q + i);
        soon(r.p + i);
        soon(r.d1 + i);
        soon(r.t + i);
        const V q = hn::LoadU(d, r.q + i), v4 = hn::LoadU(d, r.v4 + i), p = hn::LoadU(d, r.p + i),
                d1 = hn::LoadU(d, r.d1 + i), t = hn::LoadU(d, r.t + i);
        // Applies H' to the edges: the flow from the left and from above, minus the outgoing flow.
        const auto gathered = [&](const float* h, const float* v, const float* v_above) HWY_ATTR {
            return hn::Add(hn::Sub(hn::LoadU(d, h + i - 1), hn::LoadU(d, h + i)),
                           hn::Sub(hn::LoadU(d, v_above + i), hn::LoadU(d, v + i)));
        };
        const V d4 = gathered(r.uh, r.uv, r.uv_above);
        V v1 = hn::MulAdd(rest, d1, p); // V1 + D1; an invalid pixel has no data term
        if (!all) v1 = hn::IfThenElse(hn::Gt(hn::LoadU(d, r.valid + i), zero), v1, q);
        V next = hn::Mul(quarter, hn::Add(hn::Add(v1, hn::Abs(t)),
                                          hn::Add(hn::Add(q, hn::LoadU(d, r.e + i)), hn::Add(v4, d4))));
        if (r.fixed) {
            const V fixed = hn::LoadU(d, r.fixed + i);
            next =
                hn::IfThenElse(hn::Ge(fixed, zero), hn::IfThenElse(hn::Eq(fixed, wanted), one, zero), next);
        }
        V next_d1 = hn::Mul(inverse, hn::Add(hn::Sub(d1, next), p));
        if (!all) next_d1 = hn::IfThenElseZero(hn::Gt(hn::LoadU(d, r.valid + i), zero), next_d1);
        hn::StoreU(next_d1, d, r.d1 + i);
        hn::StoreU(hn::Add(next, hn::Min(t, zero)), d, r.t + i); // q - D2, where D2 = max(-t, 0)
        hn::StoreU(next, d, r.q + i);
        hn::StoreU(hn::Add(next, hn::LoadU(d, r.sum + i)), d, r.sum + i);
        hn::StoreU(hn::Add(next, gathered(r.sh, r.sv, r.sv_above)), d, r.rhs + i);
    }
}

void pixels(const SiteRow& row) { row.valid ? pixels_of<false>(row) : pixels_of<true>(row); }

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

void softmax_rows(int outputs, int width, const double* z, double* p) {
    const hn::ScalableTag<double> d;
    using W = hn::Vec<decltype(d)>;
    const auto lanes = static_cast<int>(hn::Lanes(d));
    for (int r = 0; r < width; r += lanes) {
        W top = hn::Zero(d);
        for (int o = 0; o < outputs; ++o)
            top = hn::Max(top, hn::LoadU(d, z + o * width + r));
        W sum = hn::Zero(d);
        for (int o = 0; o <= outputs; ++o) {
            const W logit = o < outputs ? hn::LoadU(d, z + o * width + r) : hn::Zero(d);
            const W e = hn::Exp(d, hn::Sub(logit, top));
            hn::StoreU(e, d, p + o * width + r);
            sum = hn::Add(sum, e);
        }
        const W factor = hn::Div(hn::Set(d, 1.0), sum);
        for (int o = 0; o <= outputs; ++o)
            hn::StoreU(hn::Mul(hn::LoadU(d, p + o * width + r), factor), d, p + o * width + r);
    }
}

const MrfKernels& field_kernels() {
    static const MrfKernels table{edges_isotropic, edges_anisotropic, pixels, sums};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::sahic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::sahic {
HWY_EXPORT(field_kernels);
HWY_EXPORT(softmax_rows);

const MrfKernels& mrf_kernels() { return HWY_DYNAMIC_DISPATCH(field_kernels)(); }

void softmax(int outputs, int width, const double* logits, double* probabilities) {
    HWY_DYNAMIC_DISPATCH(softmax_rows)(outputs, width, logits, probabilities);
}

} // namespace hsi::sahic
#endif
