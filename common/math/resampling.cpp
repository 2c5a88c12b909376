// SPDX-License-Identifier: MIT
#include "math/resampling.h"

#include "math/continuum.h"
#include "math/elementary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

namespace hsi::math {
namespace {

constexpr double fwhm_in_sigmas = 2.354820045;
constexpr double least_variance = 1e-6; ///< nm^2; up to this variance, the source is as coarse as the target
constexpr double cut_at = 4; ///< distance from the centre, in standard deviations, at which a response is cut
/// Distance, in widths of a source band, within which the spectrum counts as measured.
constexpr double near_a_band = 1.5;
constexpr double enough_inside = 0.9; ///< fraction of a response that must be within the source's centres

bool is_told(double width) { return std::isfinite(width) && width > 0; }

/// The spectral response of a band: a normal curve, cut at `cut_at` standard deviations.
struct Response {
    double centre, deviation;
    double z(double x) const { return std::clamp((x - centre) / deviation, -cut_at, cut_at); }
    static double density(double z) { return exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
    static double below(double z) { return erfc(-z / std::numbers::sqrt2) / 2; }
    /// Returns the integral of the curve from a to b.
    double share(double a, double b) const {
        const double za = z(a), zb = z(b);
        return za > 0 ? below(-za) - below(-zb) : below(zb) - below(za);
    }
    /// Returns the integral of (x - centre) times the curve from a to b.
    double moment(double a, double b) const { return -deviation * (density(z(b)) - density(z(a))); }
    double whole() const { return below(cut_at) - below(-cut_at); }
};

/// The source bands in use, by rising wavelength.
struct Line {
    std::vector<size_t> places;
    std::vector<double> centres, widths;
    std::vector<std::pair<double, double>> seen; ///< wavelength ranges near a band; rising, disjoint
    double first() const { return centres.front(); }
    double last() const { return centres.back(); }
    /// Returns the left end of the segment around a wavelength between first() and last().
    size_t segment(double x) const {
        const auto above = std::upper_bound(centres.begin(), centres.end(), x);
        const auto at = static_cast<size_t>(above - centres.begin());
        return std::min(at == 0 ? 0 : at - 1, centres.size() - 2);
    }
};

Line line_of(const SpectralBands& source) {
    Line line;
    line.places = rising_bands(source.centres);
    SpectralBands rising;
    for (const size_t b : line.places) {
        rising.centres.push_back(source.centres[b]);
        rising.widths.push_back(source.widths.empty() ? std::nan("") : source.widths[b]);
    }
    line.centres = rising.centres;
    line.widths = full_widths(rising);
    std::vector<std::pair<double, double>> near;
    for (size_t i = 0; i < line.centres.size(); ++i)
        if (const double reach = near_a_band * line.widths[i]; std::isfinite(reach))
            near.emplace_back(line.centres[i] - reach, line.centres[i] + reach);
    std::sort(near.begin(), near.end());
    for (const auto& [from, to] : near)
        if (!line.seen.empty() && from <= line.seen.back().second)
            line.seen.back().second = std::max(line.seen.back().second, to);
        else
            line.seen.emplace_back(from, to);
    return line;
}

bool is_seen(const Line& line, double x) {
    return std::any_of(line.seen.begin(), line.seen.end(),
                       [&](const auto& one) { return x >= one.first && x <= one.second; });
}

/// Sets the sources and weights of `band`. weights[k] belongs to band first + k of the line. Weights of 0 or
/// less are left out, and the others are divided by their sum.
void take_weights(ResampledBand& band, const Line& line, const std::vector<double>& weights, size_t first) {
    double sum = 0;
    for (const double w : weights)
        sum += std::max(w, 0.0);
    std::vector<std::pair<size_t, double>> sorted;
    for (size_t k = 0; k < weights.size(); ++k)
        if (weights[k] > 0) sorted.emplace_back(line.places[first + k], weights[k] / sum);
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [place, weight] : sorted) {
        band.sources.push_back(place);
        band.weights.push_back(weight);
    }
}

/// Uses the interpolated value at the centre of the target band.
void take_point(ResampledBand& band, const Line& line, double centre) {
    const size_t i = line.segment(centre);
    const double share = (centre - line.centres[i]) / (line.centres[i + 1] - line.centres[i]);
    take_weights(band, line, {1 - share, share}, i);
}

/// Uses the response of the target band. Returns false if the source covers less than half of the response.
bool take_response(ResampledBand& band, const Line& line, const Response& response) {
    const double from = line.first(), to = line.last();
    const double within = response.share(from, to);
    double seen = 0;
    for (const auto& [a, b] : line.seen)
        if (std::max(a, from) < std::min(b, to)) seen += response.share(std::max(a, from), std::min(b, to));
    constexpr double half = 0.5;
    if (!(seen >= half * within)) return false;
    band.inside = within / response.whole();
    const double reach = cut_at * response.deviation;
    const size_t first = line.segment(std::max(response.centre - reach, from)),
                 last = line.segment(std::min(response.centre + reach, to)) + 1;
    std::vector<double> weights(last - first + 1);
    for (size_t i = first; i < last; ++i) {
        const double a = line.centres[i], b = line.centres[i + 1];
        const double p = response.share(a, b), q = response.moment(a, b);
        weights[i - first] += ((b - response.centre) * p - q) / (b - a);
        weights[i - first + 1] += (q - (a - response.centre) * p) / (b - a);
    }
    take_weights(band, line, weights, first);
    return true;
}

} // namespace

bool tells_widths(const SpectralBands& bands) {
    bool any = false;
    for (size_t b = 0; b < bands.size(); ++b) {
        if (!std::isfinite(bands.centres[b])) continue;
        if (bands.widths.empty() || !is_told(bands.widths[b])) return false;
        any = true;
    }
    return any;
}

std::vector<double> full_widths(const SpectralBands& bands) {
    const auto order = rising_bands(bands.centres);
    std::vector<double> widths(bands.size(), std::numeric_limits<double>::quiet_NaN());
    for (size_t b = 0; b < bands.size(); ++b) {
        const double c = bands.centres[b];
        if (!bands.widths.empty() && is_told(bands.widths[b])) widths[b] = bands.widths[b];
        if (is_told(widths[b]) || !std::isfinite(c) || order.size() < 2) continue;
        // Finds the index of the band in `order`, or of the nearest band if `order` does not contain the
        // band.
        size_t k = 0;
        for (size_t i = 1; i < order.size(); ++i)
            if (std::fabs(bands.centres[order[i]] - c) < std::fabs(bands.centres[order[k]] - c)) k = i;
        const size_t left = k == 0 ? 0 : k - 1, right = std::min(k + 1, order.size() - 1);
        widths[b] =
            (bands.centres[order[right]] - bands.centres[order[left]]) / static_cast<double>(right - left);
    }
    return widths;
}

double ResampledBand::noise_gain() const {
    return std::sqrt(std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0));
}

