// SPDX-License-Identifier: MIT
// Random vectors that are the same for every tiling.
#include "endmembers/endmembers.h"
#include "math/elementary.h"

#include <cmath>

namespace hsi::endmembers {

uint64_t RandomVectors::next() {
    m_state += 0x9E3779B97F4A7C15u;
    uint64_t z = m_state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

std::vector<double> RandomVectors::normal_numbers(int count) {
    constexpr double two_pi = 6.283185307179586476925286766559;
    const auto uniform = [&] { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; };
    std::vector<double> numbers;
    while (static_cast<int>(numbers.size()) < count) {
        const double r = std::sqrt(-2 * math::log(uniform())), angle = two_pi * uniform();
        numbers.push_back(r * math::cos(angle));
        numbers.push_back(r * math::sin(angle));
    }
    numbers.resize(static_cast<size_t>(count));
    return numbers;
}

} // namespace hsi::endmembers
