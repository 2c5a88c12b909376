// SPDX-License-Identifier: MIT
#include "detect/detect_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "detect/detect_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::detect {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 16>;
using V = hn::Vec<D>;

using F = hn::CappedTag<float, 32>;
using W = hn::Vec<F>;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }
/// Returns the position of a pixel's value in a row. Values are stored in strips of two registers; a strip is
/// stored row by row.
HWY_INLINE int64_t place(int64_t pixel, int row, int height, int64_t strip) {
    return pixel / strip * strip * height + row * strip + pixel % strip;
}

void take(const float* in, ptrdiff_t band_stride, int bands, const int* rows, const double* centre,
          int height, double* HWY_RESTRICT z, float* HWY_RESTRICT singles, double* HWY_RESTRICT magnitude) {
    const D d;
    const hn::Rebind<float, D> df;
    const int64_t n = lanes(), wide = 2 * static_cast<int64_t>(hn::Lanes(F()));
    std::fill_n(magnitude, block_pixels, 0.0);
    for (int b = 0; b < bands; ++b) {
        const float* HWY_RESTRICT x = in + b * band_stride;
        const int row = rows[b];
        const V c = hn::Set(d, row >= 0 ? centre[row] : 0.0);
        for (int64_t i = 0; i < block_pixels; i += n) {
            const V v = hn::PromoteTo(d, hn::LoadU(df, x + i));
            hn::StoreU(hn::Add(hn::LoadU(d, magnitude + i), hn::Abs(v)), d, magnitude + i);
            if (row < 0) continue;
            const V apart = hn::Sub(v, c);
            hn::StoreU(apart, d, z + place(i, row, height, 2 * n));
            if (singles) hn::StoreU(hn::DemoteTo(df, apart), df, singles + place(i, row, height, wide));
        }
    }
}

void square(const double* HWY_RESTRICT z, int height, double* HWY_RESTRICT squared) {
    const D d;
    const int64_t n = lanes();
    for (int64_t i = 0; i < block_pixels; i += 2 * n) {
        V s0 = hn::Zero(d), s1 = hn::Zero(d);
        const double* HWY_RESTRICT at = z + i * height;
        for (int r = 0; r < height; ++r, at += 2 * n) {
            const V v0 = hn::LoadU(d, at), v1 = hn::LoadU(d, at + n);
            s0 = hn::MulAdd(v0, v0, s0);
            s1 = hn::MulAdd(v1, v1, s1);
        }
        hn::StoreU(s0, d, squared + i);
        hn::StoreU(s1, d, squared + i + n);
    }
}

void take_logs(double* HWY_RESTRICT z, int height, double part, double* HWY_RESTRICT logs,
               double* HWY_RESTRICT greatest, double* HWY_RESTRICT sum, double* HWY_RESTRICT product) {
    const D d;
    const int64_t n = lanes();
    for (int64_t i = 0; i < block_pixels; i += n) {
        // Each row of a strip has 2 n contiguous values.
        const int64_t first = i / (2 * n) * (2 * n) * height + i % (2 * n);
        V most = hn::LoadU(d, z + first);
        for (int r = 1; r < height; ++r)
            most = hn::Max(most, hn::LoadU(d, z + first + r * 2 * n));
        const V least = hn::Mul(most, hn::Set(d, part));
        V s = hn::Zero(d), p = hn::Zero(d);
        for (int r = 0; r < height; ++r) {
            const V v = hn::Max(least, hn::LoadU(d, z + first + r * 2 * n));
            const V l = hn::Log(d, v);
            hn::StoreU(v, d, z + first + r * 2 * n);
            hn::StoreU(l, d, logs + first + r * 2 * n);
            s = hn::Add(s, v);
            p = hn::MulAdd(v, l, p);
        }
        hn::StoreU(most, d, greatest + i);
        hn::StoreU(s, d, sum + i);
        hn::StoreU(p, d, product + i);
    }
}

