// SPDX-License-Identifier: MIT
#include "detect/decide.h"

#include "core/cube_view.h"
#include "detect/detect_simd.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>

namespace hsi::detect {

const char* simd_target() { return simd_kernels().target; }

void Detection::exchange(parallel::Group& ranks) {
    CountingOperation::exchange(ranks);
    std::vector<int64_t> counts{m_few, m_flat};
    ranks.add_up("pixels without a ring", counts);
    m_few = counts[0];
    m_flat = counts[1];
}

float Decider::best(const double* scores, size_t count) const {
    constexpr double equal = 1e-10; // relative: the scores of equal targets differ at most by rounding
    const double sign = m_small ? -1 : 1;
    double greatest = sign * scores[0];
    for (size_t k = 1; k < count; ++k)
        greatest = std::max(greatest, sign * scores[k]);
    const double least = greatest - equal * std::fabs(greatest);
    size_t first = 0;
    while (!(sign * scores[first] >= least))
        ++first;
    if (m_decision.threshold && !(sign * scores[first] >= sign * *m_decision.threshold)) return 0;
    return static_cast<float>(first + 1);
}

void write_decision(const Decider& decider, const double* scores, size_t count, bool valid, int64_t line,
                    int64_t sample, const std::vector<CubeView<float>>& out) {
    for (size_t k = 0; k < count; ++k)
        out[0].row(static_cast<int>(k), line)[sample] = valid ? static_cast<float>(scores[k]) : no_value;
    if (decider.map()) out[1].row(0, line)[sample] = valid ? decider.best(scores, count) : no_value;
}

} // namespace hsi::detect
