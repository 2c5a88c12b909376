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
// 4 anchors x 3 registers of pixels: twelve sums hide the latency of multiply-add and, with three pixel
// registers and one broadcast, fit the 16 registers of AVX2.
constexpr int registers = 3;

void logits(const MlrPanels& m, const double* x, const double* x2, double* out) {
    const DoubleTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t width = registers * lanes;
    const V gamma = hn::Set(d, -m.gamma), minus_two = hn::Set(d, -2.0), zero = hn::Zero(d);
    HWY_ALIGN double kernel[group_size * registers * HWY_MAX_BYTES / sizeof(double)];
    for (int o = 0; o < m.outputs; ++o)
        for (int64_t r = 0; r < width; r += lanes)
            hn::StoreU(hn::Set(d, m.constant[static_cast<size_t>(o)]), d, out + o * width + r);
    for (int64_t g = 0; g < m.groups; ++g) {
        const double* HWY_RESTRICT s = m.anchors.data() + g * m.features * group_size;
        const double* HWY_RESTRICT xf = x;
        V a0 = zero, a1 = zero, a2 = zero, b0 = zero, b1 = zero, b2 = zero;
        V c0 = zero, c1 = zero, c2 = zero, e0 = zero, e1 = zero, e2 = zero;
        for (int f = 0; f < m.features; ++f, s += group_size, xf += width) {
            const V p0 = hn::LoadU(d, xf), p1 = hn::LoadU(d, xf + lanes), p2 = hn::LoadU(d, xf + 2 * lanes);
            V v = hn::Set(d, s[0]);
            a0 = hn::MulAdd(p0, v, a0);
            a1 = hn::MulAdd(p1, v, a1);
            a2 = hn::MulAdd(p2, v, a2);
            v = hn::Set(d, s[1]);
            b0 = hn::MulAdd(p0, v, b0);
            b1 = hn::MulAdd(p1, v, b1);
            b2 = hn::MulAdd(p2, v, b2);
            v = hn::Set(d, s[2]);
            c0 = hn::MulAdd(p0, v, c0);
            c1 = hn::MulAdd(p1, v, c1);
            c2 = hn::MulAdd(p2, v, c2);
            v = hn::Set(d, s[3]);
            e0 = hn::MulAdd(p0, v, e0);
            e1 = hn::MulAdd(p1, v, e1);
            e2 = hn::MulAdd(p2, v, e2);
        }
        const double* square = m.squares.data() + g * group_size;
        const auto finish = [&](int k, V dot0, V dot1, V dot2) HWY_ATTR {
            const V s2 = hn::Set(d, square[k]);
            const auto one = [&](const double* norm, V dot, double* at) HWY_ATTR {
                const V distance = hn::Max(zero, hn::MulAdd(minus_two, dot, hn::Add(hn::LoadU(d, norm), s2)));
                hn::Store(hn::Exp(d, hn::Mul(gamma, distance)), d, at);
            };
            double* to = kernel + k * width;
            one(x2, dot0, to);
            one(x2 + lanes, dot1, to + lanes);
            one(x2 + 2 * lanes, dot2, to + 2 * lanes);
        };
        finish(0, a0, a1, a2);
        finish(1, b0, b1, b2);
        finish(2, c0, c1, c2);
        finish(3, e0, e1, e2);

        const double* weight = m.weights.data() + g * m.outputs * group_size;
        for (int64_t r = 0; r < width; r += lanes) {
            const V k0 = hn::Load(d, kernel + r), k1 = hn::Load(d, kernel + width + r),
                    k2 = hn::Load(d, kernel + 2 * width + r), k3 = hn::Load(d, kernel + 3 * width + r);
            for (int o = 0; o < m.outputs; ++o) {
                const double* w = weight + o * group_size;
                double* to = out + o * width + r;
                V sum = hn::LoadU(d, to);
                sum = hn::MulAdd(hn::Set(d, w[0]), k0, sum);
                sum = hn::MulAdd(hn::Set(d, w[1]), k1, sum);
                sum = hn::MulAdd(hn::Set(d, w[2]), k2, sum);
                sum = hn::MulAdd(hn::Set(d, w[3]), k3, sum);
                hn::StoreU(sum, d, to);
            }
        }
    }
}

void softmax(int outputs, const double* z, double* p) {
    const DoubleTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t width = registers * lanes;
    for (int64_t r = 0; r < width; r += lanes) {
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

const MlrKernels& kernels() {
    static const MlrKernels table{registers * static_cast<int>(hn::Lanes(DoubleTag())), logits, softmax,
                                  hwy::TargetName(HWY_TARGET)};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::sahic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::sahic {
HWY_EXPORT(kernels);

const MlrKernels& mlr_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

} // namespace hsi::sahic
#endif
