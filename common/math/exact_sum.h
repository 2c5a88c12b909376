// SPDX-License-Identifier: MIT
// Sums of doubles without rounding: the order of the terms does not matter, not even in the last bit. This is
// what makes statistics of a scene independent of tiles and threads.
#pragma once

#include <array>
#include <cstdint>

namespace hsi::math {

/// A fixed-point accumulator that covers the whole range of double (Kulisch). Adding costs a few nanoseconds;
/// use it for the partial sums of fixed blocks, not for every value.
class ExactSum {
  public:
    void add(double x);              ///< NaN and infinities are remembered and returned by value()
    void add(const ExactSum& other); ///< merges another sum
    /// The sum, rounded once (to within one unit in the last place; the same for every order of terms).
    double value() const;

  private:
    void normalise();
    // Digit i counts units of 2^(32 i - 1152). Digits hold 32 bits after normalise() and may grow to 63 in
    // between.
    static constexpr int digits = 72;
    std::array<int64_t, digits> m_digit{};
    int m_pending = 0;    ///< additions since the last normalise()
    double m_special = 0; ///< sum of the non-finite terms
};

} // namespace hsi::math