void centre(const double* HWY_RESTRICT spectra, int height, double* HWY_RESTRICT z,
            double* HWY_RESTRICT inverse) {
    const D d;
    const int64_t n = lanes(), strip = 2 * n;
    const V share = hn::Set(d, 1.0 / height), least = hn::Set(d, 1e-12 * height), one = hn::Set(d, 1.0);
    for (int64_t i = 0; i < block_pixels; i += strip) {
        double* HWY_RESTRICT at = z + i * height;
        for (int64_t k = 0; k < strip; ++k)
            for (int r = 0; r < height; ++r)
                at[r * strip + k] = spectra[(i + k) * height + r];
        for (int64_t half = 0; half < strip; half += n) {
            V sum = hn::Zero(d), squares = sum;
            for (int r = 0; r < height; ++r)
                sum = hn::Add(sum, hn::LoadU(d, at + r * strip + half));
            const V mean = hn::Mul(sum, share);
            for (int r = 0; r < height; ++r) {
                const V apart = hn::Sub(hn::LoadU(d, at + r * strip + half), mean);
                hn::StoreU(apart, d, at + r * strip + half);
                squares = hn::MulAdd(apart, apart, squares);
            }
            const V root = hn::Div(one, hn::Sqrt(squares));
            hn::StoreU(hn::IfThenElseZero(hn::Ge(squares, least), root), d, inverse + i + half);
        }
    }
}

void add_fit(const double* HWY_RESTRICT products, const double* HWY_RESTRICT inverse, const FitLine& line,
             int how, double* HWY_RESTRICT scores, double* HWY_RESTRICT depths) {
    const D d;
    const int64_t n = lanes();
    const V zero = hn::Zero(d), one = hn::Set(d, 1.0), weight = hn::Set(d, line.weight),
            fit = hn::Set(d, line.fit), depth = hn::Set(d, line.depth);
    const V least_fit = hn::Set(d, line.least_fit), least_depth = hn::Set(d, line.least_depth),
            none = hn::Set(d, -std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < block_pixels; i += n) {
        const V product = hn::LoadU(d, products + i), scale = hn::LoadU(d, inverse + i);
        const auto is = hn::And(hn::Gt(product, zero), hn::Gt(scale, zero));
        const V f = hn::IfThenElseZero(is, hn::Min(hn::Mul(hn::Mul(product, scale), fit), one));
        const V deep = hn::IfThenElseZero(is, hn::Mul(product, depth));
        const auto strong = hn::And(hn::Ge(f, least_fit), hn::Ge(deep, least_depth));
        const V score = how == 0 ? f : how == 1 ? deep : hn::Mul(f, deep);
        const V s = hn::MulAdd(weight, score, hn::LoadU(d, scores + i)),
                t = hn::MulAdd(weight, deep, hn::LoadU(d, depths + i));
        hn::StoreU(hn::IfThenElse(strong, s, none), d, scores + i);
        hn::StoreU(hn::IfThenElse(strong, t, none), d, depths + i);
    }
}

void tune(const double* HWY_RESTRICT y, int components, const double* HWY_RESTRICT t,
          const double* HWY_RESTRICT weights, const double* HWY_RESTRICT signal,
          double* HWY_RESTRICT filtered, double* HWY_RESTRICT apart) {
    const D d;
    const int64_t n = lanes();
    const V zero = hn::Zero(d), one = hn::Set(d, 1.0), share = hn::Set(d, 1.0 / components);
    for (int64_t i = 0; i < block_pixels; i += n) {
        V sum = zero, squares = zero;
        for (int k = 0; k < components; ++k)
            sum = hn::MulAdd(hn::Set(d, weights[k]), hn::LoadU(d, y + k * block_pixels + i), sum);
        const V a = hn::Min(hn::Max(sum, zero), one), rest = hn::Sub(one, a), left = hn::Mul(rest, rest);
        for (int k = 0; k < components; ++k) {
            const V off = hn::NegMulAdd(a, hn::Set(d, t[k]), hn::LoadU(d, y + k * block_pixels + i));
            const V variance = hn::MulAdd(left, hn::Set(d, signal[k]), one);
            squares = hn::Add(squares, hn::Div(hn::Mul(off, off), variance));
        }
        hn::StoreU(sum, d, filtered + i);
        hn::StoreU(hn::Sqrt(hn::Mul(squares, share)), d, apart + i);
    }
}

