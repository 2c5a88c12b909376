// SPDX-License-Identifier: MIT
// Sums of doubles without rounding: the order of the terms does not matter, not even in the last bit. So
// statistics of a scene do not depend on tiles and threads.
#pragma once

#include "core/exact_digits.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
    // Digits hold 32 bits (and a sign) after normalise() and may grow to 63 in between.
    std::array<int64_t, exact::digits> m_digit{};
    int64_t m_pending = 0; ///< additions since the last normalise()
    double m_special = 0;  ///< sum of the non-finite terms
};

/// Many exact sums, such as the entries of a matrix. They are kept digit by digit, and only those digits that
/// any term reached take memory: a few of them for terms of like magnitude, so that a matrix stays in the
/// caches.
class ExactSums {
  public:
    explicit ExactSums(size_t count) : m_count(count) {}
    size_t size() const { return m_count; }
    /// Adds x[k] to sum first + k, k < count.
    void add(size_t first, const double* x, size_t count);
    void add(const ExactSums& other); ///< merges sums of the same number
    double value(size_t i) const;     ///< equal to ExactSum's for the same terms
    /// The value of sum i plus these terms, which may cancel it.
    double value_with(size_t i, std::initializer_list<double> terms) const;
    /// The most memory that `count` sums take when every term is a multiple of 2^lowest and, like every sum,
    /// below 2^highest in magnitude (the least and the greatest doubles: -1074, 1024).
    static uint64_t most_bytes(size_t count, int lowest, int highest);
    uint64_t bytes() const; ///< that they take now
    /// The sums without rounding, for another process; add_packed() adds them there, set_packed() replaces
    /// the sums there. \throws Error when their count differs.
    std::string packed() const;
    void add_packed(std::string_view packed);
    void set_packed(std::string_view packed);

    // Adds sums from elsewhere (cuda/exact_sums.cuh), digit by digit, after expect():
    /// `additions` to each sum at most, fewer than exact::most_terms.
    void expect(int64_t additions);
    void add_digits(size_t digit, const int64_t* values); ///< one a sum
    void add_special(const double* values);               ///< the sums of terms that are not finite

  private:
    void normalise();
    int64_t* row(size_t digit) {
        if (!m_digit[digit]) {
            m_digit[digit] = std::make_unique<int64_t[]>(m_count);
            m_first = std::min(m_first, digit);
            m_end = std::max(m_end, digit + 1);
        }
        return m_digit[digit].get();
    }
    size_t m_count;
    std::array<std::unique_ptr<int64_t[]>, exact::digits> m_digit; ///< of all sums; none: zero
    size_t m_first = exact::digits, m_end = 0;                     ///< of those that are there
    std::vector<double> m_special;                                 ///< empty: zero
    int64_t m_pending = 0; ///< the most additions to any sum since the last normalise()
};

} // namespace hsi::math
