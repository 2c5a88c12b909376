// SPDX-License-Identifier: MIT
#include "sahic/mrf_simd.h"

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

template <bool isotropic, bool all>
void edges(const EdgeRow& r) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const V two = hn::Set(d, 2.0f);
    for (int64_t i = 0; i < r.samples; i += lanes) {
        const V here = hn::LoadU(d, r.v4 + i);
        const V th = hn::Sub(hn::Sub(hn::LoadU(d, r.v4 + i + 1), here), hn::LoadU(d, r.dh_old + i));
        const V tv = hn::Sub(hn::Sub(hn::LoadU(d, r.v4_below + i), here), hn::LoadU(d, r.dv_old + i));
        const V threshold = hn::LoadU(d, r.threshold + i);
        V dh = hn::Neg(th), dv = hn::Neg(tv); // minus the projection on the ball
        if (!all) {
            dh = hn::Mul(hn::LoadU(d, r.h_counts + i), dh);
            dv = hn::Mul(hn::LoadU(d, r.v_counts + i), dv);
        }
        if (isotropic) {
            const V square = hn::MulAdd(dh, dh, hn::Mul(dv, dv));
            const auto outside = hn::Gt(square, hn::Mul(threshold, threshold));
            if (!hn::AllFalse(d, outside)) { // seldom: the threshold is many times a difference
                const V factor = hn::Div(threshold, hn::Sqrt(square));
                dh = hn::IfThenElse(outside, hn::Mul(dh, factor), dh);
                dv = hn::IfThenElse(outside, hn::Mul(dv, factor), dv);
            }
        } else {
            const V lowest = hn::Neg(threshold);
            dh = hn::Min(hn::Max(dh, lowest), threshold);
            dv = hn::Min(hn::Max(dv, lowest), threshold);
        }
        if (r.dh) {
            hn::StoreU(dh, d, r.dh + i);
            hn::StoreU(dv, d, r.dv + i);
        }
        hn::StoreU(hn::MulAdd(two, dh, th), d, r.wh + i);
        hn::StoreU(hn::MulAdd(two, dv, tv), d, r.wv + i);
    }
}

void edges_isotropic(const EdgeRow& row) { row.h_counts ? edges<true, false>(row) : edges<true, true>(row); }
void edges_anisotropic(const EdgeRow& row) {
    row.h_counts ? edges<false, false>(row) : edges<false, true>(row);
}

template <bool all>
void pixels_of(const PixelRow& r) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const V zero = hn::Zero(d), quarter = hn::Set(d, 0.25f), rest = hn::Set(d, 1.0f - r.mu),
            inverse = hn::Set(d, 1.0f / (1.0f + r.mu)), wanted = hn::Set(d, r.wanted), one = hn::Set(d, 1.0f);
    for (int64_t i = 0; i < r.samples; i += lanes) {
        const V q = hn::LoadU(d, r.q + i), v4 = hn::LoadU(d, r.v4 + i), p = hn::LoadU(d, r.p + i),
                d1 = hn::LoadU(d, r.d1 + i), t = hn::LoadU(d, r.t + i);
        const V d4 = hn::Add(hn::Sub(hn::LoadU(d, r.d4 + i), q), v4);
        V v1 = hn::MulAdd(rest, d1, p); // V1 + D1; no data term where invalid
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
        hn::StoreU(hn::Add(next, hn::Min(t, zero)), d, r.t + i); // q - D2, D2 = max(-t, 0)
        hn::StoreU(next, d, r.q + i);
        hn::StoreU(d4, d, r.d4 + i);
        hn::StoreU(hn::Add(next, hn::LoadU(d, r.sum + i)), d, r.sum + i);
        const V h = hn::Sub(hn::LoadU(d, r.wh + i - 1), hn::LoadU(d, r.wh + i));
        const V v = hn::Sub(hn::LoadU(d, r.wv_above + i), hn::LoadU(d, r.wv + i));
        hn::StoreU(hn::Add(hn::Sub(next, d4), hn::Add(h, v)), d, r.rhs + i);
    }
}

void pixels(const PixelRow& row) { row.valid ? pixels_of<false>(row) : pixels_of<true>(row); }

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

const MrfKernels& mrf_kernels() { return HWY_DYNAMIC_DISPATCH(field_kernels)(); }

} // namespace hsi::sahic
#endif
