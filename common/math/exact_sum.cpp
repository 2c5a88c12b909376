// SPDX-License-Identifier: MIT
#include "math/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hsi::math {

namespace {
constexpr int base_exponent =
    -1152; // of digit 0; a multiple of 32, 53 bits and more below the smallest subnormal
constexpr int64_t radix = int64_t{1} << 32;
} // namespace

void ExactSum::add(double x) {
    if (!std::isfinite(x)) {
        m_special += x;
        return;
    }
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    // x = +-magnitude 2^(exponent - 1075); subnormal numbers lack the leading bit and share the lowest exponent.
    const int stored = static_cast<int>(bits >> 52 & 0x7ff);
    const uint64_t magnitude = (bits & ((uint64_t{1} << 52) - 1)) | (stored ? uint64_t{1} << 52 : 0);
    const int position = std::max(stored, 1) - 1075 - base_exponent; // of bit 0, counted from digit 0
    const int digit = position / 32, shift = position % 32;
    const unsigned __int128 wide = static_cast<unsigned __int128>(magnitude) << shift; // at most 85 bits
    const int64_t sign = bits >> 63 ? -1 : 1;
    const auto at = static_cast<size_t>(digit);
    m_digit[at] += sign * static_cast<int64_t>(static_cast<uint64_t>(wide) & 0xffffffffu);
    m_digit[at + 1] += sign * static_cast<int64_t>(static_cast<uint64_t>(wide >> 32) & 0xffffffffu);
    m_digit[at + 2] += sign * static_cast<int64_t>(static_cast<uint64_t>(wide >> 64));
    if (++m_pending >= 1 << 28) normalise();
}

void ExactSum::add(const ExactSum& other) {
    ExactSum tidy = other;
    tidy.normalise();
    for (size_t i = 0; i < m_digit.size(); ++i)
        m_digit[i] += tidy.m_digit[i];
    m_special += other.m_special;
    if (++m_pending >= 1 << 28) normalise();
}

void ExactSum::normalise() {
    int64_t carry = 0;
    for (size_t i = 0; i + 1 < m_digit.size(); ++i) {
        const int64_t v = m_digit[i] + carry;
        const int64_t low = v & (radix - 1); // in [0, 2^32), also for negative v
        carry = (v - low) / radix;
        m_digit[i] = low;
    }
    m_digit.back() += carry; // the sign lives in the top digit
    m_pending = 0;
}

double ExactSum::value() const {
    if (m_special != 0 || std::isnan(m_special)) return m_special;
    // The normalised digits are unique for a sum, so everything below is a function of the exact sum alone.
    ExactSum tidy = *this;
    tidy.normalise();
    const bool negative = tidy.m_digit.back() < 0;
    if (negative) {
        for (auto& d : tidy.m_digit)
            d = -d;
        tidy.normalise();
    }
    double result = 0;
    int used = 0;
    for (int i = digits - 1; i >= 0 && used < 4; --i) {
        const int64_t d = tidy.m_digit[static_cast<size_t>(i)];
        if (d == 0 && used == 0) continue;
        result += std::ldexp(static_cast<double>(d), 32 * i + base_exponent);
        ++used;
    }
    return negative ? -result : result;
}

} // namespace hsi::math
