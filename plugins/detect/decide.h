// SPDX-License-Identifier: MIT
// Selects the best target from scores.
#pragma once

#include "detect/detect.h"

namespace hsi::detect {

class Decider {
  public:
    Decider(bool small_is_best, const Decision& decision) : m_small(small_is_best), m_decision(decision) {}
    bool map() const { return m_decision.map; }
    /// Returns 1..count, the index of the first of the best scores; 0 if they are not within the threshold.
    float best(const double* scores, size_t count) const;

  private:
    const bool m_small;
    const Decision m_decision;
};

/// Writes the scores and the map of a pixel; NaN unless `valid`.
void write_decision(const Decider& decider, const double* scores, size_t count, bool valid, int64_t line,
                    int64_t sample, const std::vector<CubeView<float>>& out);

} // namespace hsi::detect
