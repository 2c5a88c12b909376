// SPDX-License-Identifier: MIT
#include "indices/expression.h"

#include "core/error.h"
#include "core/text.h"
#include "math/elementary.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace hsi::indices {
namespace {

constexpr double no_result = std::numeric_limits<double>::quiet_NaN();
/// Maximum depth of brackets and signs, since parsing and evaluating need memory for each level.
constexpr size_t most_nested = 100;
constexpr size_t longest_text = 10000, longest_shown = 80; ///< lengths in characters
/// A wavelength without a unit that is below this value is in micrometres.
constexpr double micrometres_below = 100;

/// Returns the value if it is within the range of Float32, otherwise nodata.
double kept(double v) { return std::fabs(v) <= std::numeric_limits<float>::max() ? v : no_result; }
double truth(bool known, bool v) { return known ? (v ? 1.0 : 0.0) : no_result; }
bool known(double a, double b) { return a == a && b == b; }

double power(double a, double b) {
    if (b == 2) return a * a; // the most common exponent, computed with a single rounding
    if (a >= 0) return math::pow(a, b);
    if (b != std::floor(b)) return no_result;
    const double size = math::pow(-a, b);
    return std::fmod(b, 2) == 0 ? size : -size;
}

double hyperbolic_tangent(double x) {
    const double square = x * x;
    // For small x, the quotient below would lose digits. The error of this series is below 1e-15.
    if (square < 0.0025)
        return x * (1 + square * (-1.0 / 3 +
                                  square * (2.0 / 15 + square * (-17.0 / 315 + square * (62.0 / 2835)))));
    return 1 - 2 / (math::exp(2 * x) + 1);
}

template <class F>
void each(double* a, F f) {
    for (size_t i = 0; i < block; ++i)
        a[i] = kept(f(a[i]));
}
template <class F>
void each(double* a, const double* b, F f) {
    for (size_t i = 0; i < block; ++i)
        a[i] = kept(f(a[i], b[i]));
}

} // namespace

/// A recursive descent parser. Each function parses one level and appends its steps.
class Parser {
  public:
    explicit Parser(Expression& e) : m(e), m_text(e.m_text) {}

    void parse() {
        level(0);
        if (!at_end()) fail("an operator is expected, not '" + word() + "'");
    }

  private:
    using Act = Expression::Act;

