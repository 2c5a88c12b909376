// SPDX-License-Identifier: MIT
// What the scans over a scene share, compiled once for each instruction set (Highway's pattern for headers).
#if defined(HSI_STREAM_BLOCK_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HSI_STREAM_BLOCK_SUM_INL_H
#undef HSI_STREAM_BLOCK_SUM_INL_H
#else
#define HSI_STREAM_BLOCK_SUM_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace hsi::stream {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Sum of one band over a block (lines `line_stride` apart), and |value| added to magnitude[line * pitch +
/// sample]: NaN and infinities stay visible there, and so does a pixel that is zero in all bands.
double block_sum(const float* first, ptrdiff_t line_stride, int64_t lines, int64_t samples, float* magnitude,
                 int64_t pitch) {
    const hn::ScalableTag<float> df;
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> dh;
    const auto wide = static_cast<int64_t>(hn::Lanes(df));
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    auto sum0 = hn::Zero(dd), sum1 = hn::Zero(dd);
    double rest = 0;
    for (int64_t line = 0; line < lines; ++line) {
        const float* HWY_RESTRICT x = first + line * line_stride;
        float* HWY_RESTRICT m = magnitude + line * pitch;
        int64_t i = 0;
        for (; i + wide <= samples; i += wide) {
            hn::StoreU(hn::Add(hn::LoadU(df, m + i), hn::Abs(hn::LoadU(df, x + i))), df, m + i);
            sum0 = hn::Add(sum0, hn::PromoteTo(dd, hn::LoadU(dh, x + i)));
            sum1 = hn::Add(sum1, hn::PromoteTo(dd, hn::LoadU(dh, x + i + lanes)));
        }
        for (; i < samples; ++i) {
            m[i] += std::fabs(x[i]);
            rest += static_cast<double>(x[i]);
        }
    }
    return hn::GetLane(hn::SumOfLanes(dd, hn::Add(sum0, sum1))) + rest;
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#endif // per-target include guard
