// SPDX-License-Identifier: MIT
#include "math/eigen_vectors.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/eigen_vectors.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::math {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// The numbers per row of a strip, which fill two of the widest registers. A strip of 224 rows fits into a
/// first-level cache.
constexpr size_t strip = 16;
using StripTag = hn::CappedTag<double, 8>;
constexpr size_t strip_registers = strip / hn::MaxLanes(StripTag());

/// Applies H_k to rows k + 1 .. of a strip of columns, with `strip` numbers per row.
HWY_INLINE void reflect(double* HWY_RESTRICT rows, const double* HWY_RESTRICT essential,
                        const double* HWY_RESTRICT scaled, size_t length, double tau) {
    const StripTag d;
    using V = hn::Vec<StripTag>;
    constexpr size_t lanes = hn::MaxLanes(StripTag());
    V along[strip_registers];
#pragma GCC unroll 16
    for (size_t r = 0; r < strip_registers; ++r)
        along[r] = hn::Zero(d);
    const double* HWY_RESTRICT const below = rows + strip;
    for (size_t i = 0; i < length; ++i) {
        const V e = hn::Set(d, essential[i]);
#pragma GCC unroll 16
        for (size_t r = 0; r < strip_registers; ++r)
            along[r] = hn::Add(along[r], hn::Mul(e, hn::Load(d, below + i * strip + r * lanes)));
    }
    const V t = hn::Set(d, tau);
#pragma GCC unroll 16
    for (size_t r = 0; r < strip_registers; ++r) {
        double* HWY_RESTRICT const first = rows + r * lanes;
        along[r] = hn::Add(along[r], hn::Load(d, first));
        hn::Store(hn::Sub(hn::Load(d, first), hn::Mul(t, along[r])), d, first);
    }
    for (size_t i = 0; i < length; ++i) {
        const V e = hn::Set(d, scaled[i]);
#pragma GCC unroll 16
        for (size_t r = 0; r < strip_registers; ++r) {
            double* HWY_RESTRICT const to = rows + (i + 1) * strip + r * lanes;
            hn::Store(hn::Sub(hn::Load(d, to), hn::Mul(along[r], e)), d, to);
        }
    }
}

/// Computes `strip` columns of the product, beginning with column j, and stores the columns before n.
/// essential: column k begins at [k * n]. scaled: `essential` with column k multiplied by tau[k].
void reflected_columns(const double* HWY_RESTRICT essential, const double* HWY_RESTRICT scaled,
                       const double* HWY_RESTRICT tau, size_t n, size_t j, double* HWY_RESTRICT rows,
                       double* HWY_RESTRICT out) {
    std::fill_n(rows, n * strip, 0.0);
    const size_t end = std::min(j + strip, n);
    for (size_t c = j; c < end; ++c)
        rows[c * strip + (c - j)] = 1;
    // Reflection k does not change columns before column k + 1.
    for (size_t k = std::min(n - 2, end - 1); k-- > 0;)
        if (tau[k] != 0)
            reflect(rows + (k + 1) * strip, essential + k * n, scaled + k * n, n - k - 2, tau[k]);
    for (size_t c = j; c < end; ++c)
        for (size_t i = 0; i < n; ++i)
            out[c * n + i] = rows[i * strip + (c - j)];
}

/// Applies all rotations to a strip of rows, with `strip` numbers per column.
void rotate_strip(double* HWY_RESTRICT columns, const PlaneRotation* HWY_RESTRICT rotations, size_t count) {
    const StripTag d;
    using V = hn::Vec<StripTag>;
    constexpr size_t lanes = hn::MaxLanes(StripTag());
    for (size_t at = 0; at < count;) {
        // In a run of consecutive columns, the second column of a rotation is the first column of the next
        // one.
        size_t k = static_cast<size_t>(rotations[at].column), end = at + 1;
        while (end < count && rotations[end].column == rotations[end - 1].column + 1)
            ++end;
        V x[strip_registers];
#pragma GCC unroll 8
        for (size_t r = 0; r < strip_registers; ++r)
            x[r] = hn::Load(d, columns + k * strip + r * lanes);
        for (; at < end; ++at, ++k) {
            const V c = hn::Set(d, rotations[at].c), s = hn::Set(d, rotations[at].s);
            double* HWY_RESTRICT const here = columns + k * strip;
#pragma GCC unroll 8
            for (size_t r = 0; r < strip_registers; ++r) {
                const V y = hn::Load(d, here + strip + r * lanes);
                hn::Store(hn::Sub(hn::Mul(c, x[r]), hn::Mul(s, y)), d, here + r * lanes);
                x[r] = hn::Add(hn::Mul(c, y), hn::Mul(s, x[r]));
            }
        }
#pragma GCC unroll 8
        for (size_t r = 0; r < strip_registers; ++r)
            hn::Store(x[r], d, columns + k * strip + r * lanes);
    }
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::math
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/aligned_allocator.h>

namespace hsi::math {
namespace {

HWY_EXPORT(reflected_columns);
HWY_EXPORT(rotate_strip);

constexpr size_t strip_numbers = 16; ///< equal to `strip`

/// Calls work(first number) for all strips of a row of n numbers.
template <class Work>
void for_strips(size_t n, const Spread& spread, const Work& work) {
    const auto strips = static_cast<int64_t>((n + strip_numbers - 1) / strip_numbers);
    const std::function<void(int64_t)> one = [&](int64_t unit) {
        work(static_cast<size_t>(unit) * strip_numbers);
    };
    if (spread && strips > 1) return spread(strips, one);
    for (int64_t unit = 0; unit < strips; ++unit)
        one(unit);
}

} // namespace

std::vector<double> product_of_reflections(const double* packed, const std::vector<double>& tau, int n,
                                           const Spread& spread) {
    const auto size = static_cast<size_t>(n);
    std::vector<double> product(size * size);
    if (n < 3) {
        for (size_t i = 0; i < size; ++i)
            product[i * (size + 1)] = 1;
        return product;
    }
    std::vector<double> essential(size * size), scaled(size * size);
    for (size_t k = 0; k + 2 < size; ++k)
        for (size_t i = 0; i < size - k - 2; ++i) {
            const double v = packed[k * size + k + 2 + i];
            essential[k * size + i] = v;
            scaled[k * size + i] = tau[k] * v;
        }
    for_strips(size, spread, [&](size_t j) {
        const auto rows = hwy::AllocateAligned<double>(size * strip_numbers);
        HWY_DYNAMIC_DISPATCH(reflected_columns)
        (essential.data(), scaled.data(), tau.data(), size, j, rows.get(), product.data());
    });
    return product;
}

void rotate_columns(std::vector<double>& matrix, int n, const std::vector<PlaneRotation>& rotations,
                    const Spread& spread) {
    const auto size = static_cast<size_t>(n);
    for_strips(size, spread, [&](size_t i) {
        const auto columns = hwy::AllocateAligned<double>(size * strip_numbers);
        const size_t count = std::min(strip_numbers, size - i);
        for (size_t k = 0; k < size; ++k) {
            std::copy_n(matrix.data() + k * size + i, count, columns.get() + k * strip_numbers);
            std::fill_n(columns.get() + k * strip_numbers + count, strip_numbers - count, 0.0);
        }
        HWY_DYNAMIC_DISPATCH(rotate_strip)(columns.get(), rotations.data(), rotations.size());
        for (size_t k = 0; k < size; ++k)
            std::copy_n(columns.get() + k * strip_numbers, count, matrix.data() + k * size + i);
    });
}

} // namespace hsi::math
#endif
