// SPDX-License-Identifier: MIT
#include "math/exact_sum.h"

#include "core/byte_pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hsi::math {

namespace {

constexpr int base_exponent =
    -1152; // of digit 0; a multiple of 32, 53 bits and more below the smallest subnormal
constexpr int64_t radix = int64_t{1} << 32;
/// Terms, each below 2^32 in a digit, that a digit of 63 bits holds without overflow.
constexpr int64_t most_pending = int64_t{1} << 28;

/// A finite number as three digits, from `digit` upwards.
struct Term {
    size_t digit;
    int64_t low, middle, high;
};

Term split(double x) {
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    // x = +-magnitude 2^(exponent - 1075); subnormal numbers lack the leading bit and share the lowest
    // exponent.
    const int stored = static_cast<int>(bits >> 52 & 0x7ff);
    const uint64_t magnitude = (bits & ((uint64_t{1} << 52) - 1)) | (stored ? uint64_t{1} << 52 : 0);
    const int position = std::max(stored, 1) - 1075 - base_exponent; // of bit 0, counted from digit 0
    const unsigned __int128 wide = static_cast<unsigned __int128>(magnitude)
                                   << (position % 32); // at most 85 bits
    const int64_t sign = bits >> 63 ? -1 : 1;
    return {static_cast<size_t>(position / 32),
            sign * static_cast<int64_t>(static_cast<uint64_t>(wide) & 0xffffffffu),
            sign * static_cast<int64_t>(static_cast<uint64_t>(wide >> 32) & 0xffffffffu),
            sign * static_cast<int64_t>(static_cast<uint64_t>(wide >> 64))};
}

/// What carrying may need above the highest digit.
constexpr size_t room = 2;

/// The value of `count` digits from number `lowest` upwards, with room above them, rounded.
double round(int64_t* digit, size_t count, size_t lowest) {
    size_t top = 0; // one beyond the highest digit that is not zero
    int64_t carry = 0;
    for (size_t i = 0; i < count + room; ++i) {
        const int64_t v = digit[i] + carry;
        carry = v / radix; // towards zero
        digit[i] = v - carry * radix;
        if (digit[i] != 0) top = i + 1;
    }
    if (top == 0) return 0.0;
    // Every digit is less than the unit of the next one, so the highest has the sign of the whole. Borrowing
    // from above leaves digits of one sign, which are unique for a sum: what follows depends on the exact sum
    // alone.
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
        result += std::ldexp(static_cast<double>(digit[i - 1]),
                             static_cast<int>(32 * (lowest + i - 1)) + base_exponent);
    return static_cast<double>(sign) * result;
}

} // namespace

void ExactSum::add(double x) {
    if (!std::isfinite(x)) {
        m_special += x;
        return;
    }
    const Term t = split(x);
    m_digit[t.digit] += t.low;
    m_digit[t.digit + 1] += t.middle;
    m_digit[t.digit + 2] += t.high;
    if (++m_pending >= most_pending) normalise();
}

void ExactSum::add(const ExactSum& other) {
    if (m_pending + other.m_pending >= most_pending) normalise();
    for (size_t i = 0; i < m_digit.size(); ++i)
        m_digit[i] += other.m_digit[i];
    m_special += other.m_special;
    m_pending += other.m_pending + 1;
}

void ExactSum::normalise() {
    int64_t carry = 0;
    for (size_t i = 0; i + 1 < m_digit.size(); ++i) {
        const int64_t v = m_digit[i] + carry;
        carry = v / radix; // towards zero: a digit keeps the sign of its terms, and nothing runs to the top
        m_digit[i] = v - carry * radix;
    }
    m_digit.back() += carry;
    m_pending = 0;
}

double ExactSum::value() const {
    if (m_special != 0 || std::isnan(m_special)) return m_special;
    std::array<int64_t, digits + room> digit{};
    std::copy(m_digit.begin(), m_digit.end(), digit.begin());
    return round(digit.data(), digits, 0);
}

void ExactSums::add(size_t first, const double* x, size_t count) {
    size_t digit = ExactSum::digits;
    int64_t *low = nullptr, *middle = nullptr, *high = nullptr;
    for (size_t k = 0; k < count; ++k) {
        if (!std::isfinite(x[k])) {
            m_special.resize(m_count);
            m_special[first + k] += x[k];
            continue;
        }
        const Term t = split(x[k]);
        if (t.digit != digit) { // rarely: neighbours are of like magnitude
            digit = t.digit;
            low = row(digit) + first;
            middle = row(digit + 1) + first;
            high = row(digit + 2) + first;
        }
        low[k] += t.low;
        middle[k] += t.middle;
        high[k] += t.high;
    }
    if (++m_pending >= most_pending) normalise();
}

void ExactSums::add(const ExactSums& other) {
    if (m_pending + other.m_pending >= most_pending) normalise();
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

void ExactSums::normalise() {
    for (size_t d = 0; d + 1 < m_digit.size(); ++d) {
        if (!m_digit[d]) continue;
        int64_t* const digit = m_digit[d].get();
        for (size_t i = 0; i < m_count; ++i) {
            const int64_t carry = digit[i] / radix; // towards zero
            if (carry == 0) continue;
            digit[i] -= carry * radix;
            row(d + 1)[i] += carry;
        }
    }
    m_pending = 0;
}

uint64_t ExactSums::most_bytes(size_t count, int lowest, int highest) {
    // From the digit of the last of a term's 53 bits, whichever are set, to that of the highest, and one for
    // carrying; the non-finite terms apart.
    const int digits = (highest - base_exponent) / 32 - (lowest - 52 - base_exponent) / 32 + 2;
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

/// Straight from the message: as sums of their own they would take as much memory again, new each time.
void ExactSums::add_packed(std::string_view packed) {
    ByteUnpacker in(packed);
    if (in.one<size_t>() != m_count) throw Error("internal: exact sums of another number");
    const auto pending = in.one<int64_t>();
    const auto special = in.one<std::vector<double>>();
    if (!special.empty() && special.size() != m_count) throw Error("internal: exact sums of another number");
    if (m_pending + pending >= most_pending) normalise();
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

double ExactSums::value(size_t i) const {
    if (!m_special.empty() && (m_special[i] != 0 || std::isnan(m_special[i]))) return m_special[i];
    size_t lowest = 0, count = 0;
    std::array<int64_t, ExactSum::digits + room> digit{};
    for (size_t d = 0; d < m_digit.size(); ++d) {
        if (!m_digit[d]) continue;
        if (count == 0) lowest = d;
        count = d - lowest + 1;
        digit[d - lowest] = m_digit[d][i];
    }
    return round(digit.data(), count, lowest);
}

double ExactSums::value_with(size_t i, std::initializer_list<double> terms) const {
    if (!m_special.empty() && (m_special[i] != 0 || std::isnan(m_special[i]))) return m_special[i];
    ExactSum sum;
    for (size_t d = 0; d < m_digit.size(); ++d)
        if (m_digit[d]) sum.m_digit[d] = m_digit[d][i];
    sum.normalise(); // digits may have grown to 63 bits
    for (const double x : terms)
        sum.add(x);
    return sum.value();
}

} // namespace hsi::math
