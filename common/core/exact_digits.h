// SPDX-License-Identifier: MIT
// Splits a double into digits of a fixed-point number that covers the whole range of double (a Kulisch
// accumulator). Exact sums add these digits, on the CPU (math/exact_sum.h) and on devices
// (cuda/exact_sums.cuh).
#pragma once

#include "core/host_device.h"

#include <cstdint>
#include <cstring>

namespace hsi::exact {

/// Digit i counts units of 2^(32 i + base_exponent). base_exponent is a multiple of 32. It is at least 53
/// below -1074, the exponent of the smallest subnormal number.
inline constexpr int base_exponent = -1152;
inline constexpr int digits = 72;
/// A sum must carry between its digits before it has received this number of terms. Each term adds less than
/// 2^32 to a digit, so no digit then overflows its 63 bits.
inline constexpr int64_t most_terms = int64_t{1} << 28;

/// A finite number as three digits, each with the sign of the number. `low` belongs to the digit with index
/// `digit`, `middle` and `high` to the next two digits.
struct Term {
    int digit;
    int64_t low, middle, high;
};

HSI_HOST_DEVICE inline Term split(double x) {
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    // x = +-magnitude 2^(exponent - 1075). Subnormal numbers lack the leading bit and share the lowest
    // exponent.
    const int stored = static_cast<int>(bits >> 52 & 0x7ff);
    const uint64_t magnitude = (bits & ((uint64_t{1} << 52) - 1)) | (stored ? uint64_t{1} << 52 : 0);
    // The position of bit 0 of `magnitude`, counted in bits from digit 0.
    const int position = (stored > 1 ? stored : 1) - 1075 - base_exponent;
    const int shift = position % 32;
    const uint64_t lower = magnitude << shift,
                   upper = shift > 0 ? magnitude >> (64 - shift) : 0; // together 85 bits
    const int64_t sign = bits >> 63 ? -1 : 1;
    return {position / 32, sign * static_cast<int64_t>(lower & 0xffffffffu),
            sign * static_cast<int64_t>(lower >> 32), sign * static_cast<int64_t>(upper)};
}

} // namespace hsi::exact
