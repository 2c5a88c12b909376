// SPDX-License-Identifier: MIT
// Philox 4x32-10: random numbers by their place instead of one after another, so that any thread, tile or
// rank makes those of its own pixels and draws alone.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace hsi::math {

using PhiloxWords = std::array<uint32_t, 4>;

/// Four words that are random as far as anybody can tell, of a counter and a key (low word first).
inline PhiloxWords philox(PhiloxWords counter, uint64_t key) {
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(b),
                   static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(a)};
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    return counter;
}

/// A number between 0 and 1, neither of which it reaches.
inline double open_uniform(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

/// Four independent numbers of the standard normal law (Box and Muller), of four words.
inline std::array<double, 4> normal_numbers(const PhiloxWords& words) {
    std::array<double, 4> z{};
    for (size_t pair = 0; pair < 4; pair += 2) {
        constexpr double two_pi = 6.283185307179586476925287;
        const double length = std::sqrt(-2 * std::log(open_uniform(words[pair])));
        const double angle = two_pi * open_uniform(words[pair + 1]);
        z[pair] = length * std::cos(angle);
        z[pair + 1] = length * std::sin(angle);
    }
    return z;
}

} // namespace hsi::math
