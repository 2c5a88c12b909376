// SPDX-License-Identifier: MIT
#include "cluster/nearest_simd.h"

#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cluster/nearest_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::cluster {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<double, 8>;
using V = hn::Vec<Tag>;

/// Adds the term of one band to the sum: y c for angles, otherwise (y - c)^2.
template <bool Angle>
HWY_INLINE V with_term(V y, V c, V sum) {
    if constexpr (Angle) return hn::MulAdd(y, c, sum);
    const V apart = hn::Sub(y, c);
    return hn::MulAdd(apart, apart, sum);
}

/// Compares K centres, starting at `first`, with two vectors of pixels: K x 2 sums stay in registers.
template <bool Angle, int K>
HWY_INLINE void look(const double* HWY_RESTRICT y, int bands, const double* HWY_RESTRICT centres, int first,
                     V& best_low, V& best_high, V& at_low, V& at_high) {
    const Tag d;
    const auto lanes = static_cast<int>(hn::Lanes(d));
    V low[K], high[K];
    for (int k = 0; k < K; ++k)
        low[k] = high[k] = hn::Zero(d);
    const double* HWY_RESTRICT c = centres + static_cast<ptrdiff_t>(first) * bands;
    for (int b = 0; b < bands; ++b, y += group) {
        const V y0 = hn::Load(d, y), y1 = hn::Load(d, y + lanes);
#pragma GCC unroll 4
        for (int k = 0; k < K; ++k) {
            const V centre = hn::Set(d, c[static_cast<ptrdiff_t>(k) * bands + b]);
            low[k] = with_term<Angle>(y0, centre, low[k]);
            high[k] = with_term<Angle>(y1, centre, high[k]);
        }
    }
    for (int k = 0; k < K; ++k) {
        const V number = hn::Set(d, static_cast<double>(first + k));
        const auto better_low = Angle ? hn::Gt(low[k], best_low) : hn::Lt(low[k], best_low);
        const auto better_high = Angle ? hn::Gt(high[k], best_high) : hn::Lt(high[k], best_high);
        best_low = hn::IfThenElse(better_low, low[k], best_low);
        best_high = hn::IfThenElse(better_high, high[k], best_high);
        at_low = hn::IfThenElse(better_low, number, at_low);
        at_high = hn::IfThenElse(better_high, number, at_high);
    }
}

template <bool Angle>
void look_at_all(const double* HWY_RESTRICT y, int bands, const double* HWY_RESTRICT centres, int count,
                 double* HWY_RESTRICT best, int32_t* HWY_RESTRICT index) {
    const Tag d;
    const auto lanes = static_cast<int>(hn::Lanes(d));
    constexpr double worst =
        Angle ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    HWY_ALIGN double at[group];
    for (int i = 0; i < group; i += 2 * lanes) {
        V best_low = hn::Set(d, worst), best_high = best_low, at_low = hn::Zero(d), at_high = at_low;
        int k = 0;
        for (; k + 4 <= count; k += 4)
            look<Angle, 4>(y + i, bands, centres, k, best_low, best_high, at_low, at_high);
        for (; k < count; ++k)
            look<Angle, 1>(y + i, bands, centres, k, best_low, best_high, at_low, at_high);
        hn::StoreU(best_low, d, best + i);
        hn::StoreU(best_high, d, best + i + lanes);
        hn::Store(at_low, d, at + i);
        hn::Store(at_high, d, at + i + lanes);
    }
    for (int i = 0; i < group; ++i)
        index[i] = static_cast<int32_t>(at[i]);
}

using SingleTag = hn::CappedTag<float, group>;
using Single = hn::Vec<SingleTag>;
constexpr int single_lanes = static_cast<int>(hn::MaxLanes(SingleTag()));
/// The number of vectors of pixels, and the most centres, that are multiplied at a time: their sums stay in
/// registers.
constexpr int beside = single_lanes < group ? 2 : 1, most_at_once = 10 / beside;

