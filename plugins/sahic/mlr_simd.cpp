// SPDX-License-Identifier: MIT
#include "sahic/mlr_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sahic/mlr_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::sahic {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DoubleTag = hn::ScalableTag<double>;
using V = hn::Vec<DoubleTag>;

void softmax_rows(int outputs, int width, const double* z, double* p) {
    const DoubleTag d;
    const auto lanes = static_cast<int>(hn::Lanes(d));
    for (int r = 0; r < width; r += lanes) {
        V top = hn::Zero(d);
        for (int o = 0; o < outputs; ++o)
            top = hn::Max(top, hn::LoadU(d, z + o * width + r));
        V sum = hn::Zero(d);
        for (int o = 0; o <= outputs; ++o) {
            const V logit = o < outputs ? hn::LoadU(d, z + o * width + r) : hn::Zero(d);
            const V e = hn::Exp(d, hn::Sub(logit, top));
            hn::StoreU(e, d, p + o * width + r);
            sum = hn::Add(sum, e);
        }
        const V factor = hn::Div(hn::Set(d, 1.0), sum);
        for (int o = 0; o <= outputs; ++o)
            hn::StoreU(hn::Mul(hn::LoadU(d, p + o * width + r), factor), d, p + o * width + r);
    }
}

} // namespace HWY_NAMESPACE
} // namespace hsi::sahic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::sahic {
HWY_EXPORT(softmax_rows);

void softmax(int outputs, int width, const double* logits, double* probabilities) {
    HWY_DYNAMIC_DISPATCH(softmax_rows)(outputs, width, logits, probabilities);
}

} // namespace hsi::sahic
#endif
