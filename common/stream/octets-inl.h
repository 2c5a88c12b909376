// SPDX-License-Identifier: MIT
// Computes the sums of products of pixels and of differences of neighbours from common products, eight pixels
// of a line at a time. Compiled once per instruction set (Highway's pattern for headers).
#if defined(HSI_STREAM_OCTETS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HSI_STREAM_OCTETS_INL_H
#undef HSI_STREAM_OCTETS_INL_H
#else
#define HSI_STREAM_OCTETS_INL_H
#endif

#include "stream/pixel_run-inl.h"
#include "stream/scatter-inl.h"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#ifndef HSI_STREAM_OCTETS_CONSTANTS
#define HSI_STREAM_OCTETS_CONSTANTS
namespace hsi::stream {
namespace {
/// The number of pixels in a run. The products of these pixels are added in registers before they are added
/// to the block's sums.
constexpr int64_t run_pixels = chunk_of<double>;

/// An octet is eight neighbouring pixels of a line. It has eight coefficients of the cosine transform (called
/// cosines here), of which a run processes four at a time.
constexpr int64_t octet = 8, kinds = 4;
constexpr int64_t run_octets = run_pixels / kinds;

// The sum over pixels and the sum over neighbours have most of their products in common. Let X be the
// discrete cosine transform (DCT-II) of eight pixels x_0 .. x_7. Then
//   sum of x x' = sum of X_k X_k',
//   sum of d d' = sum of l_k X_k X_k',  d = x_(i + 1) - x_i,  l_k = 2 - 2 cos(pi k/8).
// Only the pair between two octets needs a separate product. So eight pixels need nine products. X_1 to X_7
// are computed from differences, so a high level of the values loses none of their digits. X_0 and X_4 are
// divided by the square root of 2, so that their factors are exact; their products count twice.
constexpr double cosine_1 = 0.49039264020161522456, cosine_3 = 0.41573480615127261853,
                 cosine_5 = 0.27778511650980111237,
                 cosine_7 = 0.09754516100806413392; ///< cosine_i is cos(i pi/16) / 2
constexpr double cosine_2 = 0.46193976625564337806, cosine_6 = 0.19134171618254488586; ///< as cosine_1
/// share_k is l_k; l_4 is 2.
constexpr double share_1 = 0.15224093497742648774, share_2 = 0.58578643762690495119,
                 share_3 = 1.23463313526982045654, share_5 = 2.76536686473017954346,
                 share_6 = 3.41421356237309504880, share_7 = 3.84775906502257351226;
} // namespace
} // namespace hsi::stream
#endif

