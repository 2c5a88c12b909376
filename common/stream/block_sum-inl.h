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

/// Sums that the pixels of a stretch are spread over, pixel i adding to sum i % 16: as many as the widest
/// register has floats, and no fewer where registers are narrower. So the order of additions, and every bit
/// of a total, is the same whatever the instruction set.
constexpr int64_t stretch_sums = 16;

using StretchTag = hn::CappedTag<float, static_cast<size_t>(stretch_sums)>;
using StretchSumTag = hn::CappedTag<double, static_cast<size_t>(stretch_sums) / 2>;
using StretchSum = hn::Vec<StretchSumTag>;
constexpr int64_t stretch_registers = stretch_sums / static_cast<int64_t>(hn::MaxLanes(StretchSumTag()));

/// A stretch of one band: adds x to the sums (stretch_registers of them), and what fills no sixteen to
/// `rest`; |x| to magnitude, where NaN and infinities stay visible, and so does a pixel that is zero in all
/// bands. next[0..count) is fetched meanwhile.
HWY_INLINE void add_stretch(const float* HWY_RESTRICT x, const float* next, int64_t count,
                            StretchSum* HWY_RESTRICT sums, double& rest, float* HWY_RESTRICT magnitude) {
    const StretchTag df;
    const StretchSumTag dd;
    const hn::Rebind<float, StretchSumTag> dh;
    constexpr auto wide = static_cast<int64_t>(hn::MaxLanes(StretchTag()));
    constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(StretchSumTag()));
    StretchSum s[stretch_registers]; // in registers: what is captured or passed lies in memory
#pragma GCC unroll 16
    for (int64_t k = 0; k < stretch_registers; ++k)
        s[k] = sums[k];
    int64_t i = 0;
    for (; i + stretch_sums <= count; i += stretch_sums) {
        hwy::Prefetch(next + i);
#pragma GCC unroll 16
        for (int64_t at = i; at < i + stretch_sums; at += wide)
            hn::StoreU(hn::Add(hn::LoadU(df, magnitude + at), hn::Abs(hn::LoadU(df, x + at))), df,
                       magnitude + at);
#pragma GCC unroll 16
        for (int64_t k = 0; k < stretch_registers; ++k)
            s[k] = hn::Add(s[k], hn::PromoteTo(dd, hn::LoadU(dh, x + i + k * lanes)));
    }
#pragma GCC unroll 16
    for (int64_t k = 0; k < stretch_registers; ++k)
        sums[k] = s[k];
    for (; i < count; ++i) {
        magnitude[i] += std::fabs(x[i]);
        rest += static_cast<double>(x[i]);
    }
}

/// The sum of all sums and the rest, in an order of its own.
HWY_INLINE double total_of(const StretchSum* HWY_RESTRICT sums, double rest) {
    const StretchSumTag dd;
    HWY_ALIGN double s[stretch_sums];
    for (int64_t k = 0; k < stretch_registers; ++k)
        hn::Store(sums[k], dd, s + k * static_cast<int64_t>(hn::MaxLanes(StretchSumTag())));
    for (int64_t half = stretch_sums / 2; half > 0; half /= 2)
        for (int64_t k = 0; k < half; ++k)
            s[k] += s[k + half];
    return s[0] + rest;
}

/// Sum of one band over a block (lines `line_stride` apart), with the magnitude of pixel (line, sample) at
/// line * pitch + sample.
inline double block_sum(const float* first, ptrdiff_t line_stride, int64_t lines, int64_t samples,
                        float* magnitude, int64_t pitch) {
    StretchSum sums[stretch_registers];
    for (auto& s : sums)
        s = hn::Zero(StretchSumTag());
    double rest = 0;
    for (int64_t line = 0; line < lines; ++line)
        add_stretch(first + line * line_stride, first + std::min(line + 1, lines - 1) * line_stride, samples,
                    sums, rest, magnitude + line * pitch);
    return total_of(sums, rest);
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#endif // per-target include guard
