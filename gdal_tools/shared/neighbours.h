// SPDX-License-Identifier: MIT
// Pixels that touch other pixels which are to be independent of them: neighbours share materials, light and
// mixtures, and methods with a neighbourhood (windows, profiles, Markov random fields) have seen both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::tools {

/// From this share of the judged pixels on a warning is due: an accuracy may then be better by more points
/// than anybody would overlook.
inline constexpr double most_touching = 0.05;

inline bool touching_counts(int64_t touching, int64_t of) {
    return touching > 0 && static_cast<double>(touching) > most_touching * static_cast<double>(of);
}

/// For the pixels `places` (line * samples + sample, ascending): true for each that has a neighbour among
/// them (of eight) which parted(i, j) separates from it. parted() is symmetric.
template <class Parted>
std::vector<char> touching_pixels(const std::vector<int64_t>& places, int64_t samples, Parted parted) {
    std::vector<char> touches(places.size(), 0);
    size_t under = 0; // the first pixel that is not before the place at the lower left
    for (size_t i = 0; i < places.size(); ++i) {
        const int64_t column = places[i] % samples, below = places[i] + samples;
        const bool first = column == 0, last = column + 1 == samples;
        const auto meet = [&](size_t j) {
            if (parted(i, j)) touches[i] = touches[j] = 1;
        };
        if (!last && i + 1 < places.size() && places[i + 1] == places[i] + 1) meet(i + 1);
        while (under < places.size() && places[under] < below - (first ? 0 : 1))
            ++under;
        for (size_t j = under; j < places.size() && places[j] <= below + (last ? 0 : 1); ++j)
            meet(j);
    }
    return touches;
}

} // namespace hsi::tools
