// SPDX-License-Identifier: MIT
// Sums of stripes along columns in SIMD registers.
#include "noise/stripes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "noise/stripes_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "stream/pixel_run-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::noise {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void add_magnitudes(const float* row, size_t count, float* magnitude) {
    const auto pixels = static_cast<int64_t>(count);
    stream::HWY_NAMESPACE::add_magnitudes(row, 0, {0, pixels, 0, pixels}, magnitude);
}

void add_stripes(const StripeRows& rows, const double* HWY_RESTRICT counted, size_t counted_stride,
                 double* HWY_RESTRICT sum, double* HWY_RESTRICT squares) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, hn::ScalableTag<double>> f;
    const size_t lanes = hn::Lanes(d);
    const auto half = hn::Set(d, 0.5), zero = hn::Zero(d);
    size_t i = 0;
    for (; i + lanes <= rows.count; i += lanes) {
        auto s = zero, q = zero;
        for (int64_t line = 0; line < rows.lines; ++line) {
            const float* const at = rows.first + line * rows.stride + static_cast<ptrdiff_t>(i);
            const auto left = hn::PromoteTo(d, hn::LoadU(f, at - 1)),
                       right = hn::PromoteTo(d, hn::LoadU(f, at + 1));
            auto e = hn::Sub(hn::PromoteTo(d, hn::LoadU(f, at)), hn::Mul(hn::Add(left, right), half));
            if (counted != nullptr) {
                const auto one = hn::LoadU(d, counted + static_cast<size_t>(line) * counted_stride + i);
                e = hn::IfThenElseZero(hn::Gt(one, zero), e);
            }
            s = hn::Add(s, e);
            q = hn::Add(q, hn::Mul(e, e));
        }
        hn::StoreU(s, d, sum + i);
        hn::StoreU(q, d, squares + i);
    }
    for (; i < rows.count; ++i) {
        sum[i] = squares[i] = 0;
        for (int64_t line = 0; line < rows.lines; ++line) {
            const float* const at = rows.first + line * rows.stride + static_cast<ptrdiff_t>(i);
            if (counted != nullptr && counted[static_cast<size_t>(line) * counted_stride + i] == 0) continue;
            const double e =
                static_cast<double>(at[0]) - (static_cast<double>(at[-1]) + static_cast<double>(at[1])) / 2;
            sum[i] += e;
            squares[i] += e * e;
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace hsi::noise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::noise {

HWY_EXPORT(add_magnitudes);
HWY_EXPORT(add_stripes);

void add_magnitudes(const float* row, size_t count, float* magnitude) {
    HWY_DYNAMIC_DISPATCH(add_magnitudes)(row, count, magnitude);
}

void add_stripes(const StripeRows& rows, const double* counted, size_t counted_stride, double* sum,
                 double* squares) {
    HWY_DYNAMIC_DISPATCH(add_stripes)(rows, counted, counted_stride, sum, squares);
}

} // namespace hsi::noise
#endif
