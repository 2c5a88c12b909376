// SPDX-License-Identifier: MIT
#include "math/row_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/row_products.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::math {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RowTag = hn::ScalableTag<double>;
using RowVector = hn::Vec<RowTag>;
// 4 rows x 3 registers of pixels: twelve sums hide the latency of multiply-add.
constexpr int row_registers = 3;

void multiply(const RowPanels& panels, const double* x, double* results) {
    constexpr int count = static_cast<int>(RowPanels::group_size);
    const RowTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t width = row_registers * lanes;
    for (size_t g = 0; g < panels.groups(); ++g, results += count * width) {
        RowVector sum[count][row_registers];
#pragma GCC unroll 4
        for (int k = 0; k < count; ++k)
#pragma GCC unroll 3
            for (int r = 0; r < row_registers; ++r)
                sum[k][r] = hn::Zero(d);
        const double* HWY_RESTRICT w = panels.weights_of(g);
        const double* HWY_RESTRICT at = x;
        for (size_t b = panels.length_of(g); b > 0; --b, w += count, at += width) {
            RowVector pixel[row_registers];
#pragma GCC unroll 3
            for (int r = 0; r < row_registers; ++r)
                pixel[r] = hn::LoadU(d, at + r * lanes);
#pragma GCC unroll 4
            for (int k = 0; k < count; ++k) {
                const RowVector weight = hn::Set(d, w[k]);
#pragma GCC unroll 3
                for (int r = 0; r < row_registers; ++r)
                    sum[k][r] = hn::MulAdd(pixel[r], weight, sum[k][r]);
            }
        }
#pragma GCC unroll 4
        for (int k = 0; k < count; ++k)
#pragma GCC unroll 3
            for (int r = 0; r < row_registers; ++r)
                hn::StoreU(sum[k][r], d, results + k * width + r * lanes);
    }
}

void exponentials(double* values, size_t count) {
    const RowTag d;
    const auto lanes = static_cast<size_t>(hn::Lanes(d));
    for (size_t i = 0; i < count * row_registers * lanes; i += lanes)
        hn::StoreU(hn::Exp(d, hn::LoadU(d, values + i)), d, values + i);
}

const RowKernels& row_kernels_here() {
    static const RowKernels table{row_registers * static_cast<int>(hn::Lanes(RowTag())), multiply,
                                  exponentials, hwy::TargetName(HWY_TARGET)};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::math
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::math {
HWY_EXPORT(row_kernels_here);

const RowKernels& row_kernels() { return HWY_DYNAMIC_DISPATCH(row_kernels_here)(); }

} // namespace hsi::math
#endif
