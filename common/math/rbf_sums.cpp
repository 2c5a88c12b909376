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
// 4 vectors x 3 registers of pixels: twelve sums hide the latency of multiply-add. Twelve sums, three
// registers of pixels and one broadcast value fill the 16 registers of AVX2.
constexpr int registers = 3;
/// The number of groups of vectors that are evaluated together. AVX-512 has 32 registers, enough for 24 sums.
/// With two groups, the pixels, which fill a first-level cache, are read half as often.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr int together = 2;
#else
constexpr int together = 1;
#endif

/// Buffers of a call of add_sums().
struct RbfBlock {
    const RbfPanels& panels;
    const double *x, *x2; ///< features and |x|^2 of the pixels
    double* sums;
};

/// Adds the groups g .. g + GROUPS - 1 to the sums.
template <int GROUPS>
HWY_INLINE void add_groups(const RbfBlock& block, int64_t g) {
    constexpr int group_size = static_cast<int>(RbfPanels::group_size);
    constexpr int count = GROUPS * group_size;
    const RbfPanels& m = block.panels;
    const DoubleTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t width = registers * lanes;
    const int features = m.features(), outputs = m.outputs();
    const int64_t of_group = static_cast<int64_t>(features) * group_size;

    V dot[count][registers];
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k)
#pragma GCC unroll 3
        for (int r = 0; r < registers; ++r)
            dot[k][r] = hn::Zero(d);
    const double* HWY_RESTRICT s = m.vectors().data() + g * of_group;
    const double* HWY_RESTRICT x = block.x;
    for (int f = 0; f < features; ++f, s += group_size, x += width) {
        V pixel[registers];
#pragma GCC unroll 3
        for (int r = 0; r < registers; ++r)
            pixel[r] = hn::LoadU(d, x + r * lanes);
#pragma GCC unroll 8
        for (int k = 0; k < count; ++k) {
            const V v = hn::Set(d, s[k / group_size * of_group + k % group_size]);
#pragma GCC unroll 3
            for (int r = 0; r < registers; ++r)
                dot[k][r] = hn::MulAdd(pixel[r], v, dot[k][r]);
        }
    }

    HWY_ALIGN double kernel[count * registers * HWY_MAX_BYTES / sizeof(double)];
    const double* square = m.squares().data() + g * group_size;
    const V minus_gamma = hn::Set(d, -m.gamma()), minus_two = hn::Set(d, -2.0), zero = hn::Zero(d);
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k) {
        const V s2 = hn::Set(d, square[k]);
#pragma GCC unroll 3
        for (int r = 0; r < registers; ++r) {
            const V norm = hn::Add(hn::LoadU(d, block.x2 + r * lanes), s2);
            const V distance = hn::Max(zero, hn::MulAdd(minus_two, dot[k][r], norm));
            hn::Store(hn::Exp(d, hn::Mul(minus_gamma, distance)), d, kernel + k * width + r * lanes);
        }
    }

    const double* weight = m.weights().data() + g * outputs * group_size;
    for (int64_t r = 0; r < width; r += lanes)
        for (int o = 0; o < outputs; ++o) {
            double* to = block.sums + o * width + r;
            V sum = hn::LoadU(d, to);
#pragma GCC unroll 8
            for (int k = 0; k < count; ++k) {
                const double w = weight[(k / group_size * outputs + o) * group_size + k % group_size];
                sum = hn::MulAdd(hn::Set(d, w), hn::Load(d, kernel + k * width + r), sum);
            }
            hn::StoreU(sum, d, to);
        }
}

void add_sums(const RbfPanels& m, int64_t first, int64_t last, const double* x, const double* x2,
              double* sums) {
    const RbfBlock block{m, x, x2, sums};
    for (; first + together <= last; first += together)
        add_groups<together>(block, first);
    if constexpr (together > 1)
        for (; first < last; ++first)
            add_groups<1>(block, first);
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
