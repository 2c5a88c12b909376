// SPDX-License-Identifier: MIT
// Computes sums of products of rows, the terms of covariances, in single or double precision. Compiled once
// per instruction set (Highway's pattern for headers).
#ifndef HSI_STREAM_SCATTER_CONSTANTS
#define HSI_STREAM_SCATTER_CONSTANTS
#include <cstddef>
#include <cstdint>

namespace hsi::stream {
namespace {
/// The number of pixels whose products are added in T before they are added to the block's sums. With 224
/// bands, the values of these pixels fill most of a second-level cache of 512 kB.
template <class T>
constexpr int64_t chunk_of = 1536 / static_cast<int64_t>(sizeof(T));
/// The number of bands in the rows and in the columns of one register tile, and in a panel of columns, which
/// stays in the first-level cache. A tile has 12 accumulators, 3 operands of rows and 1 of columns, which
/// together use the 16 registers of AVX2.
constexpr int tile_rows = 3, tile_columns = 4, panel_columns = 12;
/// The number of partial sums over the pixels of a chunk. They take 64 bytes, like the widest register.
template <class T>
constexpr int64_t scatter_sums = 64 / static_cast<int64_t>(sizeof(T));

/// Converts sums around a chunk's centres c to sums around its block's centres g. Let `rest` be the sum of x
/// - c (not 0, because c is rounded), and `total` the sum of x - g. Then the sum of (x_a - g_a)(x_b - g_b) is
/// the sum of (x_a - c_a)(x_b - c_b), plus offset_a total_b + rest_a offset_b.
struct Shift {
    const double *offset, *rest, *total; ///< c - g, sum of x - c, sum of x - g; one entry per row
};
} // namespace
} // namespace hsi::stream
#endif

#if defined(HSI_STREAM_SCATTER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HSI_STREAM_SCATTER_INL_H
#undef HSI_STREAM_SCATTER_INL_H
#else
#define HSI_STREAM_SCATTER_INL_H
#endif

#include "stream/pixel_run-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::stream {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using ScatterTag = hn::CappedTag<T, static_cast<size_t>(scatter_sums<T>)>;

/// Stores the sums of one turn of tile_products() for four columns, from sum `part` on. After the last turn,
/// out[k] is the total of the sixteen sums of column k. The order of additions is always the same: sums i and
/// i + 8 first, then ((0 + 2) + (1 + 3)) + ((4 + 6) + (5 + 7)). Registers of eight compute this order for
/// four columns at once.
template <class V>
HWY_INLINE void take_turn(int64_t part, V a, V b, V c, V e, float (*HWY_RESTRICT sums)[scatter_sums<float>],
                          float* HWY_RESTRICT out) {
    using D = hn::DFromV<V>;
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const bool last = part + lanes == scatter_sums<float>;
// This code needs registers of known width that have halves.
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
    if constexpr (hn::MaxLanes(D()) >= 8) {
        if (last) {
            const hn::CappedTag<hn::TFromD<D>, 8> d8;
            const hn::RepartitionToWide<decltype(d8)> pairs;
            const auto half = [&](V v, const float* before) HWY_ATTR {
                if constexpr (hn::MaxLanes(D()) == 8)
                    return hn::Add(hn::Load(d, before), v);
                else
                    return hn::Add(hn::LowerHalf(d8, v), hn::UpperHalf(d8, v));
            };
            const auto a8 = half(a, sums[0]), b8 = half(b, sums[1]), c8 = half(c, sums[2]),
                       e8 = half(e, sums[3]);
            // Each 128-bit block of this sum contains a0+a2 b0+b2 a1+a3 b1+b3.
            const auto ab =
                hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d8, a8, b8), hn::InterleaveUpper(d8, a8, b8)));
            const auto ce =
                hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d8, c8, e8), hn::InterleaveUpper(d8, c8, e8)));
            const auto all = hn::Add(hn::BitCast(d8, hn::InterleaveLower(pairs, ab, ce)),
                                     hn::BitCast(d8, hn::InterleaveUpper(pairs, ab, ce)));
            const hn::Half<decltype(d8)> block;
            hn::StoreU(hn::Add(hn::LowerHalf(block, all), hn::UpperHalf(block, all)), block, out);
            return;
        }
    }
#endif
    hn::Store(a, d, sums[0] + part);
    hn::Store(b, d, sums[1] + part);
    hn::Store(c, d, sums[2] + part);
    hn::Store(e, d, sums[3] + part);
    if (!last) return;
    for (int k = 0; k < 4; ++k) {
        float h[8];
        for (int j = 0; j < 8; ++j)
            h[j] = sums[k][j] + sums[k][j + 8];
        out[k] = ((h[0] + h[2]) + (h[1] + h[3])) + ((h[4] + h[6]) + (h[5] + h[7]));
    }
}

