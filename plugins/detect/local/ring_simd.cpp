// SPDX-License-Identifier: MIT
#include "detect/local/ring_simd.h"

#include "detect/detect_simd.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "detect/local/ring_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::detect {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;
using H = hn::Rebind<float, D>; ///< one float per double of D
using F = hn::CappedTag<float, 16>;
using W = hn::Vec<F>;

constexpr int height = Triangle::rows, width = Triangle::columns, block = Triangle::block;
constexpr int doubles = static_cast<int>(hn::MaxLanes(D())), singles = static_cast<int>(hn::MaxLanes(F()));
constexpr int sums_of = 8; ///< partial sums of a sum over columns; column c is in sum c % 8

/// Adds up s[0..7] in a fixed order.
HWY_INLINE double total_of(const double* s) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

void deviations(const float* const* spectra, int count, int bands, const double* HWY_RESTRICT centre,
                double* HWY_RESTRICT out, ptrdiff_t pitch, double* HWY_RESTRICT sum) {
    const D d;
    const H half;
    for (int i = 0; i < count; ++i, out += pitch) {
        const float* HWY_RESTRICT x = spectra[i];
        int b = 0;
        for (; b + doubles <= bands; b += doubles) {
            const V v = hn::Sub(hn::PromoteTo(d, hn::LoadU(half, x + b)), hn::LoadU(d, centre + b));
            hn::StoreU(v, d, out + b);
            hn::StoreU(hn::Add(hn::LoadU(d, sum + b), v), d, sum + b);
        }
        std::fill(out + b, out + pitch, 0.0);
        for (; b < bands; ++b) {
            out[b] = static_cast<double>(x[b]) - centre[b];
            sum[b] += out[b];
        }
    }
}

/// Returns the position in a panel's blocks of the entry (row, column).
HWY_INLINE ptrdiff_t place(int row, int column) {
    return column / width * block + row * width + column % width;
}

/// Registers per row of a tile. A tile has six rows and some columns of a block, in registers.
constexpr int tile = doubles == 1 ? 1 : 2;
struct Tile {
    V v[height][tile];
};

HWY_INLINE void store(const Tile& t, double* to) {
#pragma GCC unroll 6
    for (int r = 0; r < height; ++r)
#pragma GCC unroll 2
        for (int j = 0; j < tile; ++j)
            hn::StoreU(t.v[r][j], D(), to + r * width + j * doubles);
}

/// Adds the products of left[0..5] and right to t, for `count` vectors.
HWY_INLINE void add_products(Tile& t, const double* HWY_RESTRICT left, const double* HWY_RESTRICT right,
                             ptrdiff_t pitch, int count) {
    const D d;
    for (int k = 0; k < count; ++k, left += pitch, right += pitch) {
        V v[tile];
#pragma GCC unroll 2
        for (int j = 0; j < tile; ++j)
            v[j] = hn::LoadU(d, right + j * doubles);
#pragma GCC unroll 6
        for (int r = 0; r < height; ++r) {
            const V m = hn::Set(d, left[r]);
#pragma GCC unroll 2
            for (int j = 0; j < tile; ++j)
                t.v[r][j] = hn::MulAdd(m, v[j], t.v[r][j]);
        }
    }
}

/// Computes a tile of the change of all pixels' sums: the new products, and `parts` earlier products.
template <int parts>
HWY_INLINE void join(const RingStep& step, const Tile& t, size_t at, double* HWY_RESTRICT change) {
    const D d;
    const V of_all = hn::Set(d, step.all_sign), of_inner = hn::Set(d, step.inner_sign);
    const bool inner = parts == 0 && step.inner_sign != 0 && step.inner > 0;
    const double* from[3] = {};
    V sign[3];
#pragma GCC unroll 3
    for (int k = 0; k < parts; ++k) {
        from[k] = step.parts[static_cast<size_t>(k)].products + at;
        sign[k] = hn::Set(d, step.parts[static_cast<size_t>(k)].sign);
    }
#pragma GCC unroll 6
    for (int r = 0; r < height; ++r)
#pragma GCC unroll 2
        for (int j = 0; j < tile; ++j) {
            const int i = r * width + j * doubles;
            V s = hn::Mul(of_all, t.v[r][j]);
            if (inner) s = hn::MulAdd(of_inner, hn::LoadU(d, step.of_inner + at + i), s);
#pragma GCC unroll 3
            for (int k = 0; k < parts; ++k)
                s = hn::MulAdd(sign[k], hn::LoadU(d, from[k] + i), s);
            hn::StoreU(s, d, change + i);
        }
}

