// SPDX-License-Identifier: MIT
// The stages and time steps of a diffusion, and the weights of its Gaussian.
#include "eadp/eadp.h"

#include "core/fork.h"
#include "math/elementary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

namespace hsi::eadp {
namespace {

std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", x);
    return text;
}

/// Returns the points z = 1/tau in Leja order. The order starts at the largest |z|, then always takes the
/// point with the largest product of distances to the chosen points. This order bounds the partial products
/// of the cycle.
std::vector<double> leja_order(const std::vector<double>& taus) {
    std::vector<double> z, log_product(taus.size(), 0.0), ordered;
    for (double t : taus)
        z.push_back(1 / t);
    std::vector<char> used(taus.size());
    for (size_t n = 0; n < taus.size(); ++n) {
        size_t best = taus.size();
        for (size_t i = 0; i < taus.size(); ++i) {
            if (used[i]) continue;
            if (best == taus.size() || (n == 0 ? z[i] > z[best] : log_product[i] > log_product[best]))
                best = i;
        }
        used[best] = 1;
        ordered.push_back(taus[best]);
        for (size_t i = 0; i < taus.size(); ++i)
            if (!used[i]) log_product[i] += math::log(std::fabs(z[i] - z[best]));
    }
    return ordered;
}

} // namespace

void check(const Options& o) {
    if (o.times.empty())
        throw UsageError("-c: at least one diffused copy is needed", "Use a number from 1 to 1000.");
    for (size_t i = 0; i < o.times.size(); ++i) {
        if (!(o.times[i] > 0) || !std::isfinite(o.times[i]) || o.times[i] > 1e7)
            throw UsageError("-times: " + number(o.times[i]) + " is not a diffusion time",
                             "Use positive numbers, at most 1e7.");
        if (o.evolution == Evolution::incremental && i > 0 && o.times[i] <= o.times[i - 1])
            throw UsageError("-times: " + number(o.times[i]) + " is not greater than " +
                                 number(o.times[i - 1]),
                             "With -evolution incremental, each time must be greater than the one before.");
    }
    if (!(o.sigma >= 0) || o.sigma > 100)
        throw UsageError("-sigma: " + number(o.sigma) + " is not allowed", "Use a number from 0 to 100.");
    if (!(o.percentile > 0) || o.percentile > 1)
        throw UsageError("-percentile: " + number(o.percentile) + " is not allowed",
                         "Use a number above 0, at most 1.");
    if (o.contrast && (!(*o.contrast > 0) || !std::isfinite(*o.contrast)))
        throw UsageError("-k: " + number(*o.contrast) + " is not allowed", "Use a positive number.");
    if (o.cycles < 1 || o.cycles > 1000)
        throw UsageError("-cycles: " + std::to_string(o.cycles) + " is not allowed",
                         "Use a number from 1 to 1000.");
    if (!(o.tolerance >= 1e-12) || o.tolerance > 0.1)
        throw UsageError("-tolerance: " + number(o.tolerance) + " is not allowed",
                         "Use a number from 1e-12 to 0.1.");
}

int fed_steps(double time, int cycles) {
    return std::max(1,
                    static_cast<int>(std::ceil(-0.5 + 0.5 * std::sqrt(1 + 12 * time / (cycles * tau_max)))));
}

std::vector<double> fed_taus(double time, int cycles) {
    const int n = fed_steps(time, cycles);
    std::vector<double> taus;
    for (int j = 0; j < n; ++j) {
        const double c = math::cos(std::numbers::pi * (2 * j + 1) / (4.0 * n + 2));
        taus.push_back(tau_max / (2 * c * c));
    }
    const double s = time / (cycles * std::accumulate(taus.begin(), taus.end(), 0.0));
    for (auto& t : taus)
        t *= s;
    return leja_order(taus);
}

namespace {

std::vector<double> make_fed_coefficients(double time, int cycles) {
    const auto taus = fed_taus(time, cycles);
    const int degree = static_cast<int>(taus.size()) * cycles, nodes = degree + 1;
    std::vector<double> values;
    for (int i = 0; i < nodes; ++i) {
        // The node, as an eigenvalue of I + tau_max A.
        const double x = math::cos(std::numbers::pi * (i + 0.5) / nodes);
        double cycle = 1, product = 1;
        for (double t : taus)
            cycle *= 1 + t / tau_max * (x - 1);
        for (int c = 0; c < cycles; ++c)
            product *= cycle;
        values.push_back(product);
    }
    // The angles are reduced in integers, so that cos stays accurate for high k. A turn has 4 * nodes angles.
    std::vector<double> cosines;
    for (int m = 0; m < 4 * nodes; ++m)
        cosines.push_back(math::cos(std::numbers::pi * static_cast<double>(m) / (2.0 * nodes)));
    std::vector<double> a;
    for (int k = 0; k < nodes; ++k) {
        // Neumaier summation: the rounding errors of all additions are added at the end.
        double sum = 0, rest = 0;
        for (int i = 0; i < nodes; ++i) {
            const double term =
                values[static_cast<size_t>(i)] *
                cosines[static_cast<size_t>((static_cast<int64_t>(k) * (2 * i + 1)) % (4 * nodes))];
            const double next = sum + term;
            rest += std::fabs(sum) >= std::fabs(term) ? (sum - next) + term : (term - next) + sum;
            sum = next;
        }
        a.push_back((sum + rest) * (k == 0 ? 1 : 2) / nodes);
    }
    return a;
}

} // namespace