/// Works as the function above for the eight sums of doubles: sums i and i + 4 first, then (0 + 1) + (2 + 3).
template <class V>
HWY_INLINE void take_turn(int64_t part, V a, V b, V c, V e, double (*HWY_RESTRICT sums)[scatter_sums<double>],
                          double* HWY_RESTRICT out) {
    using D = hn::DFromV<V>;
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const bool last = part + lanes == scatter_sums<double>;
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
    if constexpr (hn::MaxLanes(D()) >= 4) {
        if (last) {
            const hn::CappedTag<double, 4> d4;
            const auto half = [&](V v, const double* before) HWY_ATTR {
                if constexpr (hn::MaxLanes(D()) == 4)
                    return hn::Add(hn::Load(d, before), v);
                else
                    return hn::Add(hn::LowerHalf(d4, v), hn::UpperHalf(d4, v));
            };
            const auto a4 = half(a, sums[0]), b4 = half(b, sums[1]), c4 = half(c, sums[2]),
                       e4 = half(e, sums[3]);
            // Each 128-bit block of this sum contains a0+a1 b0+b1.
            const auto ab = hn::Add(hn::InterleaveLower(d4, a4, b4), hn::InterleaveUpper(d4, a4, b4));
            const auto ce = hn::Add(hn::InterleaveLower(d4, c4, e4), hn::InterleaveUpper(d4, c4, e4));
            hn::StoreU(hn::Add(hn::ConcatLowerLower(d4, ce, ab), hn::ConcatUpperUpper(d4, ce, ab)), d4, out);
            return;
        }
    }
#endif
    hn::Store(a, d, sums[0] + part);
    hn::Store(b, d, sums[1] + part);
    hn::Store(c, d, sums[2] + part);
    hn::Store(e, d, sums[3] + part);
    if (!last) return;
    for (int k = 0; k < 4; ++k) {
        double h[4];
        for (int j = 0; j < 4; ++j)
            h[j] = sums[k][j] + sums[k][j + 4];
        out[k] = (h[0] + h[1]) + (h[2] + h[3]);
    }
}

/// Loads `p` into a register once. Without this function, GCC loads a value that three products use three
/// times, as an operand of each product. The fifteen loads for twelve products then take longer than the
/// products.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_once(D d, const T* p) {
    auto v = hn::LoadU(d, p);
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    asm("" : "+x"(v.raw));
#endif
    return v;
}

/// Computes the sums of products of three rows and four columns over `count` pixels, a multiple of
/// scatter_sums<T>. Rows and columns are chunk_of<T> apart.
template <class T>
HWY_INLINE void tile_products(const T* HWY_RESTRICT r0, const T* HWY_RESTRICT c0, int64_t count,
                              T (&sums)[tile_rows][tile_columns]) {
    const ScatterTag<T> d;
    constexpr int64_t chunk_pixels = chunk_of<T>;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const T* HWY_RESTRICT r1 = r0 + chunk_pixels;
    const T* HWY_RESTRICT r2 = r1 + chunk_pixels;
    const T* HWY_RESTRICT c1 = c0 + chunk_pixels;
    const T* HWY_RESTRICT c2 = c1 + chunk_pixels;
    const T* HWY_RESTRICT c3 = c2 + chunk_pixels;
    // Registers of fewer than 64 bytes process the pixels in turns: the first ones of every 64 bytes, then
    // the next ones. So the number of accumulators is the same, and each accumulator adds the same terms as
    // with the widest register.
    HWY_ALIGN T parts[tile_rows][tile_columns][scatter_sums<T>];
    for (int64_t part = 0; part < scatter_sums<T>; part += lanes) {
        auto s00 = hn::Zero(d), s01 = hn::Zero(d), s02 = hn::Zero(d), s03 = hn::Zero(d);
        auto s10 = hn::Zero(d), s11 = hn::Zero(d), s12 = hn::Zero(d), s13 = hn::Zero(d);
        auto s20 = hn::Zero(d), s21 = hn::Zero(d), s22 = hn::Zero(d), s23 = hn::Zero(d);
        for (int64_t i = part; i < count; i += scatter_sums<T>) {
            const auto u0 = load_once(d, r0 + i), u1 = load_once(d, r1 + i), u2 = load_once(d, r2 + i);
            auto v = load_once(d, c0 + i);
            s00 = hn::MulAdd(u0, v, s00);
            s10 = hn::MulAdd(u1, v, s10);
            s20 = hn::MulAdd(u2, v, s20);
            v = load_once(d, c1 + i);
            s01 = hn::MulAdd(u0, v, s01);
            s11 = hn::MulAdd(u1, v, s11);
            s21 = hn::MulAdd(u2, v, s21);
            v = load_once(d, c2 + i);
            s02 = hn::MulAdd(u0, v, s02);
            s12 = hn::MulAdd(u1, v, s12);
            s22 = hn::MulAdd(u2, v, s22);
            v = load_once(d, c3 + i);
            s03 = hn::MulAdd(u0, v, s03);
            s13 = hn::MulAdd(u1, v, s13);
            s23 = hn::MulAdd(u2, v, s23);
        }
        take_turn(part, s00, s01, s02, s03, parts[0], sums[0]);
        take_turn(part, s10, s11, s12, s13, parts[1], sums[1]);
        take_turn(part, s20, s21, s22, s23, parts[2], sums[2]);
    }
}

