// SPDX-License-Identifier: MIT
// A run of pixels of a block, the unit of the statistics kernels: its sums, magnitudes and centred values.
// Compiled once per instruction set (Highway's pattern for headers).
#ifndef HSI_STREAM_PIXEL_RUN
#define HSI_STREAM_PIXEL_RUN
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hsi::stream {
namespace {
/// The position of a run in the values of a band. A run consists of consecutive pixels (or octets) of a
/// block, counted line by line.
struct PixelRun {
    ptrdiff_t line_stride; ///< distance between two lines of the band, in values
    int64_t samples;       ///< pixels of a line of the block
    int64_t first, count;
    int64_t step = 1; ///< values from one pixel to the next

    /// Returns the number of pixels, rounded up to fill the last register of at most 16 values.
    int64_t whole() const { return (count + 15) / 16 * 16; }
    /// Calls f(values, pixels, index) for each stretch of the run, which is its part within one line. values:
    /// the address of the first value. pixels: the number of pixels. index: the position of the first pixel
    /// in the run.
    template <class F>
    void for_stretches(const float* band, F f) const {
        int64_t line = first / samples, sample = first % samples;
        for (int64_t done = 0; done < count; ++line, sample = 0) {
            const int64_t n = std::min(samples - sample, count - done);
            f(band + line * line_stride + sample * step, n, done);
            done += n;
        }
    }
};
} // namespace
} // namespace hsi::stream
#endif

#if defined(HSI_STREAM_PIXEL_RUN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HSI_STREAM_PIXEL_RUN_INL_H
#undef HSI_STREAM_PIXEL_RUN_INL_H
#else
#define HSI_STREAM_PIXEL_RUN_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace hsi::stream {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// The number of sums for the pixels of a stretch: the value of pixel i is added to sum i % 16. This is the
/// number of floats in the widest register; narrower registers use the same number of sums. So the order of
/// additions, and every bit of a total, is the same in each instruction set.
constexpr int64_t stretch_sums = 16;

using StretchTag = hn::CappedTag<float, static_cast<size_t>(stretch_sums)>;
using StretchSumTag = hn::CappedTag<double, static_cast<size_t>(stretch_sums) / 2>;
using StretchSum = hn::Vec<StretchSumTag>;
constexpr int64_t stretch_registers = stretch_sums / static_cast<int64_t>(hn::MaxLanes(StretchSumTag()));

/// Adds the values x of a stretch of one band to the sums, which are in stretch_registers registers. Values
/// after the last whole group of sixteen are added to `rest`. Adds |x| to `magnitude`, which reveals NaN,
/// infinities and pixels that are zero in all bands. Prefetches next[0..count).
HWY_INLINE void add_stretch(const float* HWY_RESTRICT x, const float* next, int64_t count,
                            StretchSum* HWY_RESTRICT sums, double& rest, float* HWY_RESTRICT magnitude) {
    const StretchTag df;
    const StretchSumTag dd;
    const hn::Rebind<float, StretchSumTag> dh;
    constexpr auto wide = static_cast<int64_t>(hn::MaxLanes(StretchTag()));
    constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(StretchSumTag()));
    StretchSum s[stretch_registers]; // in registers: captured or passed variables would be in memory
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

/// Returns the total of all sums and the rest, in a fixed order.
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

/// Returns the sum of one band of a run, and adds the magnitudes of its values to `magnitude`. Prefetches the
/// same run of the next band, `next` values away, which is too far away for the CPU's prefetcher.
[[maybe_unused]] double sum_band(const float* band, ptrdiff_t next, const PixelRun& run, float* magnitude) {
    StretchSum sums[stretch_registers];
    for (auto& s : sums)
        s = hn::Zero(StretchSumTag());
    double rest = 0;
    run.for_stretches(band, [&](const float* x, int64_t n, int64_t at)
                                HWY_ATTR { add_stretch(x, x + next, n, sums, rest, magnitude + at); });
    return total_of(sums, rest);
}

/// Adds the magnitudes of one band of a run, as sum_band(), but computes no sum.
void add_magnitudes(const float* band, ptrdiff_t next, const PixelRun& run, float* magnitude) {
    const StretchTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    run.for_stretches(band, [&](const float* HWY_RESTRICT x, int64_t n, int64_t at) HWY_ATTR {
        float* HWY_RESTRICT m = magnitude + at;
        int64_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            hwy::Prefetch(x + next + i);
            hn::StoreU(hn::Add(hn::LoadU(d, m + i), hn::Abs(hn::LoadU(d, x + i))), d, m + i);
        }
        for (; i < n; ++i)
            m[i] += std::fabs(x[i]);
    });
}

/// Loads `p`, float or double, into a register of D.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_as(D d, const T* p) {
    if constexpr (sizeof(T) == sizeof(hn::TFromD<D>))
        return hn::LoadU(d, p);
    else
        return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), p));
}

/// Computes out[i] = x_i - centre for the pixels of a run; 0 for pixels with keep[i] = 0.
template <bool all, class T>
HWY_INLINE void centre_values(const float* band, const PixelRun& run, float centre, const T* keep,
                              T* HWY_RESTRICT out) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const T c = static_cast<T>(centre);
    const auto centres = hn::Set(d, c);
    run.for_stretches(band, [&](const float* HWY_RESTRICT x, int64_t n, int64_t at) HWY_ATTR {
        T* HWY_RESTRICT o = out + at;
        int64_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            auto v = hn::Sub(load_as(d, x + i), centres);
            if constexpr (!all) v = hn::IfThenElseZero(hn::Gt(hn::LoadU(d, keep + at + i), hn::Zero(d)), v);
            hn::StoreU(v, d, o + i);
        }
        for (; i < n; ++i)
            o[i] = all || keep[at + i] > 0 ? static_cast<T>(x[i]) - c : T{0};
    });
}
/// keep: null if all pixels are kept.
[[maybe_unused]] void centre_single(const float* band, const PixelRun& run, float centre, const float* keep,
                                    float* out) {
    keep ? centre_values<false>(band, run, centre, keep, out)
         : centre_values<true>(band, run, centre, keep, out);
}
[[maybe_unused]] void centre_double(const float* band, const PixelRun& run, float centre, const double* keep,
                                    double* out) {
    keep ? centre_values<false>(band, run, centre, keep, out)
         : centre_values<true>(band, run, centre, keep, out);
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#endif // per-target include guard