/// Multiplies six rows of a panel by a strip: s[2 k] and s[2 k + 1] are row k times the strip's pixels.
HWY_INLINE void times_panel(const double* HWY_RESTRICT z, const double* HWY_RESTRICT panel, int columns,
                            V* HWY_RESTRICT s) {
    const D d;
    const int64_t n = lanes();
    V a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, e0 = a0, e1 = a0, f0 = a0, f1 = a0,
      g0 = a0, g1 = a0;
    for (int c = 0; c < columns; ++c, z += 2 * n, panel += Panels::height) {
        const V z0 = hn::LoadU(d, z), z1 = hn::LoadU(d, z + n);
        V m = hn::Set(d, panel[0]);
        a0 = hn::MulAdd(m, z0, a0);
        a1 = hn::MulAdd(m, z1, a1);
        m = hn::Set(d, panel[1]);
        b0 = hn::MulAdd(m, z0, b0);
        b1 = hn::MulAdd(m, z1, b1);
        m = hn::Set(d, panel[2]);
        c0 = hn::MulAdd(m, z0, c0);
        c1 = hn::MulAdd(m, z1, c1);
        m = hn::Set(d, panel[3]);
        e0 = hn::MulAdd(m, z0, e0);
        e1 = hn::MulAdd(m, z1, e1);
        m = hn::Set(d, panel[4]);
        f0 = hn::MulAdd(m, z0, f0);
        f1 = hn::MulAdd(m, z1, f1);
        m = hn::Set(d, panel[5]);
        g0 = hn::MulAdd(m, z0, g0);
        g1 = hn::MulAdd(m, z1, g1);
    }
    s[0] = a0, s[1] = a1, s[2] = b0, s[3] = b1, s[4] = c0, s[5] = c1;
    s[6] = e0, s[7] = e1, s[8] = f0, s[9] = f1, s[10] = g0, s[11] = g1;
}

void multiply(const double* z, int height, const Panels& rows, double* HWY_RESTRICT out) {
    const D d;
    const int64_t n = lanes();
    V s[2 * Panels::height];
    for (int64_t i = 0; i < block_pixels; i += 2 * n)
        for (int p = 0; p < rows.count(); ++p) {
            times_panel(z + i * height, rows.values(p), rows.columns(p), s);
            for (int k = 0; k < Panels::height; ++k) {
                double* const to = out + (p * Panels::height + k) * block_pixels + i;
                hn::StoreU(s[2 * k], d, to);
                hn::StoreU(s[2 * k + 1], d, to + n);
            }
        }
}

/// Does the same as times_panel() in single precision, for a strip of two registers of floats.
HWY_INLINE void times_singles(const float* HWY_RESTRICT z, const float* HWY_RESTRICT panel, int columns,
                              W* HWY_RESTRICT s) {
    const F f;
    const auto n = static_cast<int64_t>(hn::Lanes(f));
    W a0 = hn::Zero(f), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, e0 = a0, e1 = a0, f0 = a0, f1 = a0,
      g0 = a0, g1 = a0;
    for (int c = 0; c < columns; ++c, z += 2 * n, panel += Panels::height) {
        const W z0 = hn::LoadU(f, z), z1 = hn::LoadU(f, z + n);
        W m = hn::Set(f, panel[0]);
        a0 = hn::MulAdd(m, z0, a0);
        a1 = hn::MulAdd(m, z1, a1);
        m = hn::Set(f, panel[1]);
        b0 = hn::MulAdd(m, z0, b0);
        b1 = hn::MulAdd(m, z1, b1);
        m = hn::Set(f, panel[2]);
        c0 = hn::MulAdd(m, z0, c0);
        c1 = hn::MulAdd(m, z1, c1);
        m = hn::Set(f, panel[3]);
        e0 = hn::MulAdd(m, z0, e0);
        e1 = hn::MulAdd(m, z1, e1);
        m = hn::Set(f, panel[4]);
        f0 = hn::MulAdd(m, z0, f0);
        f1 = hn::MulAdd(m, z1, f1);
        m = hn::Set(f, panel[5]);
        g0 = hn::MulAdd(m, z0, g0);
        g1 = hn::MulAdd(m, z1, g1);
    }
    s[0] = a0, s[1] = a1, s[2] = b0, s[3] = b1, s[4] = c0, s[5] = c1;
    s[6] = e0, s[7] = e1, s[8] = f0, s[9] = f1, s[10] = g0, s[11] = g1;
}

/// Adds the squares of six rows to `squared`, in the rows' order, for the strip of floats.
HWY_INLINE void add_squares_of_singles(const W* HWY_RESTRICT s, double* HWY_RESTRICT squared) {
    const D d;
    const F f;
    const hn::Rebind<float, D> df;
    const int64_t n = lanes();
    const auto half = static_cast<int64_t>(hn::Lanes(f));
    HWY_ALIGN float row[64];
    for (int k = 0; k < Panels::height; ++k) {
        hn::StoreU(s[2 * k], f, row);
        hn::StoreU(s[2 * k + 1], f, row + half);
        for (int64_t j = 0; j < 2 * half; j += n) {
            const V y = hn::PromoteTo(d, hn::LoadU(df, row + j));
            hn::StoreU(hn::MulAdd(y, y, hn::LoadU(d, squared + j)), d, squared + j);
        }
    }
}