    [[noreturn]] void fail(const std::string& what, const std::string& advice = {}) const {
        throw UsageError("cannot read '" + shown() + "' at column " + std::to_string(m_at + 1) + ": " + what,
                         advice);
    }
    /// Returns the text for messages. If the text is long, returns the part around the error.
    std::string shown() const {
        if (m_text.size() <= longest_shown) return m_text;
        const size_t begin =
            std::min(m_at - std::min(m_at, longest_shown / 2), m_text.size() - longest_shown);
        return (begin > 0 ? "..." : "") + m_text.substr(begin, longest_shown) +
               (begin + longest_shown < m_text.size() ? "..." : "");
    }
    void skip_blanks() {
        while (m_at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_at])) != 0)
            ++m_at;
    }
    bool at_end() {
        skip_blanks();
        return m_at == m_text.size();
    }
    char look(size_t ahead = 0) const { return m_at + ahead < m_text.size() ? m_text[m_at + ahead] : '\0'; }
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    static bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
    /// Returns the word at the current position, for messages.
    std::string word() const {
        size_t end = m_at;
        while (end < m_text.size() && (is_letter(m_text[end]) || is_digit(m_text[end])))
            ++end;
        return m_text.substr(m_at, std::clamp<size_t>(end - m_at, 1, longest_shown));
    }
    bool take(std::string_view sign) {
        skip_blanks();
        return take_here(sign);
    }
    bool take_here(std::string_view sign) {
        if (m_text.compare(m_at, sign.size(), sign) != 0) return false;
        m_at += sign.size();
        return true;
    }
    void need(std::string_view sign) {
        if (take(sign)) return;
        fail("'" + std::string(sign) + "' is missing" + (at_end() ? "" : " before '" + word() + "'"));
    }

    void push(Act act, size_t arguments, double number = 0, size_t operand = 0) {
        m.m_steps.push_back({act, number, operand});
        m_height += 1 - arguments;
        m.m_depth = std::max(m.m_depth, m_height);
    }

    /// Parses binary operators that group from the left, starting with the lowest precedence.
    void level(size_t depth) {
        struct Operator {
            size_t level;
            std::string_view sign;
            Act act;
        };
        static constexpr Operator operators[] = {
            {0, "||", Act::either},     {1, "&&", Act::both},    {2, "<=", Act::less_equal},
            {2, ">=", Act::more_equal}, {2, "==", Act::equal},   {2, "!=", Act::unequal},
            {2, "<", Act::less},        {2, ">", Act::more},     {3, "+", Act::add},
            {3, "-", Act::subtract},    {4, "*", Act::multiply}, {4, "/", Act::divide}};
        if (depth == 5) return sign();
        level(depth + 1);
        for (bool more = true; more;) {
            more = false;
            for (const Operator& one : operators)
                if (one.level == depth && take(one.sign)) {
                    level(depth + 1);
                    push(one.act, 2);
                    more = true;
                    break;
                }
        }
    }

    void sign() {
        if (++m_nested > most_nested)
            fail("more than " + std::to_string(most_nested) + " levels of brackets and signs");
        const bool minus = take("-");
        if (minus || take("+")) {
            sign();
            if (minus) push(Act::minus, 1);
        } else {
            value();
            if (take("^") || take("**")) {
                sign();
                push(Act::power, 2);
            }
        }
        --m_nested;
    }

    void value() {
        if (at_end()) fail("a value is missing");
        const char c = look(), next = look(1);
        if (is_digit(c) || (c == '.' && is_digit(next))) return push(Act::number, 0, number());
        if ((c == 'r' || c == 'R') && (is_digit(next) || next == '.')) return wavelength();
        if ((c == 'b' || c == 'B') && is_digit(next)) return band();
        if (is_letter(c)) return function();
        if (!take("(")) fail("a value is expected, not '" + word() + "'");
        level(0);
        need(")");
    }

    double number() {
        std::string_view rest = std::string_view(m_text).substr(m_at);
        const auto value = take_number(rest);
        if (!value) fail("'" + word() + "' is not a number");
        m_at = m_text.size() - rest.size();
        return *value;
    }
    /// Returns a wavelength in nm, from a number and its unit.
    double nanometres() {
        const size_t begin = m_at;
        const double value = number();
        const bool is_nm = take_here("nm");
        const double nm = !is_nm && (take_here("um") || value < micrometres_below) ? value * 1000 : value;
        if (is_letter(look())) fail("'" + word() + "' is not a unit", "Write r800, r800nm or r0.8um.");
        if (!(value > 0)) {
            m_at = begin;
            fail("a wavelength must be above 0");
        }
        return nm;
    }

    void wavelength() {
        const size_t begin = m_at++;
        const double nm = nanometres();
        operand(begin, {Operand::Of::wavelength, nm, nm, {}});
    }
    void band() {
        const size_t begin = m_at++;
        const double n = number();
        if (n < 1 || n != std::floor(n) || n > 1e6) {
            m_at = begin;
            fail("bands are counted from 1");
        }
        operand(begin, {Operand::Of::band, n, n, {}});
    }
    void operand(size_t begin, Operand one) {
        if (is_letter(look()) || look() == '.') fail("an operator is expected, not '" + word() + "'");
        one.text = m_text.substr(begin, m_at - begin);
        auto& all = m.m_operands;
        const auto same = std::find_if(all.begin(), all.end(), [&](const Operand& other) {
            return other.of == one.of && other.from == one.from && other.to == one.to;
        });
        const auto index = static_cast<size_t>(same - all.begin());
        m.m_places.push_back({begin, m_at - begin, index});
        if (same == all.end()) all.push_back(std::move(one));
        push(Act::operand, 0, 0, index);
    }

    void function() {
        using Of = Operand::Of;
        static constexpr std::pair<std::string_view, Of> of_ranges[] = {
            {"mean", Of::mean},       {"sum", Of::sum},           {"min", Of::least}, {"max", Of::greatest},
            {"std", Of::deviation},   {"slope", Of::slope},       {"area", Of::area}, {"edge", Of::edge},
            {"argmin", Of::least_at}, {"argmax", Of::greatest_at}};
        struct Call {
            std::string_view name;
            size_t least, most;
            Act act;
        };
        static constexpr Call calls[] = {{"abs", 1, 1, Act::absolute},      {"sqrt", 1, 1, Act::root},
                                         {"exp", 1, 1, Act::exponential},   {"ln", 1, 1, Act::logarithm},
                                         {"log10", 1, 1, Act::logarithm10}, {"tanh", 1, 1, Act::hyperbolic},
                                         {"min", 1, 1000, Act::smaller},    {"max", 1, 1000, Act::larger},
                                         {"if", 3, 3, Act::choose}};
        const size_t begin = m_at;
        const std::string name = word();
        const auto called = [&](const auto& one) { return equal_names(one, name); };
        const auto* const of = std::find_if(std::begin(of_ranges), std::end(of_ranges),
                                            [&](const auto& one) { return called(one.first); });
        const auto* const call = std::find_if(std::begin(calls), std::end(calls),
                                              [&](const auto& one) { return called(one.name); });
        if (of == std::end(of_ranges) && call == std::end(calls)) {
            std::vector<std::string> names;
            for (const auto& one : of_ranges)
                names.emplace_back(one.first);
            for (const auto& one : calls)
                names.emplace_back(one.name);
            if (equal_names(name, "r"))
                fail("a range must be the argument of a function", "Write mean(r[630:690]).");
            fail("'" + name + "' is not a function", did_you_mean(name, names));
        }
        m_at += name.size();
        need("(");
        skip_blanks();
        if (of != std::end(of_ranges) && (look() == 'r' || look() == 'R') && look(1) == '[')
            return range(begin, of->second);
        if (call == std::end(calls)) fail("'" + name + "' takes a range", "Write " + name + "(r[630:690]).");
        size_t count = 0;
        do {
            level(0);
            // A function with several arguments is applied to two values at a time.
            if (++count > 1 && call->act != Act::choose) push(call->act, 2);
        } while (count < call->most && take(","));
        if (count < call->least) fail("'" + name + "' takes " + std::to_string(call->least) + " values");
        need(")");
        if (call->most == 1) push(call->act, 1);
        if (call->act == Act::choose) push(call->act, 3);
    }
    void range(size_t begin, Operand::Of of) {
        m_at += 2;
        skip_blanks();
        const double from = nanometres();
        need(":");
        skip_blanks();
        const double to = nanometres();
        if (to < from) fail("the range ends before it begins");
        need("]");
        need(")");
        operand(begin, {of, from, to, {}});
    }

    Expression& m;
    const std::string& m_text;
    size_t m_at = 0, m_nested = 0, m_height = 0;
};

