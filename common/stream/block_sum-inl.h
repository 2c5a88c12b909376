// SPDX-License-Identifier: MIT
// What the scans over a scene share, compiled once for each instruction set (Highway's pattern for headers).
#if defined(HSI_STREAM_BLOCK_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HSI_STREAM_BLOCK_SUM_INL_H
#undef HSI_STREAM_BLOCK_SUM_INL_H
#else
#define HSI_STREAM_BLOCK_SUM_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace hsi::stream {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// A stretch of one band: adds x to two vectors of sums, and what fills no vector to `rest`; |x| to
/// magnitude, where NaN and infinities stay visible, and so does a pixel that is zero in all bands.
/// next[0..count) is fetched meanwhile.
template <class V>
HWY_INLINE void add_stretch(const float* HWY_RESTRICT x, const float* next, int64_t count, V& sum0, V& sum1,
                            double& rest, float* HWY_RESTRICT magnitude) {
    const hn::ScalableTag<float> df;
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> dh;
    const auto wide = static_cast<int64_t>(hn::Lanes(df));
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    int64_t i = 0;
    for (; i + wide <= count; i += wide) {
        hwy::Prefetch(next + i);
        hn::StoreU(hn::Add(hn::LoadU(df, magnitude + i), hn::Abs(hn::LoadU(df, x + i))), df, magnitude + i);
        sum0 = hn::Add(sum0, hn::PromoteTo(dd, hn::LoadU(dh, x + i)));
        sum1 = hn::Add(sum1, hn::PromoteTo(dd, hn::LoadU(dh, x + i + lanes)));
    }
    for (; i < count; ++i) {
        magnitude[i] += std::fabs(x[i]);
        rest += static_cast<double>(x[i]);
    }
}

/// Sum of one band over a block (lines `line_stride` apart), with the magnitude of pixel (line, sample) at
/// line * pitch + sample.
inline double block_sum(const float* first, ptrdiff_t line_stride, int64_t lines, int64_t samples,
                        float* magnitude, int64_t pitch) {
    const hn::ScalableTag<double> dd;
    auto sum0 = hn::Zero(dd), sum1 = hn::Zero(dd);
    double rest = 0;
    for (int64_t line = 0; line < lines; ++line)
        add_stretch(first + line * line_stride, first + std::min(line + 1, lines - 1) * line_stride, samples,
                    sum0, sum1, rest, magnitude + line * pitch);
    return hn::GetLane(hn::SumOfLanes(dd, hn::Add(sum0, sum1))) + rest;
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#endif // per-target include guard
