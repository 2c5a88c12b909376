// SPDX-License-Identifier: MIT
// Counter-based random numbers: a value depends only on its coordinates, so the order of tiles and threads
// does not matter. The mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014).
#pragma once

#include <cstdint>

namespace hsi::synth {

inline constexpr uint64_t golden = 0x9e3779b97f4a7c15u;

inline uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/// Returns random number i of the stream `key`.
inline uint64_t draw(uint64_t key, uint64_t i) { return mix64(key + (i + 1) * golden); }

/// Returns the key of a separate stream of random numbers for a purpose.
inline uint64_t substream(uint64_t key, uint64_t purpose) {
    return mix64(mix64(key + golden) ^ (purpose * golden));
}

/// Returns the random number at (x, y) of the stream `key`. Coordinates may be negative.
inline uint64_t draw(uint64_t key, int64_t x, int64_t y) {
    return draw(draw(key, static_cast<uint64_t>(y)), static_cast<uint64_t>(x));
}

/// Returns the upper 24 bits as a number in [0, 1), which is exact in single precision.
inline float unit(uint64_t h) { return static_cast<float>(h >> 40) * 0x1p-24f; }

} // namespace hsi::synth
