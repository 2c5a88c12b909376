// SPDX-License-Identifier: MIT
// Sums doubles without rounding. The order of the terms does not change any bit, so statistics of a scene do
// not depend on tiles and threads.
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

/// A fixed-point accumulator that covers the whole range of double (Kulisch). An addition costs a few
/// nanoseconds: use the class for the partial sums of fixed blocks, not for every value.
class ExactSum {
  public:
    void add(double x);              ///< NaN and infinities are remembered and returned by value()
    void add(const ExactSum& other); ///< merges another sum
    /// Returns the sum, rounded once (to within one unit in the last place). The value does not depend on the
    /// order of terms.
    double value() const;

  private:
    void normalise();
    // Digits have 32 bits (and a sign) after normalise(), and may grow to 63 bits between calls.
    std::array<int64_t, exact::digits> m_digit{};
    int64_t m_pending = 0; ///< additions since the last normalise()
    double m_special = 0;  ///< sum of the non-finite terms
};

/// Many exact sums, such as the entries of a matrix. They are stored digit by digit, and only digits that a
/// term has reached take memory. Terms of similar magnitude need few digits, so a matrix stays in the
/// caches.
class ExactSums {
  public:
    explicit ExactSums(size_t count) : m_count(count) {}
    size_t size() const { return m_count; }
    /// Adds x[k] to sum first + k, for k < count.
    void add(size_t first, const double* x, size_t count);
    void add(const ExactSums& other); ///< merges the same number of sums
    double value(size_t i) const;     ///< Equals ExactSum::value() for the same terms.
    /// Returns the value that sum i would have with these further terms, rounded once. The sum itself does
    /// not change. No digit is lost if the terms cancel the sum.
    double value_with(size_t i, std::initializer_list<double> terms) const;
    /// Returns the maximum memory in bytes of `count` sums. Every term must be a multiple of 2^lowest, and
    /// terms and sums must be below 2^highest in magnitude (for all doubles: -1074 and 1024).
    static uint64_t most_bytes(size_t count, int lowest, int highest);
    uint64_t bytes() const; ///< current memory
    /// Returns the sums without rounding, as bytes for another process. There, add_packed() adds these sums
    /// to the sums of an object, or set_packed() replaces the sums of an object by them. \throws Error if the
    /// number of sums differs.
    std::string packed() const;
    void add_packed(std::string_view packed);
    void set_packed(std::string_view packed);

    // The following three functions add sums that were computed elsewhere (cuda/exact_sums.cuh), digit by
    // digit. Call expect() first.
    /// Announces the digits of sums with at most `additions` terms each. `additions` must be below
    /// exact::most_terms.
    void expect(int64_t additions);
    void add_digits(size_t digit, const int64_t* values); ///< `values` has one digit per sum
    void add_special(const double* values); ///< `values` has, per sum, the sum of the non-finite terms

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
    /// Each digit, with one entry per sum; null: zero in all sums.
    std::array<std::unique_ptr<int64_t[]>, exact::digits> m_digit;
    size_t m_first = exact::digits, m_end = 0; ///< range of the digits that are not null
    std::vector<double> m_special;             ///< Sum of the non-finite terms, one per sum; empty: zero.
    int64_t m_pending = 0; ///< Largest number of additions to any sum since the last normalise().
};

} // namespace hsi::math
