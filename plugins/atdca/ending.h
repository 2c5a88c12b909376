// SPDX-License-Identifier: MIT
// Reasons why a target search ends.
#pragma once

#include "core/counted.h"

#include <string>

namespace hsi::atdca {

/// The reason why a search ended.
enum class Ending { complete, rank, nothing_positive, p_vanished };

/// Returns the text of Detection::warning; empty if the search is complete.
inline std::string ending_text(Ending ending, size_t found, int wanted) {
    if (ending == Ending::complete) return {};
    const char* why =
        ending == Ending::rank
            ? "the squared residual of the best other pixel is below 1e-6 of the first target's squared norm"
        : ending == Ending::nothing_positive
            ? "no other pixel projects to a positive value"
            : "the vector p is zero, since the vector of ones is a combination of the targets";
    return "found only " + std::to_string(found) + " of " + counted(wanted, "target") + ": " + why;
}

} // namespace hsi::atdca
