// SPDX-License-Identifier: MIT
// Detects pixels that touch other pixels from which they should be independent. Neighbours share materials,
// light and mixtures, and methods with a neighbourhood (windows, profiles, Markov random fields) use both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::tools {

/// The fraction of the assessed pixels from which on a warning is given: the accuracy may then be noticeably
/// too high.
inline constexpr double most_touching = 0.05;

inline bool touching_counts(int64_t touching, int64_t of) {
    return touching > 0 && static_cast<double>(touching) > most_touching * static_cast<double>(of);
}

/// Returns true for each of the pixels `places` (line * samples + sample, ascending) that has a neighbour
/// among them (of eight) for which parted(i, j) is true. parted() is symmetric.
template <class Parted>
std::vector<char> touching_pixels(const std::vector<int64_t>& places, int64_t samples, Parted parted) {
    std::vector<char> touches(places.size(), 0);
    size_t under = 0; // the first pixel that is not before the lower left neighbour
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
