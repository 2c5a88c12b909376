// SPDX-License-Identifier: MIT
#include "math/distributions.h"

#include "core/error.h"
#include "math/elementary.h"

#include <cmath>
#include <limits>

namespace hsi::math {
namespace {

/// Returns the continued fraction of I_x(a, b), which converges fast for x < (a + 1) / (a + b + 2).
double fraction(double x, double a, double b) {
    constexpr double tiny = 1e-300, enough = 1e-15;
    constexpr int most_steps = 200000; // about sqrt(max(a, b)) steps are needed
    const auto apart = [](double v) { return std::fabs(v) < tiny ? tiny : v; };
    double c = 1, d = 1 / apart(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m <= most_steps; ++m) {
        const double k = m;
        const double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
        d = 1 / apart(1 + even * d);
        c = apart(1 + even / c);
        value *= d * c;
        const double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
        d = 1 / apart(1 + odd * d);
        c = apart(1 + odd / c);
        const double step = d * c;
        value *= step;
        if (std::fabs(step - 1) < enough) return value;
    }
    throw Error("the incomplete beta function does not converge");
}

/// Returns I_x(a, b) for an x for which fraction(x, a, b) converges fast; y = 1 - x.
double lower_part(double x, double y, double a, double b) {
    const double log_front = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y);
    return exp(log_front) * fraction(x, a, b) / a;
}

} // namespace

double beta_tail(double x, double a, double b) {
    if (!(a > 0 && b > 0 && std::isfinite(a) && std::isfinite(b)))
        throw Error("internal: a beta distribution without parameters above 0");
    if (!(x > 0)) return 1;
    if (x >= 1) return 0;
    if (x < (a + 1) / (a + b + 2)) return 1 - lower_part(x, 1 - x, a, b);
    return lower_part(1 - x, x, b, a);
}

double beta_quantile_of_tail(double tail, double a, double b) {
    if (!(tail > 0 && tail < 1)) throw Error("internal: a probability outside of 0..1");
    // beta_tail() decreases with x. Halve the interval until its ends are adjacent doubles.
    double low = 0, high = 1;
    for (;;) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) return high;
        (beta_tail(middle, a, b) > tail ? low : high) = middle;
        if (high - low < 4 * std::numeric_limits<double>::epsilon() * low) return high;
    }
}

} // namespace hsi::math
