// SPDX-License-Identifier: MIT
// Generates random numbers by their index instead of one after another (Philox 4x32-10), so that any thread,
// tile or rank generates only the numbers of its own pixels.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011.
//
// Normal numbers use our own logarithm and sine. Both functions consist of additions, multiplications,
// divisions and roots in double precision that are rounded one by one, so they have the same bits on every
// processor, in every instruction set, and on GPUs (compiled with -fmad=false).
#pragma once

#include "core/host_device.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hsi::math {

struct PhiloxWords {
    uint32_t words[4];
    HSI_HOST_DEVICE uint32_t operator[](size_t i) const { return words[i]; }
    bool operator==(const PhiloxWords& o) const { return std::memcmp(words, o.words, sizeof words) == 0; }
};

inline constexpr uint32_t philox_multipliers[2] = {0xD2511F53, 0xCD9E8D57};
inline constexpr uint32_t philox_key_steps[2] = {0x9E3779B9, 0xBB67AE85};
inline constexpr int philox_rounds = 10;

/// Returns four pseudo-random words for a counter and a key (low word first).
HSI_HOST_DEVICE inline PhiloxWords philox(const PhiloxWords& counter, uint64_t key) {
    constexpr uint32_t m0 = philox_multipliers[0], m1 = philox_multipliers[1], s0 = philox_key_steps[0],
                       s1 = philox_key_steps[1];
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < philox_rounds; ++round) {
        const uint64_t a = uint64_t{m0} * c0, b = uint64_t{m1} * c2;
        c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
        c1 = static_cast<uint32_t>(b);
        c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
        c3 = static_cast<uint32_t>(a);
        k0 += s0;
        k1 += s1;
    }
    return {{c0, c1, c2, c3}};
}

/// Returns a number between 0 and 1, excluding both.
HSI_HOST_DEVICE inline double open_uniform(uint32_t word) {
    return (static_cast<double>(word) + 0.5) * 0x1p-32;
}

/// The arithmetic A of normal_pair() for one double at a time. The arithmetic for vectors has the same
/// functions. A word has 64 bits; of_word() converts words below 2^33 to doubles.
struct PlainNumbers {
    using Number = double;
    using Word = uint64_t;
    HSI_HOST_DEVICE static double number(double v) { return v; }
    HSI_HOST_DEVICE static double of_word(uint64_t w) { return static_cast<double>(w); }
    HSI_HOST_DEVICE static double add(double a, double b) { return a + b; }
    HSI_HOST_DEVICE static double sub(double a, double b) { return a - b; }
    HSI_HOST_DEVICE static double mul(double a, double b) { return a * b; }
    HSI_HOST_DEVICE static double div(double a, double b) { return a / b; }
    HSI_HOST_DEVICE static double root(double a) { return sqrt(a); }
    HSI_HOST_DEVICE static uint64_t plus(uint64_t w, uint64_t v) { return w + v; }
    HSI_HOST_DEVICE static uint64_t minus(uint64_t a, uint64_t b) { return a - b; }
    template <int Bits>
    HSI_HOST_DEVICE static uint64_t up(uint64_t w) {
        return w << Bits;
    }
    template <int Bits>
    HSI_HOST_DEVICE static uint64_t down(uint64_t w) {
        return w >> Bits;
    }
    /// Returns `odd` if the lowest bit of w is set, else `even`.
    HSI_HOST_DEVICE static double choose(uint64_t w, double even, double odd) {
        return (w & 1) != 0 ? odd : even;
    }
    /// Returns -v if the lowest bit of w is set, else v.
    HSI_HOST_DEVICE static double negate(uint64_t w, double v) { return (w & 1) != 0 ? -v : v; }
    HSI_HOST_DEVICE static uint64_t bits(double v) {
        uint64_t w;
        memcpy(&w, &v, sizeof w);
        return w;
    }
    HSI_HOST_DEVICE static double from_bits(uint64_t w) {
        double v;
        memcpy(&v, &w, sizeof v);
        return v;
    }
};

#include "math/normal_pair-inl.h"

struct NormalNumbers {
    double z[4];
    HSI_HOST_DEVICE double operator[](size_t i) const { return z[i]; }
    const double* begin() const { return z; }
    const double* end() const { return z + 4; }
};

/// Converts four words to four independent standard normal numbers, by the method of Box and Muller.
HSI_HOST_DEVICE inline NormalNumbers normal_numbers(const PhiloxWords& words) {
    NormalNumbers n;
    normal_pair<PlainNumbers>(words[0], words[1], n.z[0], n.z[1]);
    normal_pair<PlainNumbers>(words[2], words[3], n.z[2], n.z[3]);
    return n;
}

} // namespace hsi::math
