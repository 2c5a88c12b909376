// SPDX-License-Identifier: MIT
#include "pca/pca_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pca/pca_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::pca {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Computes K outputs in one register tile: K x 2 vectors of sums. If `magnitudes` is true, also sums |in|.
template <int K, bool magnitudes>
void add_tile(const float* HWY_RESTRICT in, ptrdiff_t in_stride, int inputs,
              const double* HWY_RESTRICT matrix, int matrix_stride, int64_t count, double* HWY_RESTRICT sum,
              double* HWY_RESTRICT magnitude) {
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
        V m0 = hn::Zero(dd), m1 = hn::Zero(dd);
        const float* HWY_RESTRICT x = in + i;
        for (int b = 0; b < inputs; ++b, x += in_stride) {
            const V x0 = hn::PromoteTo(dd, hn::LoadU(dh, x)),
                    x1 = hn::PromoteTo(dd, hn::LoadU(dh, x + lanes));
            if constexpr (magnitudes) {
                m0 = hn::Add(m0, hn::Abs(x0));
                m1 = hn::Add(m1, hn::Abs(x1));
            }
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
        if constexpr (magnitudes) {
            hn::StoreU(hn::Add(hn::LoadU(dd, magnitude + i), m0), dd, magnitude + i);
            hn::StoreU(hn::Add(hn::LoadU(dd, magnitude + i + lanes), m1), dd, magnitude + i + lanes);
        }
    }
}

template <bool magnitudes>
void add_outputs(const float* in, ptrdiff_t in_stride, int inputs, const double* matrix, int matrix_stride,
                 int outputs, int64_t count, double* sum, double* magnitude) {
    switch (outputs) {
    case 1:
        add_tile<1, magnitudes>(in, in_stride, inputs, matrix, matrix_stride, count, sum, magnitude);
        break;
    case 2:
        add_tile<2, magnitudes>(in, in_stride, inputs, matrix, matrix_stride, count, sum, magnitude);
        break;
    case 3:
        add_tile<3, magnitudes>(in, in_stride, inputs, matrix, matrix_stride, count, sum, magnitude);
        break;
    default:
        add_tile<4, magnitudes>(in, in_stride, inputs, matrix, matrix_stride, count, sum, magnitude);
    }
}

void add_products(const float* in, ptrdiff_t in_stride, int inputs, const double* matrix, int matrix_stride,
                  int outputs, int64_t count, double* sum, double* magnitude) {
    // The smaller tile comes first, because it needs fewer registers.
    int done = (outputs - 1) % 4 + 1;
    add_outputs<true>(in, in_stride, inputs, matrix, matrix_stride, done, count, sum, magnitude);
    for (; done < outputs; done += 4)
        add_outputs<false>(in, in_stride, inputs, matrix + static_cast<ptrdiff_t>(done) * matrix_stride,
                           matrix_stride, 4, count, sum + done * block_pixels, magnitude);
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
           int outputs, int64_t count, double* sum, double* magnitude) {
            HWY_DYNAMIC_DISPATCH(add_products)
            (in, in_stride, inputs, matrix, matrix_stride, outputs, count, sum, magnitude);
        },
        HWY_DYNAMIC_DISPATCH(target)()};
    return kernels;
}

} // namespace hsi::pca
#endif
