// SPDX-License-Identifier: MIT
// Medians of several columns at once.
#include "destripe/medians.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "destripe/medians_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::destripe {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, columns_at_once>;
using V = hn::Vec<D>;
constexpr D d;
constexpr auto step = static_cast<int64_t>(columns_at_once);

/// Describes how a pivot divides values: the number of values up to it, the greatest of them, and the least
/// of the others.
struct Division {
    V count, below, above;
};

HWY_INLINE Division divide(const double* HWY_RESTRICT rows, int64_t lines, V pivot) {
    const V one = hn::Set(d, 1.0), most = hn::Set(d, left_out), least = hn::Set(d, -left_out);
    // Alternate lines use separate registers, since the latency of an addition exceeds the time for a line.
    V count0 = hn::Zero(d), below0 = least, above0 = most, count1 = count0, below1 = least, above1 = most;
    const auto take = [&](const double* at, V& count, V& below, V& above) HWY_ATTR {
        const V v = hn::LoadU(d, at);
        const auto in = hn::Le(v, pivot);
        count = hn::Add(count, hn::IfThenElseZero(in, one));
        below = hn::Max(below, hn::IfThenElse(in, v, least));
        above = hn::Min(above, hn::IfThenElse(in, most, v));
    };
    int64_t line = 0;
    for (; line + 2 <= lines; line += 2) {
        take(rows + line * step, count0, below0, above0);
        take(rows + (line + 1) * step, count1, below1, above1);
    }
    if (line < lines) take(rows + line * step, count0, below0, above0);
    return {hn::Add(count0, count1), hn::Max(below0, below1), hn::Min(above0, above1)};
}

HWY_INLINE void find_medians_of(const double* HWY_RESTRICT rows, int64_t lines, double* HWY_RESTRICT kept,
                                double* HWY_RESTRICT median) {
    const V zero = hn::Zero(d), one = hn::Set(d, 1.0), two = hn::Set(d, 2.0), infinite = hn::Set(d, left_out);
    // `low` and `high` are bounds of the value with index `half` in ascending order. `before` values are less
    // than `low`, and `upto` values are not greater than `high`.
    const Division all = divide(rows, lines, hn::Set(d, std::numeric_limits<double>::max()));
    V low = infinite, high = all.below;
    for (int64_t line = 0; line < lines; ++line)
        low = hn::Min(low, hn::LoadU(d, rows + line * step));
    const V n = all.count, half = hn::Floor(hn::Div(n, two));
    // `lower` and `upper` are the values with the indices half - 1 and half, once they are known.
    V before = zero, upto = n, lower = low, upper = low;
    hn::StoreU(n, d, kept);
    auto open = hn::And(hn::Gt(n, zero), hn::Lt(low, high));
    for (int pass = 0; !hn::AllFalse(d, open); ++pass) {
        // If most values are close together, bisection is faster than interpolation.
        const V share = pass % 3 == 2 ? hn::Set(d, 0.5)
                                      : hn::Div(hn::Sub(half, before), hn::Max(hn::Sub(upto, before), one));
        V pivot = hn::Add(low, hn::Mul(hn::Sub(high, low), share));
        pivot = hn::IfThenElse(hn::And(hn::Ge(pivot, low), hn::Lt(pivot, high)), pivot, low);
        const Division at = divide(rows, lines, pivot);
        const auto met = hn::And(open, hn::Eq(at.count, half)), few = hn::And(open, hn::Lt(at.count, half)),
                   many = hn::And(open, hn::Gt(at.count, half));
        lower = hn::IfThenElse(met, at.below, lower);
        upper = hn::IfThenElse(met, at.above, upper);
        low = hn::IfThenElse(few, at.above, low);
        before = hn::IfThenElse(few, at.count, before);
        high = hn::IfThenElse(many, at.below, high);
        upto = hn::IfThenElse(many, at.count, upto);
        // If the bounds are equal, all values from `before` to `half` are equal.
        const auto equal = hn::And(hn::Or(few, many), hn::Eq(low, high));
        lower = hn::IfThenElse(equal, low, lower);
        upper = hn::IfThenElse(equal, low, upper);
        open = hn::AndNot(equal, hn::Or(few, many));
    }
    const auto odd = hn::Gt(hn::Sub(n, hn::Mul(two, half)), zero);
    const V result = hn::IfThenElse(odd, upper, hn::Div(hn::Add(lower, upper), two));
    hn::StoreU(hn::IfThenElseZero(hn::Gt(n, zero), result), d, median);
}

void find_medians(const double* rows, int64_t lines, ColumnNumbers& kept, ColumnNumbers& median) {
    for (size_t at = 0; at < columns_at_once; at += hn::Lanes(d))
        find_medians_of(rows + at, lines, kept.data() + at, median.data() + at);
}

void fill_rows(const CubeView<float>& in, int band, int64_t first, bool steps, const float* keep,
               double* HWY_RESTRICT rows) {
    const hn::Rebind<float, D> f;
    const V infinite = hn::Set(d, left_out), zero = hn::Zero(d);
    for (int64_t line = 0; line < in.lines; ++line, rows += columns_at_once) {
        const float* const from = in.row(band, line) + first;
        const float* const kept = keep == nullptr ? nullptr : keep + line * in.samples + first;
        for (size_t at = 0; at < columns_at_once; at += hn::Lanes(d)) {
            V v = hn::PromoteTo(d, hn::LoadU(f, from + at));
            if (steps) v = hn::Sub(v, hn::PromoteTo(d, hn::LoadU(f, from + at - 1)));
            v = hn::Add(v, zero); // turns -0 into 0
            if (kept != nullptr) {
                auto in_use = hn::Gt(hn::PromoteTo(d, hn::LoadU(f, kept + at)), zero);
                if (steps)
                    in_use = hn::And(in_use, hn::Gt(hn::PromoteTo(d, hn::LoadU(f, kept + at - 1)), zero));
                v = hn::IfThenElse(in_use, v, infinite);
            }
            hn::StoreU(v, d, rows + at);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace hsi::destripe
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::destripe {

HWY_EXPORT(find_medians);
HWY_EXPORT(fill_rows);

void find_medians(const double* rows, int64_t lines, ColumnNumbers& kept, ColumnNumbers& median) {
    HWY_DYNAMIC_DISPATCH(find_medians)(rows, lines, kept, median);
}

void fill_rows(const CubeView<float>& in, int band, int64_t first, bool steps, const float* keep,
               double* rows) {
    HWY_DYNAMIC_DISPATCH(fill_rows)(in, band, first, steps, keep, rows);
}

} // namespace hsi::destripe
#endif