/// Adds to t the products of single vectors with themselves. The rows of the tile begin at band `row`, its
/// columns at band `column`.
HWY_INLINE void add_singles(Tile& t, const RingStep::Singles& own, int row, int column) {
    const D d;
    for (int k = 0; k < own.count; ++k) {
        const RingStep::Single& one = own.of[static_cast<size_t>(k)];
        const V sign = hn::Set(d, one.sign);
        V v[tile];
#pragma GCC unroll 2
        for (int j = 0; j < tile; ++j)
            v[j] = hn::Mul(sign, hn::LoadU(d, one.vector + column + j * doubles));
#pragma GCC unroll 6
        for (int r = 0; r < height; ++r) {
            const V m = hn::Set(d, one.vector[row + r]);
#pragma GCC unroll 2
            for (int j = 0; j < tile; ++j)
                t.v[r][j] = hn::MulAdd(m, v[j], t.v[r][j]);
        }
    }
}

HWY_INLINE void load(Tile& t, const double* from) {
#pragma GCC unroll 6
    for (int r = 0; r < height; ++r)
#pragma GCC unroll 2
        for (int j = 0; j < tile; ++j)
            t.v[r][j] = hn::LoadU(D(), from + r * width + j * doubles);
}

/// Adds t and the products of single vectors to the sums.
HWY_INLINE void add_to_sums(Tile& t, const RingStep::Singles& own, int row, int column,
                            double* HWY_RESTRICT sums) {
    const D d;
    add_singles(t, own, row, column);
#pragma GCC unroll 6
    for (int r = 0; r < height; ++r)
#pragma GCC unroll 2
        for (int j = 0; j < tile; ++j) {
            double* const to = sums + r * width + j * doubles;
            hn::StoreU(hn::Add(hn::LoadU(d, to), t.v[r][j]), d, to);
        }
}

template <int parts>
HWY_INLINE void slide_with(int bands, const RingStep& step, double* const* sums, int pixels) {
    const D d;
    HWY_ALIGN double change[block];
    const int count = step.inner + step.outer;
    size_t at = 0;
    for (int p = 0; p < Triangle::panels(bands); ++p) {
        const double* const left = count > 0 ? step.vectors + p * height : nullptr;
        for (int b = 0; b < Triangle::blocks(bands, p); ++b, at += block) {
            for (int c = 0; c < width; c += tile * doubles) {
                const size_t here = at + static_cast<size_t>(c);
                // The products of the parts are far away in memory, so they are prefetched while the previous
                // tile is computed.
                for (int i = 0; i < parts; ++i)
                    for (int k = c * height; k < (c + tile * doubles) * height; k += 8)
                        hwy::Prefetch(step.parts[static_cast<size_t>(i)].products + at + block + k);
                Tile t;
#pragma GCC unroll 6
                for (int r = 0; r < height; ++r)
#pragma GCC unroll 2
                    for (int j = 0; j < tile; ++j)
                        t.v[r][j] = hn::Zero(d);
                if (count > 0) {
                    const double* const right = left + b * width + c;
                    const ptrdiff_t done = step.inner * step.pitch;
                    add_products(t, left, right, step.pitch, step.inner);
                    if (step.inner > 0) store(t, step.of_inner + here);
                    add_products(t, left + done, right + done, step.pitch, step.outer);
                }
                join<parts>(step, t, here, change);
                if (count > 0 && step.of_all != nullptr) store(t, step.of_all + here);
                const int row = p * height, column = row + b * width + c;
                for (int i = 0; i < pixels; i += 2) {
                    const auto first = static_cast<size_t>(i);
                    load(t, change);
                    add_singles(t, step.shared[first / 2], row, column);
                    if (i + 1 == pixels) {
                        add_to_sums(t, step.own[first], row, column, sums[first] + here);
                        break;
                    }
                    HWY_ALIGN double of_pair[block];
                    store(t, of_pair);
                    add_to_sums(t, step.own[first], row, column, sums[first] + here);
                    load(t, of_pair);
                    add_to_sums(t, step.own[first + 1], row, column, sums[first + 1] + here);
                }
            }
        }
    }
}

