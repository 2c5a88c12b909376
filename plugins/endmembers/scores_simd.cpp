// SPDX-License-Identifier: MIT
#include "endmembers/scores_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "endmembers/scores_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::endmembers {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<double, 8>;

/// Computes K forms of one register tile: K x 2 vectors of sums.
template <int K>
void affine_tile(const double* HWY_RESTRICT y, ptrdiff_t stride, int rows, const double* HWY_RESTRICT matrix,
                 const double* HWY_RESTRICT offset, int64_t count, double* HWY_RESTRICT out) {
    const Tag d;
    using V = hn::Vec<Tag>;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < count; i += 2 * lanes) {
        V low[K], high[K];
        for (int k = 0; k < K; ++k)
            low[k] = high[k] = hn::Set(d, offset[k]);
        const double* HWY_RESTRICT x = y + i;
        for (int r = 0; r < rows; ++r, x += stride) {
            const V x0 = hn::LoadU(d, x), x1 = hn::LoadU(d, x + lanes);
#pragma GCC unroll 4
            for (int k = 0; k < K; ++k) {
                const V m = hn::Set(d, matrix[k * rows + r]);
                low[k] = hn::MulAdd(m, x0, low[k]);
                high[k] = hn::MulAdd(m, x1, high[k]);
            }
        }
        for (int k = 0; k < K; ++k) {
            hn::StoreU(low[k], d, out + k * block_pixels + i);
            hn::StoreU(high[k], d, out + k * block_pixels + i + lanes);
        }
    }
}

void affine(const double* y, ptrdiff_t stride, int rows, const double* matrix, const double* offset,
            int forms, int64_t count, double* out) {
    for (int k = 0; k < forms; k += 4) {
        const double* const m = matrix + static_cast<ptrdiff_t>(k) * rows;
        double* const o = out + k * block_pixels;
        switch (forms - k) {
        case 1:
            affine_tile<1>(y, stride, rows, m, offset + k, count, o);
            break;
        case 2:
            affine_tile<2>(y, stride, rows, m, offset + k, count, o);
            break;
        case 3:
            affine_tile<3>(y, stride, rows, m, offset + k, count, o);
            break;
        default:
            affine_tile<4>(y, stride, rows, m, offset + k, count, o);
        }
    }
}

void residual(const double* HWY_RESTRICT y, ptrdiff_t stride, int rows, double constant,
              const double* HWY_RESTRICT forms, int count_of_forms, int64_t count, double* HWY_RESTRICT out) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < count; i += lanes) {
        auto sum = hn::Set(d, constant);
        for (int r = 0; r < rows; ++r) {
            const auto x = hn::LoadU(d, y + r * stride + i);
            sum = hn::MulAdd(x, x, sum);
        }
        for (int k = 0; k < count_of_forms; ++k) {
            const auto x = hn::LoadU(d, forms + k * block_pixels + i);
            sum = hn::NegMulAdd(x, x, sum);
        }
        hn::StoreU(sum, d, out + i);
    }
}

bool reaches(const double* HWY_RESTRICT value, int64_t count, double threshold) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto t = hn::Set(d, threshold);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
        if (!hn::AllFalse(d, hn::Ge(hn::Abs(hn::LoadU(d, value + i)), t))) return true;
    for (; i < count; ++i)
        if (value[i] >= threshold || -value[i] >= threshold) return true;
    return false;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::endmembers
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::endmembers {
namespace {
HWY_EXPORT(affine);
HWY_EXPORT(residual);
HWY_EXPORT(reaches);
} // namespace

const SimdKernels& simd_kernels() {
    static const SimdKernels kernels{[](const double* y, ptrdiff_t stride, int rows, const double* matrix,
                                        const double* offset, int forms, int64_t count, double* out) {
                                         HWY_DYNAMIC_DISPATCH(affine)
                                         (y, stride, rows, matrix, offset, forms, count, out);
                                     },
                                     [](const double* y, ptrdiff_t stride, int rows, double constant,
                                        const double* forms, int count_of_forms, int64_t count, double* out) {
                                         HWY_DYNAMIC_DISPATCH(residual)
                                         (y, stride, rows, constant, forms, count_of_forms, count, out);
                                     },
                                     [](const double* value, int64_t count, double threshold) {
                                         return HWY_DYNAMIC_DISPATCH(reaches)(value, count, threshold);
                                     }};
    return kernels;
}

} // namespace hsi::endmembers
#endif
