// SPDX-License-Identifier: MIT
// Detects pixels that touch other pixels from which they should be independent. Neighbouring pixels share
// materials, light and mixtures. Methods with a neighbourhood (windows, profiles, Markov random fields) use
// the values of both pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::tools {

/// If more than this fraction of the assessed pixels touch training pixels, a warning is printed, because the
/// accuracy may be noticeably too high.
inline constexpr double most_touching = 0.05;

inline bool touching_counts(int64_t touching, int64_t of) {
    return touching > 0 && static_cast<double>(touching) > most_touching * static_cast<double>(of);
}

/// Returns, for each pixel of a list, 1 if it touches (8 neighbours) a pixel from which it should be
/// independent, else 0. `places`: line * samples + sample, ascending. parted(i, j): true if pixels i and j of
/// the list should be independent (training and test); must be symmetric.
template <class Parted>
std::vector<char> touching_pixels(const std::vector<int64_t>& places, int64_t samples, Parted parted) {
    std::vector<char> touches(places.size(), 0);
    size_t under = 0; // index of the first pixel that is not before the lower left neighbour of pixel i
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