std::vector<double> fed_coefficients(double time, int cycles) {
    // A run requests the same coefficients several times, and library calls often repeat a request.
    constexpr size_t most = 64;
    static ForkMutex mutex;
    static std::map<std::pair<double, int>, std::vector<double>> known;
    const std::lock_guard lock(mutex);
    if (known.size() > most) known.clear();
    auto& one = known[{time, cycles}];
    if (one.empty()) one = make_fed_coefficients(time, cycles);
    return one;
}

std::vector<double> exact_coefficients(double time, double tolerance) {
    // exp(z (x - 1)) = e^-z I_0(z) + 2 sum_k e^-z I_k(z) T_k(x), z = T/tau_max. The modified Bessel functions
    // come from downward recurrence. Their sum normalises them, since exp(0) = 1 at x = 1.
    const double z = time / tau_max;
    const int start = 60 + static_cast<int>(12 * std::sqrt(z) + 4 * std::min(z, 20.0));
    std::vector<double> b(static_cast<size_t>(start) + 1);
    double next = 0, current = 1e-250;
    for (int k = start; k >= 0; --k) {
        b[static_cast<size_t>(k)] = current;
        const double lower = next + 2.0 * k / z * current;
        next = current;
        current = lower;
        if (current > 1e200) { // Rescales all values; much smaller values have no effect on the result.
            for (int i = k; i <= start; ++i)
                b[static_cast<size_t>(i)] *= 1e-250;
            current *= 1e-250;
            next *= 1e-250;
        }
    }
    double total = b[0];
    for (size_t k = 1; k < b.size(); ++k)
        total += 2 * b[k];
    for (size_t k = 0; k < b.size(); ++k)
        b[k] *= (k == 0 ? 1 : 2) / total;
    double tail = 0;
    // The truncated coefficients sum to `tail`. Adding `tail` to a_0 preserves the mean. The error is
    // therefore at most 2 * tail.
    while (b.size() > 2 && 2 * (tail + b.back()) <= tolerance) {
        tail += b.back();
        b.pop_back();
    }
    b[0] += tail;
    return b;
}

std::vector<Stage> make_stages(const Options& o) {
    const auto coefficients = [&](double time) {
        return o.scheme == Scheme::fed ? fed_coefficients(time, o.cycles)
                                       : exact_coefficients(time, o.tolerance);
    };
    std::vector<Stage> stages;
    for (size_t c = 0; c < o.times.size(); ++c) {
        const bool delta = o.evolution == Evolution::incremental && c > 0;
        auto a = coefficients(o.times[c] - (delta ? o.times[c - 1] : 0.0));
        const int degree = static_cast<int>(a.size()) - 1;
        if (stages.empty() || o.evolution != Evolution::independent) stages.emplace_back();
        stages.back().degree = std::max(stages.back().degree, degree);
        stages.back().coefficients.push_back(std::move(a));
    }
    return stages;
}

int gaussian_radius(double sigma) { return static_cast<int>(std::ceil(3 * sigma)); }

std::vector<double> gaussian_weights(double sigma) {
    const int radius = gaussian_radius(sigma);
    std::vector<double> w{1.0};
    double sum = 1;
    for (int i = 1; i <= radius; ++i) {
        w.push_back(math::exp(-0.5 * i * i / (sigma * sigma)));
        sum += 2 * w.back();
    }
    for (auto& x : w)
        x /= sum;
    return w;
}

int64_t gradient_halo(const Options& o) { return gaussian_radius(o.sigma) + 1; }

int64_t halo_of(const Options& o, const std::vector<Stage>& stages) {
    int64_t halo = gradient_halo(o);
    for (const auto& s : stages)
        halo += s.degree;
    return halo;
}

double contrast_of(const Range& range, const Histogram& histogram, double percentile) {
    constexpr int64_t unit = 1000000;
    const int64_t share = std::llround(percentile * static_cast<double>(unit));
    const int64_t total = std::accumulate(histogram.begin(), histogram.end(), int64_t{0});
    if (total == 0 || !(range.steepest > 0)) return 0;
    int64_t count = 0;
    for (int b = 0; b < histogram_bins; ++b) {
        count += histogram[static_cast<size_t>(b)];
        if (static_cast<__int128>(unit) * count >= static_cast<__int128>(share) * total)
            return range.steepest * (b + 1) / histogram_bins;
    }
    return range.steepest;
}

} // namespace hsi::eadp