template <int K>
HWY_INLINE void multiply(const float* HWY_RESTRICT x, int bands, const float* HWY_RESTRICT centres,
                         float* HWY_RESTRICT products) {
    const SingleTag d;
    Single sum[K][beside];
    for (int k = 0; k < K; ++k)
        for (int v = 0; v < beside; ++v)
            sum[k][v] = hn::Zero(d);
    for (int b = 0; b < bands; ++b, x += group) {
        Single values[beside];
        for (int v = 0; v < beside; ++v)
            values[v] = hn::LoadU(d, x + v * single_lanes);
#pragma GCC unroll 10
        for (int k = 0; k < K; ++k) {
            const Single centre = hn::Set(d, centres[static_cast<ptrdiff_t>(k) * bands + b]);
            for (int v = 0; v < beside; ++v)
                sum[k][v] = hn::MulAdd(values[v], centre, sum[k][v]);
        }
    }
    for (int k = 0; k < K; ++k)
        for (int v = 0; v < beside; ++v)
            hn::StoreU(sum[k][v], d, products + k * group + v * single_lanes);
}

/// Multiplies a group with `count` centres, at most K.
template <int K>
void multiply_some(const float* x, int bands, const float* centres, int count, float* products) {
    if (count == K) return multiply<K>(x, bands, centres, products);
    if constexpr (K > 1) multiply_some<K - 1>(x, bands, centres, count, products);
}

void screen(const float* HWY_RESTRICT x, int bands, const float* HWY_RESTRICT centres, int count,
            float* HWY_RESTRICT products, float* HWY_RESTRICT squares) {
    const SingleTag d;
    for (int i = 0; i < group; i += beside * single_lanes) {
        for (int k = 0, parts = (count + most_at_once - 1) / most_at_once; k < count; --parts) {
            const int next = (count - k + parts - 1) / parts; // divides the centres into nearly equal parts
            multiply_some<most_at_once>(x + i, bands, centres + static_cast<ptrdiff_t>(k) * bands, next,
                                        products + k * group + i);
            k += next;
        }
        Single sum[beside];
        for (int v = 0; v < beside; ++v)
            sum[v] = hn::Zero(d);
        for (int b = 0; b < bands; ++b)
            for (int v = 0; v < beside; ++v) {
                const Single value = hn::LoadU(d, x + b * group + i + v * single_lanes);
                sum[v] = hn::MulAdd(value, value, sum[v]);
            }
        for (int v = 0; v < beside; ++v)
            hn::StoreU(sum[v], d, squares + i + v * single_lanes);
    }
}

void nearest(const double* y, int bands, const double* centres, int count, double* least, int32_t* index) {
    look_at_all<false>(y, bands, centres, count, least, index);
}

void most_alike(const double* y, int bands, const double* centres, int count, double* greatest,
                int32_t* index) {
    look_at_all<true>(y, bands, centres, count, greatest, index);
}

} // namespace HWY_NAMESPACE
} // namespace hsi::cluster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::cluster {
namespace {
HWY_EXPORT(nearest);
HWY_EXPORT(most_alike);
HWY_EXPORT(screen);
} // namespace

const SimdKernels& simd_kernels() {
    static const SimdKernels kernels{
        [](const double* y, int bands, const double* centres, int count, double* least, int32_t* index) {
            HWY_DYNAMIC_DISPATCH(nearest)(y, bands, centres, count, least, index);
        },
        [](const double* y, int bands, const double* centres, int count, double* greatest, int32_t* index) {
            HWY_DYNAMIC_DISPATCH(most_alike)(y, bands, centres, count, greatest, index);
        },
        [](const float* x, int bands, const float* centres, int count, float* products, float* squares) {
            HWY_DYNAMIC_DISPATCH(screen)(x, bands, centres, count, products, squares);
        }};
    return kernels;
}

} // namespace hsi::cluster
#endif