void slide(int bands, const RingStep& step, double* const* sums, int pixels) {
    switch (step.count) {
    case 0:
        return slide_with<0>(bands, step, sums, pixels);
    case 1:
        return slide_with<1>(bands, step, sums, pixels);
    case 2:
        return slide_with<2>(bands, step, sums, pixels);
    default:
        return slide_with<3>(bands, step, sums, pixels);
    }
}

/// Subtracts from s (six rows, `wide` registers of columns) the sum over six rows k of left[k][0..5]
/// right[k][..]. next: the rows `right` of the next call, next_pitch apart, which are prefetched.
template <int wide>
HWY_INLINE void take_products(const float* HWY_RESTRICT left, const float* HWY_RESTRICT right,
                              ptrdiff_t pitch, const float* next, ptrdiff_t next_pitch,
                              W (&s)[height][wide]) {
    const F f;
    // Unrolled code would need more registers than AVX2 has.
#pragma GCC unroll 1
    for (int k = 0; k < height; ++k, left += pitch, right += pitch, next += next_pitch) {
        for (int c = 0; c < wide * singles; c += 16)
            hwy::Prefetch(next + c);
        W v[wide];
#pragma GCC unroll 2
        for (int j = 0; j < wide; ++j)
            v[j] = hn::LoadU(f, right + j * singles);
#pragma GCC unroll 6
        for (int r = 0; r < height; ++r) {
            const W m = hn::Set(f, left[r]);
#pragma GCC unroll 2
            for (int j = 0; j < wide; ++j)
                s[r][j] = hn::NegMulAdd(m, v[j], s[r][j]);
        }
    }
}

/// The sums from which a matrix M is computed.
struct Sums {
    const double* values; ///< a Triangle
    const double *apart, *mean;
    double share; ///< 1 / (count - 1)
};

/// Computes six rows of M from `row` on, and the panel's columns from `column` on, as floats; without the
/// ridge.
template <int wide>
HWY_INLINE void take_matrix(const Sums& m, const double* panel, int row, int column, W (&s)[height][wide]) {
    const D d;
    const H half;
    const V share = hn::Set(d, m.share);
    const auto value = [&](int r, int c) HWY_ATTR {
        const V v = hn::NegMulAdd(hn::Set(d, m.mean[row + r]), hn::LoadU(d, m.apart + row + c),
                                  hn::LoadU(d, panel + place(r, c)));
        return hn::DemoteTo(half, hn::Mul(v, share));
    };
#pragma GCC unroll 6
    for (int r = 0; r < height; ++r)
#pragma GCC unroll 2
        for (int j = 0; j < wide; ++j) {
            const int c = column + j * singles;
#if HWY_TARGET != HWY_SCALAR
            if constexpr (singles == 2 * doubles) {
                s[r][j] = hn::Combine(F(), value(r, c + doubles), value(r, c));
                continue;
            }
#endif
            HWY_ALIGN float buffer[singles];
            for (int i = 0; i < singles; i += doubles)
                hn::StoreU(value(r, c + i), half, buffer + i);
            s[r][j] = hn::LoadU(F(), buffer);
        }
}

/// A corner of six rows: the entries of the factor, the same entries divided by their row's diagonal, and the
/// reciprocals of the diagonal.
struct Corner {
    float values[height][height];
    float shares[height][height];
    float inverse[height];
};

/// Computes R of a corner of `rows` rows and `columns` columns in place, with the quotients and the
/// reciprocals of the diagonal. A row waits only for a quotient of the row above; all square roots are
/// computed at the end.
HWY_INLINE void factorise_corner(Corner& c, int rows, int columns) {
    for (int i = 0; i < rows; ++i) {
        const float inverse = 1.0f / c.values[i][i];
        for (int j = i + 1; j < columns; ++j)
            c.shares[i][j] = c.values[i][j] * inverse;
        for (int k = i + 1; k < rows; ++k)
            for (int j = k; j < columns; ++j)
                c.values[k][j] -= c.shares[i][k] * c.values[i][j];
    }
    for (int i = 0; i < rows; ++i) {
        c.values[i][i] = std::sqrt(c.values[i][i]);
        c.inverse[i] = 1.0f / c.values[i][i];
        for (int j = i + 1; j < columns; ++j)
            c.values[i][j] *= c.inverse[i];
    }
}