size_t ResamplingPlan::cut() const {
    return static_cast<size_t>(std::count_if(bands.begin(), bands.end(),
                                             [](const auto& band) { return band.inside < enough_inside; }));
}

ResamplingPlan plan_resampling(const SpectralBands& source, const SpectralBands& target, Resampling method) {
    ResamplingPlan plan;
    const Line line = line_of(source);
    plan.sources = line.places;
    const auto widths = full_widths(target);
    for (size_t j = 0; j < target.size(); ++j) {
        const double centre = target.centres[j];
        ResampledBand band;
        band.target = j;
        band.width = widths[j];
        bool made = line.centres.size() >= 2 && centre >= line.first() && centre <= line.last();
        if (made && method == Resampling::linear) {
            take_point(band, line, centre);
        } else if (made) {
            const size_t i = line.segment(centre);
            const double h = line.centres[i + 1] - line.centres[i], share = (centre - line.centres[i]) / h;
            const double w = line.widths[i] + share * (line.widths[i + 1] - line.widths[i]);
            const double wanted = widths[j] / fwhm_in_sigmas, there = w / fwhm_in_sigmas;
            const double missing = wanted * wanted - there * there - h * h / 6;
            if (missing > least_variance)
                made = take_response(band, line, {centre, std::sqrt(missing)});
            else if (made = is_seen(line, centre); made)
                take_point(band, line, centre);
        }
        if (made)
            plan.bands.push_back(std::move(band));
        else
            plan.left_out.push_back(j);
    }
    return plan;
}

} // namespace hsi::math
