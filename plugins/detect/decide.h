// SPDX-License-Identifier: MIT
// Selects the best target from scores.
#pragma once

#include "detect/detect.h"

namespace hsi::detect {

class Decider {
  public:
    Decider(bool small_is_best, const Decision& decision) : m_small(small_is_best), m_decision(decision) {}
    bool map() const { return m_decision.map; }
    /// Returns the number of the best target, 1..count. Scores within 1e-10 (relative) of the best score
    /// count as equal to it, and the first of them wins. Returns 0 if the winner's score is worse than the
    /// threshold.
    float best(const double* scores, size_t count) const;

  private:
    const bool m_small;
    const Decision m_decision;
};

/// Writes the scores of a pixel to out[0] and, if the decider makes a map, the best target to out[1]. If the
/// pixel is not valid, writes NaN to both.
void write_decision(const Decider& decider, const double* scores, size_t count, bool valid, int64_t line,
                    int64_t sample, const std::vector<CubeView<float>>& out);

} // namespace hsi::detect
