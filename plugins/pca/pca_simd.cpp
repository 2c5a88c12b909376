// SPDX-License-Identifier: MIT
#include "pca/pca_simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pca/pca_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::pca {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int K> // outputs of one register tile: K x 2 vectors of sums
void add_tile(const float* HWY_RESTRICT in, ptrdiff_t in_stride, int inputs,
              const double* HWY_RESTRICT matrix, int matrix_stride, int64_t count, double* HWY_RESTRICT sum) {
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> dh;
    using V = hn::Vec<decltype(dd)>;
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    for (int64_t i = 0; i < count; i += 2 * lanes) {
        V low[K], high[K];
        for (int k = 0; k < K; ++k) {
            low[k] = hn::LoadU(dd, sum + k * block_pixels + i);
            high[k] = hn::LoadU(dd, sum + k * block_pixels + i + lanes);
        }
        const float* HWY_RESTRICT x = in + i;
        for (int b = 0; b < inputs; ++b, x += in_stride) {
            const V x0 = hn::PromoteTo(dd, hn::LoadU(dh, x)),
                    x1 = hn::PromoteTo(dd, hn::LoadU(dh, x + lanes));
#pragma GCC unroll 4
            for (int k = 0; k < K; ++k) {
                const V m = hn::Set(dd, matrix[k * matrix_stride + b]);
                low[k] = hn::MulAdd(m, x0, low[k]);
                high[k] = hn::MulAdd(m, x1, high[k]);
            }
        }
        for (int k = 0; k < K; ++k) {
            hn::StoreU(low[k], dd, sum + k * block_pixels + i);
            hn::StoreU(high[k], dd, sum + k * block_pixels + i + lanes);
        }
    }
}

void add_products(const float* in, ptrdiff_t in_stride, int inputs, const double* matrix, int matrix_stride,
                  int outputs, int64_t count, double* sum, float* magnitude) {
    const hn::ScalableTag<float> df;
    const auto lanes = static_cast<int64_t>(hn::Lanes(df));
    for (int64_t i = 0; i < count; i += lanes) {
        auto m = hn::LoadU(df, magnitude + i);
        for (int b = 0; b < inputs; ++b)
            m = hn::Add(m, hn::Abs(hn::LoadU(df, in + b * in_stride + i)));
        hn::StoreU(m, df, magnitude + i);
    }
    for (int o = 0; o < outputs; o += 4) {
        const double* const rows = matrix + static_cast<ptrdiff_t>(o) * matrix_stride;
        double* const sums = sum + o * block_pixels;
        switch (std::min(4, outputs - o)) {
        case 1:
            add_tile<1>(in, in_stride, inputs, rows, matrix_stride, count, sums);
            break;
        case 2:
            add_tile<2>(in, in_stride, inputs, rows, matrix_stride, count, sums);
            break;
        case 3:
            add_tile<3>(in, in_stride, inputs, rows, matrix_stride, count, sums);
            break;
        default:
            add_tile<4>(in, in_stride, inputs, rows, matrix_stride, count, sums);
        }
    }
}

const char* target() { return hwy::TargetName(HWY_TARGET); }

} // namespace HWY_NAMESPACE
} // namespace hsi::pca
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::pca {
namespace {
HWY_EXPORT(add_products);
HWY_EXPORT(target);
} // namespace

const SimdKernels& simd_kernels() {
    static const SimdKernels kernels{
        [](const float* in, ptrdiff_t in_stride, int inputs, const double* matrix, int matrix_stride,
           int outputs, int64_t count, double* sum, float* magnitude) {
            HWY_DYNAMIC_DISPATCH(add_products)
            (in, in_stride, inputs, matrix, matrix_stride, outputs, count, sum, magnitude);
        },
        HWY_DYNAMIC_DISPATCH(target)()};
    return kernels;
}

} // namespace hsi::pca
#endif
