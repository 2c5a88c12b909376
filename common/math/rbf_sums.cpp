// SPDX-License-Identifier: MIT
#include "math/rbf_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/rbf_sums.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::math {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DoubleTag = hn::ScalableTag<double>;
using V = hn::Vec<DoubleTag>;
// 4 vectors x 3 registers of pixels: twelve sums hide the latency of multiply-add, and with three pixel
// registers and one broadcast they fit the 16 registers of AVX2.
constexpr int registers = 3;

void add_sums(const RbfPanels& m, int64_t first, int64_t last, const double* x, const double* x2,
              double* sums) {
    constexpr int64_t group_size = RbfPanels::group_size;
    const DoubleTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t width = registers * lanes;
    const int features = m.features(), outputs = m.outputs();
    const V minus_gamma = hn::Set(d, -m.gamma()), minus_two = hn::Set(d, -2.0), zero = hn::Zero(d);
    const V norm0 = hn::LoadU(d, x2), norm1 = hn::LoadU(d, x2 + lanes), norm2 = hn::LoadU(d, x2 + 2 * lanes);
    HWY_ALIGN double kernel[group_size * registers * HWY_MAX_BYTES / sizeof(double)];
    for (int64_t g = first; g < last; ++g) {
        const double* HWY_RESTRICT s = m.vectors().data() + g * features * group_size;
        const double* HWY_RESTRICT xf = x;
        V a0 = zero, a1 = zero, a2 = zero, b0 = zero, b1 = zero, b2 = zero;
        V c0 = zero, c1 = zero, c2 = zero, e0 = zero, e1 = zero, e2 = zero;
        for (int f = 0; f < features; ++f, s += group_size, xf += width) {
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
        const double* square = m.squares().data() + g * group_size;
        const auto finish = [&](int k, V dot0, V dot1, V dot2) HWY_ATTR {
            const V s2 = hn::Set(d, square[k]);
            double* to = kernel + k * width;
            const auto one = [&](V norm, V dot, double* at) HWY_ATTR {
                const V distance = hn::Max(zero, hn::MulAdd(minus_two, dot, hn::Add(norm, s2)));
                hn::Store(hn::Exp(d, hn::Mul(minus_gamma, distance)), d, at);
            };
            one(norm0, dot0, to);
            one(norm1, dot1, to + lanes);
            one(norm2, dot2, to + 2 * lanes);
        };
        finish(0, a0, a1, a2);
        finish(1, b0, b1, b2);
        finish(2, c0, c1, c2);
        finish(3, e0, e1, e2);

        const double* weight = m.weights().data() + g * outputs * group_size;
        for (int64_t r = 0; r < width; r += lanes) {
            const V k0 = hn::Load(d, kernel + r), k1 = hn::Load(d, kernel + width + r),
                    k2 = hn::Load(d, kernel + 2 * width + r), k3 = hn::Load(d, kernel + 3 * width + r);
            for (int o = 0; o < outputs; ++o) {
                const double* w = weight + o * group_size;
                double* to = sums + o * width + r;
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

const RbfKernels& kernels() {
    static const RbfKernels table{registers * static_cast<int>(hn::Lanes(DoubleTag())), add_sums,
                                  hwy::TargetName(HWY_TARGET)};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::math
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::math {
HWY_EXPORT(kernels);

const RbfKernels& rbf_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

} // namespace hsi::math
#endif
