// SPDX-License-Identifier: MIT
#include "math/exact_sum.h"

#include "core/byte_pack.h"
#include "core/error.h"
#include "core/exact_digits.h"
#include "math/exact_terms.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hsi::math {

namespace {

using exact::split;
using exact::Term;

constexpr int64_t radix = int64_t{1} << 32;

/// Additional digits above the highest digit, for carries.
constexpr size_t room = 2;

/// Returns a digit times 2^exponent.
double scaled(int64_t digit, int exponent) {
    const auto value = static_cast<double>(digit);
    if (exponent < -1022 || exponent > 1023 - 32) return std::ldexp(value, exponent);
    const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52; // bit pattern of 2^exponent
    double power = 0;
    std::memcpy(&power, &bits, sizeof power);
    return value * power;
}

/// Returns the rounded value of `count` digits, of which the first has index `lowest`. The array has `room`
/// more digits for carries.
double round(int64_t* digit, size_t count, size_t lowest) {
    size_t top = 0; // one more than the highest digit that is not zero
    int64_t carry = 0;
    for (size_t i = 0; i < count + room; ++i) {
        const int64_t v = digit[i] + carry;
        carry = v / radix; // rounds towards zero
        digit[i] = v - carry * radix;
        if (digit[i] != 0) top = i + 1;
    }
    if (top == 0) return 0.0;
    // Every digit is less than the unit of the next digit, so the highest digit has the sign of the sum.
    // Borrowing from higher digits makes all signs equal. The digits are then unique for a sum, so all
    // further steps depend only on the exact sum.
    const int64_t sign = digit[top - 1] < 0 ? -1 : 1;
    int64_t borrow = 0;
    for (size_t i = 0; i < top; ++i) {
        int64_t& d = digit[i];
        d = sign * d - borrow;
        borrow = d < 0 ? 1 : 0;
        d += borrow * radix;
    }
    while (digit[top - 1] == 0)
        --top;
    double result = 0;
    for (size_t i = top; i > 0 && i + 4 > top; --i)
        result += scaled(digit[i - 1], static_cast<int>(32 * (lowest + i - 1)) + exact::base_exponent);
    return static_cast<double>(sign) * result;
}

} // namespace

void ExactSum::add(double x) {
    if (!std::isfinite(x)) {
        m_special += x;
        return;
    }
    const Term t = split(x);
    const auto at = static_cast<size_t>(t.digit);
    m_digit[at] += t.low;
    m_digit[at + 1] += t.middle;
    m_digit[at + 2] += t.high;
    if (++m_pending >= exact::most_terms) normalise();
}

void ExactSum::add(const ExactSum& other) {
    if (m_pending + other.m_pending >= exact::most_terms) normalise();
    for (size_t i = 0; i < m_digit.size(); ++i)
        m_digit[i] += other.m_digit[i];
    m_special += other.m_special;
    m_pending += other.m_pending + 1;
}

void ExactSum::normalise() {
    int64_t carry = 0;
    for (size_t i = 0; i + 1 < m_digit.size(); ++i) {
        const int64_t v = m_digit[i] + carry;
        // Rounds towards zero: a digit keeps the sign of its terms, and no carry reaches the highest digit.
        carry = v / radix;
        m_digit[i] = v - carry * radix;
    }
    m_digit.back() += carry;
    m_pending = 0;
}

double ExactSum::value() const {
    if (m_special != 0 || std::isnan(m_special)) return m_special;
    std::array<int64_t, exact::digits + room> digit{};
    std::copy(m_digit.begin(), m_digit.end(), digit.begin());
    return round(digit.data(), exact::digits, 0);
}

void ExactSums::add(size_t first, const double* x, size_t count) {
    struct Place {
        ExactSums& sums;
        size_t first;
    } place{*this, first};
    const FindDigit find = [](void* at, size_t digit) {
        const auto* const p = static_cast<const Place*>(at);
        return p->sums.row(digit) + p->first;
    };
    const auto add_one = [this](size_t i, double term) {
        if (!std::isfinite(term)) {
            m_special.resize(m_count);
            m_special[i] += term;
        } else if (term != 0) {
            const Term t = split(term);
            const auto at = static_cast<size_t>(t.digit);
            row(at)[i] += t.low;
            row(at + 1)[i] += t.middle;
            row(at + 2)[i] += t.high;
        }
    };
    for (size_t k = 0; k < count;) {
        // The number of terms that are added one by one: those of a register with a term that is not finite,
        // or the remaining terms.
        constexpr size_t few = 8;
        place.first = first + k;
        k += add_terms(x + k, count - k, &place, find);
        for (const size_t end = std::min(count, k + few); k < end; ++k)
            add_one(first + k, x[k]);
    }
    if (++m_pending >= exact::most_terms) normalise();
}

void ExactSums::add(const ExactSums& other) {
    if (m_pending + other.m_pending >= exact::most_terms) normalise();
    for (size_t d = 0; d < m_digit.size(); ++d) {
        const int64_t* const from = other.m_digit[d].get();
        if (!from) continue;
        int64_t* const to = row(d);
        for (size_t i = 0; i < m_count; ++i)
            to[i] += from[i];
    }
    if (!other.m_special.empty()) {
        m_special.resize(m_count);
        for (size_t i = 0; i < m_count; ++i)
            m_special[i] += other.m_special[i];
    }
    m_pending += other.m_pending + 1;
}