HWY_BEFORE_NAMESPACE();
namespace hsi::stream {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Loads the pixels of Lanes(d) octets from x on: pixel[j] contains pixel j of each octet.
template <class D, class V>
HWY_INLINE void load_octets(D d, const float* HWY_RESTRICT x, V (&pixel)[octet]) {
    const hn::Rebind<float, D> df;
    hn::Vec<decltype(df)> a0, a1, a2, a3, b0, b1, b2, b3;
    hn::LoadInterleaved4(df, x, a0, a1, a2, a3);
    hn::LoadInterleaved4(df, x + 4 * hn::Lanes(d), b0, b1, b2, b3);
    const auto take = [&](int j, auto a, auto b) HWY_ATTR {
#if HWY_TARGET != HWY_SCALAR // HWY_SCALAR has no halves of registers: a and b are single values
        if constexpr (hn::MaxLanes(D()) > 1) {
            pixel[j] = hn::PromoteTo(d, hn::ConcatEven(df, b, a));
            pixel[4 + j] = hn::PromoteTo(d, hn::ConcatOdd(df, b, a));
            return;
        }
#endif
        pixel[j] = hn::PromoteTo(d, a);
        pixel[4 + j] = hn::PromoteTo(d, b);
    };
    take(0, a0, b0);
    take(1, a1, b1);
    take(2, a2, b2);
    take(3, a3, b3);
}

/// Computes X_1, X_3, X_5 and X_7 of octets.
template <class D, class V>
HWY_INLINE void odd_cosines(D d, const V (&x)[octet], V (&out)[kinds]) {
    const V d0 = hn::Sub(x[0], x[7]), d1 = hn::Sub(x[1], x[6]), d2 = hn::Sub(x[2], x[5]),
            d3 = hn::Sub(x[3], x[4]);
    const V c1 = hn::Set(d, cosine_1), c3 = hn::Set(d, cosine_3), c5 = hn::Set(d, cosine_5),
            c7 = hn::Set(d, cosine_7);
    out[0] = hn::MulAdd(c1, d0, hn::MulAdd(c3, d1, hn::MulAdd(c5, d2, hn::Mul(c7, d3))));
    out[1] = hn::MulSub(c3, d0, hn::MulAdd(c7, d1, hn::MulAdd(c1, d2, hn::Mul(c5, d3))));
    out[2] = hn::MulAdd(c5, d0, hn::NegMulAdd(c1, d1, hn::MulAdd(c7, d2, hn::Mul(c3, d3))));
    out[3] = hn::MulAdd(c7, d0, hn::NegMulAdd(c5, d1, hn::MulSub(c3, d2, hn::Mul(c1, d3))));
}

/// Computes X_0 and X_4 divided by the square root of 2, and X_2 and X_6 of octets. level: eight times the
/// band's centre.
template <class D, class V>
HWY_INLINE void even_cosines(D d, const V (&x)[octet], V level, V (&out)[kinds]) {
    const V s0 = hn::Add(x[0], x[7]), s1 = hn::Add(x[1], x[6]), s2 = hn::Add(x[2], x[5]),
            s3 = hn::Add(x[3], x[4]);
    const V outer = hn::Add(s0, s3), inner = hn::Add(s1, s2), o = hn::Sub(s0, s3), i = hn::Sub(s1, s2);
    const V c2 = hn::Set(d, cosine_2), c6 = hn::Set(d, cosine_6), quarter = hn::Set(d, 0.25);
    out[0] = hn::Mul(quarter, hn::Sub(hn::Add(outer, inner), level));
    out[1] = hn::MulAdd(c2, o, hn::Mul(c6, i));
    out[2] = hn::Mul(quarter, hn::Sub(outer, inner));
    out[3] = hn::MulSub(c6, o, hn::Mul(c2, i));
}

/// Prefetches `count` values of the next band, which is too far away for the CPU's prefetcher.
HWY_INLINE void fetch(const float* next, int64_t count) {
    for (int64_t i = 0; i < count; i += 16)
        hwy::Prefetch(next + i);
}

/// Computes the odd or the even cosines of a run's octets. `out` has four quarters, one for each of the four
/// cosines. The cosines of octet i are 0 if keep[i] is not positive. next: the distance to the next band.
template <bool odd>
void octet_band(const float* band, ptrdiff_t next, const PixelRun& run, float centre,
                const double* HWY_RESTRICT keep, double* HWY_RESTRICT out) {
    const auto some = [&](auto d, const float* x, int64_t at) HWY_ATTR {
        using V = hn::Vec<decltype(d)>;
        V pixel[octet], cosines[kinds];
        load_octets(d, x, pixel);
        if constexpr (odd)
            odd_cosines(d, pixel, cosines);
        else
            even_cosines(d, pixel, hn::Set(d, static_cast<double>(octet) * static_cast<double>(centre)),
                         cosines);
        const auto wanted = hn::Gt(hn::LoadU(d, keep + at), hn::Zero(d));
        for (int k = 0; k < kinds; ++k)
            hn::StoreU(hn::IfThenElseZero(wanted, cosines[k]), d, out + k * run_octets + at);
    };
    run.for_stretches(band, [&](const float* HWY_RESTRICT x, int64_t n, int64_t at) HWY_ATTR {
        const hn::CappedTag<double, 8> d;
        const hn::CappedTag<double, 1> one;
        const auto lanes = static_cast<int64_t>(hn::Lanes(d));
        int64_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            fetch(x + next + octet * i, octet * lanes);
            some(d, x + octet * i, at + i);
        }
        for (; i < n; ++i)
            some(one, x + octet * i, at + i);
    });
}
void even_octet_band(const float* band, ptrdiff_t next, const PixelRun& run, float centre, const double* keep,
                     double* out) {
    octet_band<false>(band, next, run, centre, keep, out);
}
void odd_octet_band(const float* band, ptrdiff_t next, const PixelRun& run, const double* keep, double* out) {
    octet_band<true>(band, next, run, 0.0f, keep, out);
}

