// SPDX-License-Identifier: MIT
#include "math/definite.h"

#include <cmath>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/definite.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::math {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 16>;
using V = hn::Vec<D>;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }
constexpr int tile_rows = 6; ///< number of rows that update_tile() updates

/// Returns v + m w, or v - m w.
template <bool minus>
HWY_INLINE V with_product(V v, V m, V w) {
    return minus ? hn::NegMulAdd(m, w, v) : hn::MulAdd(m, w, v);
}

/// Updates six rows and two registers of columns for update().
template <bool minus>
HWY_INLINE void update_tile(double* HWY_RESTRICT c, ptrdiff_t pitch, const double* HWY_RESTRICT ua,
                            const double* HWY_RESTRICT ub, ptrdiff_t u_pitch, int count) {
    const D d;
    const int64_t n = lanes();
    double *r0 = c, *r1 = r0 + pitch, *r2 = r1 + pitch, *r3 = r2 + pitch, *r4 = r3 + pitch, *r5 = r4 + pitch;
    V a0 = hn::LoadU(d, r0), a1 = hn::LoadU(d, r0 + n), b0 = hn::LoadU(d, r1), b1 = hn::LoadU(d, r1 + n),
      c0 = hn::LoadU(d, r2), c1 = hn::LoadU(d, r2 + n), e0 = hn::LoadU(d, r3), e1 = hn::LoadU(d, r3 + n),
      f0 = hn::LoadU(d, r4), f1 = hn::LoadU(d, r4 + n), g0 = hn::LoadU(d, r5), g1 = hn::LoadU(d, r5 + n);
    for (int j = 0; j < count; ++j, ua += u_pitch, ub += u_pitch) {
        const V v0 = hn::LoadU(d, ub), v1 = hn::LoadU(d, ub + n);
        V m = hn::Set(d, ua[0]);
        a0 = with_product<minus>(a0, m, v0);
        a1 = with_product<minus>(a1, m, v1);
        m = hn::Set(d, ua[1]);
        b0 = with_product<minus>(b0, m, v0);
        b1 = with_product<minus>(b1, m, v1);
        m = hn::Set(d, ua[2]);
        c0 = with_product<minus>(c0, m, v0);
        c1 = with_product<minus>(c1, m, v1);
        m = hn::Set(d, ua[3]);
        e0 = with_product<minus>(e0, m, v0);
        e1 = with_product<minus>(e1, m, v1);
        m = hn::Set(d, ua[4]);
        f0 = with_product<minus>(f0, m, v0);
        f1 = with_product<minus>(f1, m, v1);
        m = hn::Set(d, ua[5]);
        g0 = with_product<minus>(g0, m, v0);
        g1 = with_product<minus>(g1, m, v1);
    }
    hn::StoreU(a0, d, r0);
    hn::StoreU(a1, d, r0 + n);
    hn::StoreU(b0, d, r1);
    hn::StoreU(b1, d, r1 + n);
    hn::StoreU(c0, d, r2);
    hn::StoreU(c1, d, r2 + n);
    hn::StoreU(e0, d, r3);
    hn::StoreU(e1, d, r3 + n);
    hn::StoreU(f0, d, r4);
    hn::StoreU(f1, d, r4 + n);
    hn::StoreU(g0, d, r5);
    hn::StoreU(g1, d, r5 + n);
}

template <bool minus>
HWY_INLINE void update_rows(double* c, ptrdiff_t pitch, int first, int rows, int columns, const double* u,
                            ptrdiff_t u_pitch, int count) {
    const int64_t width = 2 * lanes();
    for (int a = first; a < rows; a += tile_rows)
        for (int64_t b = a; b < columns; b += width)
            update_tile<minus>(c + a * pitch + b, pitch, u + a, u + b, u_pitch, count);
}

void update(double* c, ptrdiff_t pitch, int rows, int columns, const double* u, ptrdiff_t u_pitch,
            int count) {
    update_rows<false>(c, pitch, 0, rows, columns, u, u_pitch, count);
}

constexpr int step = 12; ///< number of rows that solve() processes together: they fill the registers of AVX2

/// Computes the factor R of a block of `rows` rows on the diagonal; inverse[i] = 1 / R_ii.
HWY_INLINE void factorise_corner(double* m, ptrdiff_t pitch, int rows, double* inverse) {
    for (int i = 0; i < rows; ++i) {
        double* const top = m + i * pitch;
        top[i] = std::sqrt(top[i]);
        inverse[i] = 1.0 / top[i];
        for (int j = i + 1; j < rows; ++j)
            top[j] *= inverse[i];
        for (int k = i + 1; k < rows; ++k)
            for (int j = k; j < rows; ++j)
                m[k * pitch + j] -= top[k] * top[j];
    }
}

/// Multiplies `rows` rows by R'^-1 in place, for the columns of one register.
template <int rows>
HWY_INLINE void solve_columns(double* HWY_RESTRICT column, const double* HWY_RESTRICT corner, ptrdiff_t pitch,
                              const double* HWY_RESTRICT inverse) {
    const D d;
    V x[rows];
#pragma GCC unroll 12
    for (int i = 0; i < rows; ++i)
        x[i] = hn::LoadU(d, column + i * pitch);
#pragma GCC unroll 12
    for (int i = 0; i < rows; ++i) {
        x[i] = hn::Mul(x[i], hn::Set(d, inverse[i]));
#pragma GCC unroll 12
        for (int j = i + 1; j < rows; ++j)
            x[j] = hn::NegMulAdd(hn::Set(d, corner[i * pitch + j]), x[i], x[j]);
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; ++i)
        hn::StoreU(x[i], d, column + i * pitch);
}

double solve(double* m, ptrdiff_t pitch, int size) {
    const int64_t n = lanes();
    double inverse[step], total = 0;
    for (int k = 0; k < size;) {
        const int rows = size - k < step ? 1 : step;
        double* const corner = m + k * pitch + k;
        factorise_corner(corner, pitch, rows, inverse);
        for (int64_t b = k + rows; b <= size; b += n) {
            if (rows == step)
                solve_columns<step>(m + k * pitch + b, corner, pitch, inverse);
            else
                solve_columns<1>(m + k * pitch + b, corner, pitch, inverse);
        }
        for (int i = k; i < k + rows; ++i)
            total += m[i * pitch + size] * m[i * pitch + size];
        update_rows<true>(m, pitch, k + rows, size, size + 1, m + k * pitch, pitch, rows);
        k += rows;
    }
    return total;
}

const DefiniteKernels& definite_table() {
    static const DefiniteKernels table{update, solve};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::math
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::math {
HWY_EXPORT(definite_table);

const DefiniteKernels& definite_kernels() { return HWY_DYNAMIC_DISPATCH(definite_table)(); }

} // namespace hsi::math
#endif
