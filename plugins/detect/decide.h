// SPDX-License-Identifier: MIT
// From scores to the best target.
#pragma once

#include "detect/detect.h"

namespace hsi::detect {

class Decider {
  public:
    Decider(bool small_is_best, const Decision& decision) : m_small(small_is_best), m_decision(decision) {}
    bool map() const { return m_decision.map; }
    /// 1..count, the first of the best scores; 0 where they are not within the threshold.
    float best(const double* scores, size_t count) const;

  private:
    const bool m_small;
    const Decision m_decision;
};

/// Scores and map of a pixel; `valid` says whether it has any.
void write_decision(const Decider& decider, const double* scores, size_t count, bool valid, int64_t line,
                    int64_t sample, const std::vector<CubeView<float>>& out);

} // namespace hsi::detect