void quadratic(const double* z, const float* singles, int height, const Panels& matrix,
               double* HWY_RESTRICT squared) {
    const D d;
    const int64_t n = lanes(), wide = 2 * static_cast<int64_t>(hn::Lanes(F()));
    V s[2 * Panels::height];
    W t[2 * Panels::height];
    std::fill_n(squared, block_pixels, 0.0);
    for (int64_t i = 0; i < block_pixels; i += wide)
        for (int p = 0; p < matrix.count(); ++p) {
            if (const float* const panel = matrix.singles(p)) {
                times_singles(singles + i * height, panel, matrix.columns(p), t);
                add_squares_of_singles(t, squared + i);
                continue;
            }
            for (int64_t at = i; at < i + wide; at += 2 * n) {
                times_panel(z + at * height, matrix.values(p), matrix.columns(p), s);
                V q0 = hn::LoadU(d, squared + at), q1 = hn::LoadU(d, squared + at + n);
                for (int k = 0; k < Panels::height; ++k) {
                    q0 = hn::MulAdd(s[2 * k], s[2 * k], q0);
                    q1 = hn::MulAdd(s[2 * k + 1], s[2 * k + 1], q1);
                }
                hn::StoreU(q0, d, squared + at);
                hn::StoreU(q1, d, squared + at + n);
            }
        }
}

const char* target() { return hwy::TargetName(HWY_TARGET); }

} // namespace HWY_NAMESPACE
} // namespace hsi::detect
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::detect {
namespace {
HWY_EXPORT(take);
HWY_EXPORT(square);
HWY_EXPORT(take_logs);
HWY_EXPORT(centre);
HWY_EXPORT(add_fit);
HWY_EXPORT(tune);
HWY_EXPORT(multiply);
HWY_EXPORT(quadratic);
HWY_EXPORT(target);
} // namespace

Panels::Panels(const std::vector<double>& matrix, int columns) {
    const auto width = static_cast<size_t>(columns);
    for (size_t first = 0; first * width < matrix.size(); first += height) {
        add(matrix, width, first, width);
        m_is_single.push_back(false);
    }
}

Panels::Panels(const std::vector<double>& matrix, const std::vector<double>& scales, double length) {
    const size_t width = scales.size();
    for (size_t first = 0; first * width < matrix.size(); first += height) {
        const size_t end = std::min(width, first + height);
        add(matrix, width, first, end);
        // Single precision has few digits for very small values, and their inverses are too large for it.
        constexpr double least = 1e-30, greatest = 1e30;
        const bool holds = std::all_of(scales.begin(), scales.begin() + static_cast<ptrdiff_t>(end),
                                       [](double s) { return s >= least && s <= greatest; });
        double longest = 0;
        for (size_t k = first; k < end; ++k) {
            double squared = 0;
            for (size_t c = 0; c <= k; ++c) {
                const double v = matrix[k * width + c] * scales[c];
                squared += v * v;
            }
            longest = std::max(longest, squared);
        }
        m_is_single.push_back(holds && longest <= length * length);
    }
    m_singles.assign(m_values.begin(), m_values.end());
}

void Panels::add(const std::vector<double>& matrix, size_t width, size_t first, size_t count) {
    m_begin.push_back(m_values.size());
    m_columns.push_back(static_cast<int>(count));
    for (size_t c = 0; c < count; ++c)
        for (size_t k = first; k < first + height; ++k)
            m_values.push_back(k * width < matrix.size() ? matrix[k * width + c] : 0.0);
}

const SimdKernels& simd_kernels() {
    static const SimdKernels kernels = [] {
        // The first dispatched call chooses the instruction set. Function pointers that were taken before it
        // would choose the instruction set again in every call.
        const char* const name = HWY_DYNAMIC_DISPATCH(target)();
        return SimdKernels{
            HWY_DYNAMIC_DISPATCH(take),     HWY_DYNAMIC_DISPATCH(square),    HWY_DYNAMIC_DISPATCH(take_logs),
            HWY_DYNAMIC_DISPATCH(centre),   HWY_DYNAMIC_DISPATCH(add_fit),   HWY_DYNAMIC_DISPATCH(tune),
            HWY_DYNAMIC_DISPATCH(multiply), HWY_DYNAMIC_DISPATCH(quadratic), name};
    }();
    return kernels;
}

} // namespace hsi::detect
#endif