void ExactSums::add_digits(size_t digit, const int64_t* values) {
    int64_t* const to = row(digit);
    for (size_t i = 0; i < m_count; ++i)
        to[i] += values[i];
}

void ExactSums::add_special(const double* values) {
    m_special.resize(m_count);
    for (size_t i = 0; i < m_count; ++i)
        m_special[i] += values[i];
}

void ExactSums::expect(int64_t additions) {
    if (m_pending + additions >= exact::most_terms) normalise();
    m_pending += additions;
}

void ExactSums::normalise() {
    for (size_t d = 0; d + 1 < m_digit.size(); ++d) {
        if (!m_digit[d]) continue;
        int64_t* const digit = m_digit[d].get();
        for (size_t i = 0; i < m_count; ++i) {
            const int64_t carry = digit[i] / radix; // rounds towards zero
            if (carry == 0) continue;
            digit[i] -= carry * radix;
            row(d + 1)[i] += carry;
        }
    }
    m_pending = 0;
}

uint64_t ExactSums::most_bytes(size_t count, int lowest, int highest) {
    // The digits from the one with the lowest of a term's 53 bits to the one with the highest bit of a sum,
    // plus one digit for carries. Sums of non-finite terms are stored separately.
    const int digits = (highest - exact::base_exponent) / 32 - (lowest - 52 - exact::base_exponent) / 32 + 2;
    return count * static_cast<uint64_t>(digits + 1) * sizeof(int64_t);
}

uint64_t ExactSums::bytes() const {
    const auto rows =
        std::count_if(m_digit.begin(), m_digit.end(), [](const auto& row) { return row != nullptr; });
    return (static_cast<uint64_t>(rows) * m_count + m_special.size()) * sizeof(int64_t);
}

std::string ExactSums::packed() const {
    BytePacker out;
    out.reserve(bytes() + m_digit.size() * (1 + sizeof(uint64_t)) + 4 * sizeof(uint64_t));
    out.put(m_count).put(m_pending).put(m_special);
    for (const auto& digit : m_digit) {
        out.put(digit != nullptr);
        if (digit) out.put(digit.get(), m_count);
    }
    return out.take();
}

/// Adds directly from the message, because unpacking would allocate as much memory again each time.
void ExactSums::add_packed(std::string_view packed) {
    ByteUnpacker in(packed);
    if (in.one<size_t>() != m_count) throw Error("internal: exact sums of another number");
    const auto pending = in.one<int64_t>();
    const auto special = in.one<std::vector<double>>();
    if (!special.empty() && special.size() != m_count) throw Error("internal: exact sums of another number");
    if (m_pending + pending >= exact::most_terms) normalise();
    for (size_t d = 0; d < m_digit.size(); ++d) {
        if (!in.one<bool>()) continue;
        size_t count = 0;
        const std::string_view values = in.view<int64_t>(count);
        if (count != m_count) throw Error("internal: exact sums of another number");
        int64_t* const to = row(d);
        for (size_t i = 0; i < count; ++i) {
            int64_t value = 0;
            std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
            to[i] += value;
        }
    }
    if (!special.empty()) {
        m_special.resize(m_count);
        for (size_t i = 0; i < m_count; ++i)
            m_special[i] += special[i];
    }
    m_pending += pending + 1;
}

void ExactSums::set_packed(std::string_view packed) {
    for (const auto& digit : m_digit)
        if (digit) std::fill_n(digit.get(), m_count, int64_t{0});
    m_special.clear();
    m_pending = 0;
    add_packed(packed);
}

double ExactSums::value(size_t i) const { return value_with(i, {}); }

double ExactSums::value_with(size_t i, std::initializer_list<double> terms) const {
    double special = m_special.empty() ? 0 : m_special[i];
    if (special != 0 || std::isnan(special)) return special;
    // Adds only the digits that this sum or one of the terms reaches.
    size_t first = m_first, end = m_end;
    for (const double x : terms) {
        if (!std::isfinite(x)) {
            special += x;
            continue;
        }
        const auto at = static_cast<size_t>(split(x).digit);
        first = std::min(first, at);
        end = std::max(end, at + 3);
    }
    if (special != 0 || std::isnan(special)) return special;
    if (first >= end) return 0.0;
    std::array<int64_t, exact::digits + room> digit; // only the digits in use are set
    std::fill_n(digit.begin(), end - first + room, int64_t{0});
    for (size_t d = m_first; d < m_end; ++d)
        if (m_digit[d]) digit[d - first] = m_digit[d][i];
    for (const double x : terms) {
        const Term t = split(x);
        int64_t* const to = digit.data() + (static_cast<size_t>(t.digit) - first);
        to[0] += t.low;
        to[1] += t.middle;
        to[2] += t.high;
    }
    return round(digit.data(), end - first, first);
}

} // namespace hsi::math