/// Computes a tile of a panel's rows of M, minus the products of the factor's rows above.
template <int wide>
HWY_INLINE void start_tile(const Sums& m, const double* sums_panel, int bands, int panel, int column,
                           const float* above, W (&s)[height][wide]) {
    const int row = panel * height;
    take_matrix<wide>(m, sums_panel, row, column, s);
    static_assert((width & (width - 1)) == 0);
    // The pitch of a panel is Triangle::blocks() * width; here it is updated in few instructions.
    // take_products() prefetches the next panel.
    ptrdiff_t pitch = Triangle::blocks(bands, 0) * width, rest = bands + width - height;
    const float* left = above + row;
    for (int q = 0; q < panel; ++q, rest -= height) {
        const ptrdiff_t next_pitch = rest & -width;
        const float* const next = left + pitch * height - height;
        take_products<wide>(left, left + column, pitch, next + column, next_pitch, s);
        left = next;
        pitch = next_pitch;
    }
}

template <int wide>
HWY_INLINE void store_tile(const W (&s)[height][wide], float* to, ptrdiff_t pitch) {
#pragma GCC unroll 6
    for (int r = 0; r < height; ++r)
#pragma GCC unroll 2
        for (int j = 0; j < wide; ++j)
            hn::StoreU(s[r][j], F(), to + r * pitch + j * singles);
}

/// Multiplies a tile by the inverse of the transposed corner.
template <int wide>
HWY_INLINE void finish_tile(const Corner& corner, W (&s)[height][wide]) {
    const F f;
#pragma GCC unroll 6
    for (int r = 0; r < height; ++r) {
#pragma GCC unroll 6
        for (int k = r + 1; k < height; ++k) {
            const W share = hn::Set(f, corner.shares[r][k]);
#pragma GCC unroll 2
            for (int j = 0; j < wide; ++j)
                s[k][j] = hn::NegMulAdd(share, s[r][j], s[k][j]);
        }
        const W inverse = hn::Set(f, corner.inverse[r]);
#pragma GCC unroll 2
        for (int j = 0; j < wide; ++j)
            s[r][j] = hn::Mul(s[r][j], inverse);
    }
}

/// Computes the first block of a panel, which contains the corner on the diagonal.
HWY_INLINE void factorise_first(const Sums& m, const double* sums_panel, int bands, int panel, float ridge,
                                const float* above, float* to, ptrdiff_t pitch, Corner& corner) {
    constexpr int wide = width / singles < 2 ? 1 : 2;
    W s[height][wide];
    for (int c = 0; c < width; c += wide * singles) {
        start_tile<wide>(m, sums_panel, bands, panel, c, above, s);
        store_tile<wide>(s, to + c, pitch);
    }
    const int rows = std::min(height, bands - panel * height);
    for (int r = 0; r < height; ++r) {
        for (int c = 0; c < height; ++c)
            corner.values[r][c] = c < r ? 0.0f : to[r * pitch + c];
        std::fill_n(corner.shares[r], height, 0.0f);
        corner.inverse[r] = 0; // missing rows become zeros
    }
    for (int r = 0; r < rows; ++r)
        corner.values[r][r] += ridge;
    if (rows == height)
        factorise_corner(corner, height, height);
    else
        factorise_corner(corner, rows, rows + 1); // includes column `bands`
}

/// Computes the rest of the first block. This step is separate from factorise_first(), since only this step
/// and the last steps of other tiles wait for the corner.
HWY_INLINE void finish_first(const Corner& corner, float* to, ptrdiff_t pitch) {
    constexpr int wide = width / singles < 2 ? 1 : 2;
    const F f;
    W s[height][wide];
    for (int c = 0; c < width; c += wide * singles) {
        for (int r = 0; r < height; ++r)
            for (int j = 0; j < wide; ++j)
                s[r][j] = hn::LoadU(f, to + r * pitch + c + j * singles);
        finish_tile<wide>(corner, s);
        store_tile<wide>(s, to + c, pitch);
    }
    for (int r = 0; r < height; ++r)
        std::copy_n(corner.values[r], height, to + r * pitch);
}