/// Calls f(a, b) for tiles of the rows a .. a + 2 and the columns b .. b + 3. The tiles cover all entries
/// with b <= a, and some entries with b > a. rows: a multiple of panel_columns, of which `used` rows are in
/// use.
template <class F>
HWY_INLINE void each_tile(int used, int rows, const F& f) {
    for (int panel = 0; panel < rows; panel += panel_columns)
        for (int a = panel; a < used; a += tile_rows)
            for (int b = panel; b < panel + panel_columns; b += tile_columns) {
                if (b > a + tile_rows - 1) break; // above the diagonal
                f(a, b);
            }
}

/// Computes sums of x_a x_b over `count` pixels, a multiple of scatter_sums<T>. x: `rows` rows, chunk_of<T>
/// apart. take(sums, a, b) gets the sums of a tile.
template <class T, class Take>
HWY_INLINE void add_products(const T* HWY_RESTRICT x, int used, int rows, int64_t count, Take take) {
    each_tile(used, rows, [&](int a, int b) HWY_ATTR {
        T sums[tile_rows][tile_columns];
        tile_products(x + a * chunk_of<T>, x + b * chunk_of<T>, count, sums);
        take(sums, a, b);
    });
}

/// Works as add_products(), but for each of `parts` equal parts of the rows separately. take(sums, a, b) gets
/// the sums of a tile, one set for each part.
template <int parts, class T, class Take>
HWY_INLINE void add_products_of_parts(const T* HWY_RESTRICT x, int used, int rows, int64_t count, Take take) {
    each_tile(used, rows, [&](int a, int b) HWY_ATTR {
        T sums[parts][tile_rows][tile_columns];
        for (int k = 0; k < parts; ++k) {
            const ptrdiff_t from = k * (chunk_of<T> / parts);
            tile_products(x + a * chunk_of<T> + from, x + b * chunk_of<T> + from, count, sums[k]);
        }
        take(sums, a, b);
    });
}

/// Computes scatter[a * rows + b] += sum of x_a x_b for b <= a (and some b > a), over `count` pixels. x: as
/// in add_products().
void add_scatter(const double* HWY_RESTRICT x, int used, int rows, int64_t count,
                 double* HWY_RESTRICT scatter) {
    add_products(
        x, used, rows, count, [&](const double(&sums)[tile_rows][tile_columns], int a, int b) HWY_ATTR {
            const hn::CappedTag<double, tile_columns> d;
            for (int k = 0; k < tile_rows; ++k) {
                double* HWY_RESTRICT out = scatter + static_cast<ptrdiff_t>(a + k) * rows + b;
                for (size_t at = 0; at < tile_columns; at += hn::Lanes(d))
                    hn::StoreU(hn::Add(hn::LoadU(d, out + at), hn::LoadU(d, sums[k] + at)), d, out + at);
            }
        });
}

/// Computes out[k] += in[k] + offset total[k] + rest offsets[k] for k < 4 (see Shift).
template <class T>
HWY_INLINE void add_four(const T* HWY_RESTRICT in, double offset, const double* HWY_RESTRICT total,
                         double rest, const double* HWY_RESTRICT offsets, double* HWY_RESTRICT out) {
    const hn::CappedTag<double, 4> dd;
    const auto o = hn::Set(dd, offset), r = hn::Set(dd, rest);
    for (size_t k = 0; k < 4; k += hn::Lanes(dd)) {
        auto sum = hn::MulAdd(o, hn::LoadU(dd, total + k), load_as(dd, in + k));
        sum = hn::MulAdd(r, hn::LoadU(dd, offsets + k), sum);
        hn::StoreU(hn::Add(hn::LoadU(dd, out + k), sum), dd, out + k);
    }
}

/// Computes scatter[a * rows + b] += sum of (x_a - g_a)(x_b - g_b) for b <= a (and some b > a), over `count`
/// pixels. x: as in add_products(), the values minus the chunk's centres.
template <class T>
HWY_INLINE void add_shifted(const T* HWY_RESTRICT x, int bands, int rows, int64_t count, const Shift& shift,
                            double* HWY_RESTRICT scatter) {
    add_products(x, bands, rows, count, [&](const T(&sums)[tile_rows][tile_columns], int a, int b) HWY_ATTR {
        double* HWY_RESTRICT out = scatter + static_cast<ptrdiff_t>(a) * rows + b;
        for (int k = 0; k < tile_rows; ++k)
            add_four(sums[k], shift.offset[a + k], shift.total + b, shift.rest[a + k], shift.offset + b,
                     out + static_cast<ptrdiff_t>(k) * rows);
    });
}

[[maybe_unused]] void add_shifted_single(const float* x, int bands, int rows, int64_t count,
                                         const Shift& shift, double* scatter) {
    add_shifted(x, bands, rows, count, shift, scatter);
}
[[maybe_unused]] void add_shifted_double(const double* x, int bands, int rows, int64_t count,
                                         const Shift& shift, double* scatter) {
    add_shifted(x, bands, rows, count, shift, scatter);
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#endif // per-target include guard