Expression::Expression(std::string text) : m_text(std::move(text)) {
    if (m_text.size() > longest_text)
        throw UsageError("an expression has " + std::to_string(m_text.size()) + " characters, but at most " +
                             std::to_string(longest_text) + " are read",
                         "Divide it into several expressions.");
    Parser(*this).parse();
}

std::string Expression::with_operands(const std::function<std::string(size_t)>& name) const {
    std::string out;
    size_t done = 0;
    for (const Place& place : m_places) {
        out.append(m_text, done, place.at - done).append(name(place.operand));
        done = place.at + place.length;
    }
    return out.append(m_text, done);
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity): a flat list of operations
void Expression::evaluate(const double* values, double* stack) const {
    double* top = stack - block; // the last row in use
    for (const Step& step : m_steps) {
        double *const a = top - block, *const b = top; // the two operands
        switch (step.act) {
        case Act::number:
            std::fill_n(top += block, block, step.number);
            continue;
        case Act::operand:
            std::copy_n(values + step.operand * block, block, top += block);
            continue;
        case Act::minus:
            each(b, [](double x) { return -x; });
            continue;
        case Act::absolute:
            each(b, [](double x) { return std::fabs(x); });
            continue;
        case Act::root:
            each(b, [](double x) { return std::sqrt(x); });
            continue;
        case Act::exponential:
            each(b, math::exp);
            continue;
        case Act::logarithm:
            each(b, math::log);
            continue;
        case Act::logarithm10:
            each(b, math::log10);
            continue;
        case Act::hyperbolic:
            each(b, hyperbolic_tangent);
            continue;
        case Act::add:
            each(a, b, [](double x, double y) { return x + y; });
            break;
        case Act::subtract:
            each(a, b, [](double x, double y) { return x - y; });
            break;
        case Act::multiply:
            each(a, b, [](double x, double y) { return x * y; });
            break;
        case Act::divide:
            each(a, b, [](double x, double y) { return x / y; });
            break;
        case Act::power:
            each(a, b, [](double x, double y) { return known(x, y) ? power(x, y) : no_result; });
            break;
        case Act::less:
            each(a, b, [](double x, double y) { return truth(known(x, y), x < y); });
            break;
        case Act::less_equal:
            each(a, b, [](double x, double y) { return truth(known(x, y), x <= y); });
            break;
        case Act::more:
            each(a, b, [](double x, double y) { return truth(known(x, y), x > y); });
            break;
        case Act::more_equal:
            each(a, b, [](double x, double y) { return truth(known(x, y), x >= y); });
            break;
        case Act::equal:
            each(a, b, [](double x, double y) { return truth(known(x, y), x == y); });
            break;
        case Act::unequal:
            each(a, b, [](double x, double y) { return truth(known(x, y), x != y); });
            break;
        case Act::both:
            each(a, b, [](double x, double y) { return truth(known(x, y), x != 0 && y != 0); });
            break;
        case Act::either:
            each(a, b, [](double x, double y) { return truth(known(x, y), x != 0 || y != 0); });
            break;
        case Act::smaller:
            each(a, b, [](double x, double y) { return known(x, y) ? std::min(x, y) : no_result; });
            break;
        case Act::larger:
            each(a, b, [](double x, double y) { return known(x, y) ? std::max(x, y) : no_result; });
            break;
        case Act::choose:
            top -= 2 * block;
            for (size_t i = 0; i < block; ++i)
                top[i] = top[i] != top[i] ? no_result : top[i] != 0 ? a[i] : b[i];
            continue;
        }
        top -= block; // Two operands were replaced by one result.
    }
}

} // namespace hsi::indices