/// Computes out[i] = x[8 i + 1] - x[8 i] if keep[i] > 0, else 0. `band` begins at the last pixel of the first
/// octet, so out[i] is the difference between octet i and the next octet. Reads no pixel beyond the last of
/// these pairs.
void difference_band(const float* band, ptrdiff_t next, const PixelRun& run, const double* HWY_RESTRICT keep,
                     double* HWY_RESTRICT out) {
    run.for_stretches(band, [&](const float* HWY_RESTRICT x, int64_t n, int64_t at) HWY_ATTR {
        for (int64_t i = 0; i < n; ++i) {
            const float* const pair = x + octet * i;
            hwy::Prefetch(pair + next);
            out[at + i] =
                keep[at + i] > 0 ? static_cast<double>(pair[1]) - static_cast<double>(pair[0]) : 0.0;
        }
    });
}

/// Adds the products of bands to `pixels`, and these products times l_k to `pairs`. x: the four cosines of a
/// run, one in each quarter of a band's row.
template <bool odd>
HWY_INLINE void add_octets(const double* HWY_RESTRICT x, int used, int rows, int64_t count,
                           double* HWY_RESTRICT pixels, double* HWY_RESTRICT pairs) {
    using TileSums = double[tile_rows][tile_columns];
    const auto take = [&](const TileSums(&sums)[kinds], int a, int b) HWY_ATTR {
        const hn::CappedTag<double, tile_columns> d;
        const auto two = hn::Set(d, 2.0), four = hn::Set(d, 4.0);
        for (int k = 0; k < tile_rows; ++k) {
            const ptrdiff_t to = static_cast<ptrdiff_t>(a + k) * rows + b;
            for (size_t at = 0; at < tile_columns; at += hn::Lanes(d)) {
                const auto m0 = hn::LoadU(d, sums[0][k] + at), m1 = hn::LoadU(d, sums[1][k] + at),
                           m2 = hn::LoadU(d, sums[2][k] + at), m3 = hn::LoadU(d, sums[3][k] + at);
                double *const of_pixels = pixels + to + at, *const of_pairs = pairs + to + at;
                auto all = hn::Add(m1, m3), shared = all;
                if constexpr (odd) {
                    all = hn::Add(all, hn::Add(m0, m2));
                    shared = hn::MulAdd(hn::Set(d, share_5), m2, hn::Mul(hn::Set(d, share_7), m3));
                    shared = hn::MulAdd(hn::Set(d, share_3), m1, shared);
                    shared = hn::MulAdd(hn::Set(d, share_1), m0, shared);
                } else {
                    all = hn::MulAdd(two, hn::Add(m0, m2), all);
                    shared = hn::MulAdd(four, m2, hn::Mul(hn::Set(d, share_6), m3));
                    shared = hn::MulAdd(hn::Set(d, share_2), m1, shared);
                }
                hn::StoreU(hn::Add(hn::LoadU(d, of_pixels), all), d, of_pixels);
                hn::StoreU(hn::Add(hn::LoadU(d, of_pairs), shared), d, of_pairs);
            }
        }
    };
    add_products_of_parts<kinds>(x, used, rows, count, take);
}
void add_even_octets(const double* x, int used, int rows, int64_t count, double* pixels, double* pairs) {
    add_octets<false>(x, used, rows, count, pixels, pairs);
}
void add_odd_octets(const double* x, int used, int rows, int64_t count, double* pixels, double* pairs) {
    add_octets<true>(x, used, rows, count, pixels, pairs);
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#endif // per-target include guard
