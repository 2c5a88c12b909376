// SPDX-License-Identifier: MIT
#include "math/exact_terms.h"

#include "core/exact_digits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/exact_terms.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::math {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using TermTag = hn::ScalableTag<double>;
using TermBits = hn::RebindToUnsigned<TermTag>;
using TermDigits = hn::RebindToSigned<TermTag>;

/// Adds the digits in the lanes of `mask` to `to`.
template <class Mask>
HWY_INLINE void add_digit(Mask mask, hn::Vec<TermDigits> digits, int64_t* to) {
    const TermDigits i;
    hn::StoreU(hn::Add(hn::LoadU(i, to), hn::IfThenElseZero(hn::RebindMask(i, mask), digits)), i, to);
}

/// Splits each lane as exact::split() does, and adds the digits.
size_t add_terms(const double* x, size_t count, void* sums, FindDigit find) {
    const TermTag d;
    const TermBits u;
    const TermDigits i;
    constexpr uint64_t all_ones = 0x7ff, leading = uint64_t{1} << 52;
    constexpr uint64_t offset = -1075 - exact::base_exponent;
    const size_t lanes = hn::Lanes(d);
    const auto zero = hn::Zero(u), one = hn::Set(u, 1);
    uint64_t digit = exact::digits;
    int64_t *low = nullptr, *middle = nullptr, *high = nullptr;
    size_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        const auto bits = hn::BitCast(u, hn::LoadU(d, x + k));
        const auto stored = hn::And(hn::ShiftRight<52>(bits), hn::Set(u, all_ones));
        if (!hn::AllFalse(u, hn::Eq(stored, hn::Set(u, all_ones)))) return k;
        const auto subnormal = hn::Eq(stored, zero);
        const auto magnitude = hn::Or(hn::And(bits, hn::Set(u, leading - 1)),
                                      hn::IfThenZeroElse(subnormal, hn::Set(u, leading)));
        const auto position = hn::Add(hn::IfThenElse(subnormal, one, stored), hn::Set(u, offset));
        const auto shift = hn::And(position, hn::Set(u, 31)), number = hn::ShiftRight<5>(position);
        const auto lower = hn::Shl(magnitude, shift),
                   upper = hn::Shr(hn::ShiftRight<1>(magnitude), hn::Sub(hn::Set(u, 63), shift));
        const auto sign = hn::BitCast(i, hn::Sub(zero, hn::ShiftRight<63>(bits)));
        const auto with_sign = [&](hn::Vec<TermBits> v)
                                   HWY_ATTR { return hn::Sub(hn::Xor(hn::BitCast(i, v), sign), sign); };
        const auto v0 = with_sign(hn::And(lower, hn::Set(u, 0xffffffffu))),
                   v1 = with_sign(hn::ShiftRight<32>(lower)), v2 = with_sign(upper);
        // Neighbouring terms have similar magnitudes, so one iteration is nearly always enough. Terms of zero
        // are skipped.
        auto left = hn::Ne(magnitude, zero);
        while (!hn::AllFalse(u, left)) {
            const auto here = hn::And(left, hn::Eq(number, hn::Set(u, digit)));
            if (hn::AllFalse(u, here)) {
                HWY_ALIGN uint64_t numbers[hn::MaxLanes(TermBits())];
                hn::Store(number, u, numbers);
                digit = numbers[hn::FindFirstTrue(u, left)];
                low = find(sums, digit);
                middle = find(sums, digit + 1);
                high = find(sums, digit + 2);
                continue;
            }
            add_digit(here, v0, low + k);
            add_digit(here, v1, middle + k);
            add_digit(here, v2, high + k);
            left = hn::AndNot(here, left);
        }
    }
    return k;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::math
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::math {

HWY_EXPORT(add_terms);

size_t add_terms(const double* x, size_t count, void* sums, FindDigit find) {
    return HWY_DYNAMIC_DISPATCH(add_terms)(x, count, sums, find);
}

} // namespace hsi::math
#endif