/// Computes the factor R of M = R'R, and R'^-1 times column `bands`. Rows read the rows above (left-looking),
/// so each entry is written once.
void factorise(const Sums& m, int bands, float ridge, float* factor, float* inverses) {
    const double* sums_panel = m.values;
    float* to = factor;
    Corner corner;
    W two[height][2], one[height][1];
    for (int p = 0; p < Triangle::panels(bands); ++p) {
        const int row = p * height, columns = Triangle::blocks(bands, p) * width, end = bands + 1 - row;
        factorise_first(m, sums_panel, bands, p, ridge, factor, to, columns, corner);
        int c = width;
        for (; c + singles < end; c += 2 * singles) {
            start_tile<2>(m, sums_panel, bands, p, c, factor, two);
            finish_tile<2>(corner, two);
            store_tile<2>(two, to + c, columns);
        }
        for (; c < end; c += singles) {
            start_tile<1>(m, sums_panel, bands, p, c, factor, one);
            finish_tile<1>(corner, one);
            store_tile<1>(one, to + c, columns);
        }
        finish_first(corner, to, columns);
        // Tiles may extend beyond column `bands`; the entries there become zero.
        for (int r = 0; r < height; ++r) {
            std::fill(to + r * columns + (bands + 1 - row), to + (r + 1) * columns, 0.0f);
            inverses[row + r] = corner.inverse[r];
        }
        sums_panel += columns * height;
        to += columns * height;
    }
}

/// Computes y = R^-1 w, where w is the factor's column `bands`, in floats. All of y must be zero before the
/// call.
void substitute(int bands, const float* factor, const float* inverses, float* HWY_RESTRICT y) {
    const F f;
    const float* from = factor + Triangle::size(bands);
    for (int p = Triangle::panels(bands) - 1; p >= 0; --p) {
        const int row = p * height, columns = Triangle::blocks(bands, p) * width;
        from -= columns * height;
        float sums[height];
        constexpr int per_block = width / singles;
        W s[height][per_block];
        for (int r = 0; r < height; ++r)
            for (int j = 0; j < per_block; ++j)
                s[r][j] = hn::Zero(f);
        // The entries of y that were computed last come last, since the additions wait for them.
        for (int c = columns - width; c >= 0; c -= width)
            for (int j = 0; j < per_block; ++j) {
                const W v = hn::LoadU(f, y + row + c + j * singles);
                for (int r = 0; r < height; ++r)
                    s[r][j] = hn::MulAdd(hn::LoadU(f, from + r * columns + c + j * singles), v, s[r][j]);
            }
#pragma GCC unroll 6
        for (int r = 0; r < height; ++r) {
            // Adds the upper half to the lower half until one value is left, so the order of additions does
            // not depend on the width of a register.
#pragma GCC unroll 4
            for (int n = per_block / 2; n > 0; n /= 2)
                for (int j = 0; j < n; ++j)
                    s[r][j] = hn::Add(s[r][j], s[r][j + n]);
            HWY_ALIGN float parts[singles];
            hn::StoreU(s[r][0], f, parts);
#pragma GCC unroll 4
            for (int n = singles / 2; n > 0; n /= 2)
#pragma GCC unroll 8
                for (int c = 0; c < n; ++c)
                    parts[c] += parts[c + n];
            sums[r] = parts[0];
        }
        for (int r = std::min(height, bands - row) - 1; r >= 0; --r) {
            float rest = from[r * columns + bands - row] - sums[r];
            for (int c = r + 1; c < std::min(height, bands - row); ++c)
                rest -= from[r * columns + c] * y[row + c];
            y[row + r] = rest * inverses[row + r];
        }
    }
}

/// Computes product = sums times y; y must be zero after the bands.
void multiply(int bands, const double* sums, const double* HWY_RESTRICT y, double* HWY_RESTRICT product) {
    const D d;
    constexpr int per_row = sums_of / doubles, per_block = width / doubles;
    for (int p = 0; p < Triangle::panels(bands); ++p) {
        const int row = p * height;
        V s[height][per_row], v[height];
        for (int r = 0; r < height; ++r) {
            v[r] = hn::Set(d, y[row + r]);
            for (int j = 0; j < per_row; ++j)
                s[r][j] = hn::Zero(d);
        }
        for (int b = 0; b < Triangle::blocks(bands, p); ++b, sums += block) {
            const int first = row + b * width;
            HWY_ALIGN double corner[width];
            double* HWY_RESTRICT to = product + first;
            // The sums of the rows already include the products with the panel's own columns, so `to` is
            // restored in these columns.
            if (b == 0) std::copy_n(to, height, corner);
#pragma GCC unroll 2
            for (int j = 0; j < per_block; ++j) {
                const V right = hn::LoadU(d, y + first + j * doubles);
                V t = hn::LoadU(d, to + j * doubles);
#pragma GCC unroll 6
                for (int r = 0; r < height; ++r) {
                    const V m = hn::LoadU(d, sums + r * width + j * doubles);
                    s[r][j % per_row] = hn::MulAdd(m, right, s[r][j % per_row]);
                    t = hn::MulAdd(m, v[r], t);
                }
                hn::StoreU(t, d, to + j * doubles);
            }
            if (b == 0) std::copy_n(corner, height, to);
        }
        for (int r = 0; r < height; ++r) {
            double parts[sums_of];
            for (int j = 0; j < per_row; ++j)
                hn::StoreU(s[r][j], d, parts + j * doubles);
            product[row + r] += total_of(parts);
        }
    }
}

double solve(int bands, double* sums, const double* apart, double count, double ridge, const double* apart_d,
             float* factor, double* work, float* single, double* bound) {
    const size_t room = Triangle::room(bands);
    double* const y = work;
    double* const product = work + room;
    float* const inverses = single + room;
    // d becomes a column of the sums with mean zero, so the factorisation includes it.
    double* panel = sums;
    for (int a = 0; a < bands; ++a) {
        if (a > 0 && a % height == 0) panel += Triangle::blocks(bands, a / height - 1) * block;
        panel[place(a % height, bands - a / height * height)] = apart_d[a] * (count - 1);
    }
    for (size_t i = 0; i < room; ++i)
        product[i] = apart[i] / count;
    factorise({sums, apart, product, 1.0 / (count - 1)}, bands, static_cast<float>(ridge), factor, inverses);
    std::fill_n(single, room, 0.0f);
    substitute(bands, factor, inverses, single);
    std::fill_n(product, room, 0.0);
    for (size_t i = 0; i < room; ++i)
        y[i] = static_cast<double>(single[i]);
    multiply(bands, sums, y, product);
    // M y = (sums y - apart (apart'y) / n) / (n-1) + ridge y
    double along = 0, first = 0, correction = 0, squared = 0;
    for (int b = 0; b < bands; ++b)
        along += apart[b] * y[b];
    for (int b = 0; b < bands; ++b) {
        const double r =
            apart_d[b] - ((product[b] - apart[b] * (along / count)) / (count - 1) + ridge * y[b]);
        first += apart_d[b] * y[b];
        correction += r * y[b];
        squared += r * r;
    }
    // d'M^-1 d = d'y + y'r + r'M^-1 r. The last term, which is left out, is at most r'r / ridge.
    *bound = squared / ridge;
    return first + correction;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::detect
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::detect {
namespace {
HWY_EXPORT(deviations);
HWY_EXPORT(slide);
HWY_EXPORT(solve);
} // namespace

const RingKernels& ring_kernels() {
    static const RingKernels kernels = [] {
        // The first dispatched call chooses the instruction set. Function pointers that were taken before it
        // would choose the instruction set again in every call.
        simd_kernels();
        return RingKernels{HWY_DYNAMIC_DISPATCH(deviations), HWY_DYNAMIC_DISPATCH(slide),
                           HWY_DYNAMIC_DISPATCH(solve)};
    }();
    return kernels;
}

} // namespace hsi::detect
#endif
