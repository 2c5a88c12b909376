// SPDX-License-Identifier: MIT
#include "gdal_hsi_spectra/plot.h"

#include "core/error.h"
#include "features/features.h"
#include "math/continuum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

namespace hsi::spectra_tool {
namespace {

using tools::Plot;

constexpr size_t most_groups = 40; ///< maximum number of entries of a legend

/// The bands that are shown, in the order of the file; in reverse order if most wavelengths fall.
struct Places {
    std::vector<size_t> band;
    std::vector<double> x;    ///< position of each band on the x axis
    std::vector<char> parted; ///< true if a gap or another detector is before the band
};

/// Finds gaps and detectors. Bands that are missing in a list and deleted channels are gaps. A gap is a
/// missing number between two bands of the file, or a distance of more than five times the median distance.
/// If a wavelength is not larger than the previous one, another detector begins.
Places places_of(const SpectraPlot& s, size_t bands) {
    Places places;
    const auto x_of = [&](size_t b) {
        if (!s.wavelengths_nm.empty()) return s.wavelengths_nm[b];
        return static_cast<double>(s.numbers.empty() ? static_cast<int>(b) + 1 : s.numbers[b]);
    };
    for (size_t b = 0; b < bands; ++b)
        if (std::isfinite(x_of(b))) places.band.push_back(b);
    size_t falls = 0;
    for (size_t k = 1; k < places.band.size(); ++k)
        falls += x_of(places.band[k]) < x_of(places.band[k - 1]);
    if (2 * falls > places.band.size()) std::reverse(places.band.begin(), places.band.end());
    std::vector<double> steps;
    for (size_t k = 0; k < places.band.size(); ++k) {
        places.x.push_back(x_of(places.band[k]));
        if (k > 0) steps.push_back(places.x[k] - places.x[k - 1]);
    }
    places.parted.assign(places.band.size(), 0);
    if (steps.empty()) return places;
    auto sorted = steps;
    std::sort(sorted.begin(), sorted.end());
    const double usual = sorted[sorted.size() / 2];
    constexpr double far = 5;
    for (size_t k = 1; k < places.band.size(); ++k) {
        const bool missing =
            !s.numbers.empty() && std::abs(s.numbers[places.band[k]] - s.numbers[places.band[k - 1]]) > 1;
        places.parted[k] = missing || steps[k - 1] <= 0 || steps[k - 1] > far * usual;
    }
    return places;
}

/// Calls take(from, to) for each run of bands with values. from, to: indices in `places`.
template <class Take>
void each_run(const Places& places, const std::vector<double>& values, Take take) {
    size_t from = 0;
    for (size_t k = 0; k <= places.band.size(); ++k) {
        const bool value = k < places.band.size() && std::isfinite(values[places.band[k]]);
        if (value && (k == from || places.parted[k] == 0)) continue;
        if (k > from) take(from, k);
        from = value ? k : k + 1;
    }
}

std::pair<double, double> limits_of(const SpectraPlot& s, const Places& places) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto& one : s.spectra)
        for (const size_t b : places.band) {
            const double d = one.deviation.empty() || !std::isfinite(one.deviation[b]) ? 0 : one.deviation[b];
            if (!std::isfinite(one.values[b])) continue;
            low = std::min(low, one.values[b] - d);
            high = std::max(high, one.values[b] + d);
        }
    if (!(low <= high))
        throw Error("no spectrum has a value at a band with a known position", "Choose other spectra.");
    if (low > 0 && low < high / 2) low = 0;
    const double unit = tools::tick_distance(high - low);
    low = std::floor(low / unit) * unit;
    return {low, std::max(std::ceil(high / unit) * unit, low + unit)};
}

Plot::Point point_of(const Plot& plot, double x, double y) { return {plot.x_of(x), plot.y_of(y)}; }

void draw_deviation(Plot& plot, const Places& places, const DrawnSpectrum& one, const tools::Rgb& colour) {
    if (one.deviation.empty()) return;
    std::vector<double> upper(one.values.size()), lower(upper);
    for (size_t b = 0; b < upper.size(); ++b) {
        upper[b] = one.values[b] + one.deviation[b];
        lower[b] = one.values[b] - one.deviation[b];
    }
    each_run(places, upper, [&](size_t from, size_t to) {
        std::vector<Plot::Point> above, below;
        for (size_t k = from; k < to; ++k) {
            above.push_back(point_of(plot, places.x[k], upper[places.band[k]]));
            below.push_back(point_of(plot, places.x[k], lower[places.band[k]]));
        }
        plot.area(above, below, colour);
    });
}

void draw_values(Plot& plot, const Places& places, const std::vector<double>& values,
                 const tools::Series& how, double width) {
    each_run(places, values, [&](size_t from, size_t to) {
        std::vector<Plot::Point> points;
        for (size_t k = from; k < to; ++k)
            points.push_back(point_of(plot, places.x[k], values[places.band[k]]));
        if (points.size() == 1) // a single band between two gaps is drawn as a short line
            points = {{points[0][0] - 2, points[0][1]}, {points[0][0] + 2, points[0][1]}};
        plot.curve(points, how.colour, width, how.dashed);
    });
}

/// Draws the continuum of a spectrum in a range, and marks the deepest point of its absorption feature.
void draw_feature(Plot& plot, const SpectraPlot& s, const DrawnSpectrum& one, const raster::BandChoice& range,
                  const tools::Rgb& colour) {
    std::vector<double> x, y;
    for (const size_t b : math::rising_bands(s.wavelengths_nm, range.from_nm, range.to_nm))
        if (std::isfinite(one.values[b])) {
            x.push_back(s.wavelengths_nm[b]);
            y.push_back(one.values[b]);
        }
    constexpr size_t least_bands = 3;
    if (x.size() < least_bands) return;
    auto ratio = y;
    if (!math::Continuum(x).remove(y.data(), ratio.data())) return;
    std::vector<Plot::Point> hull;
    for (size_t k = 0; k < x.size(); ++k)
        if (ratio[k] == 1) hull.push_back(point_of(plot, x[k], y[k]));
    plot.curve(hull, colour, 1, true);
    const auto feature = features::feature_of(x, ratio.data());
    if (!std::isfinite(feature.position)) return;
    const auto right =
        static_cast<size_t>(std::upper_bound(x.begin(), x.end(), feature.position) - x.begin());
    const size_t k = std::clamp<size_t>(right, 1, x.size() - 1);
    const double t = (feature.position - x[k - 1]) / (x[k] - x[k - 1]),
                 value = y[k - 1] + t * (y[k] - y[k - 1]), top = value / (1 - feature.depth),
                 px = plot.x_of(feature.position);
    plot.line(px, plot.y_of(value), px, plot.y_of(top), colour);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.0f nm, %.3f", feature.position, feature.depth);
    plot.text(px, plot.y_of(value) + 18, Plot::Anchor::middle, text.data());
}

} // namespace

tools::Plot plot_of(const SpectraPlot& s) {
    const auto places = places_of(s, s.spectra.front().values.size());
    const auto [low, high] = limits_of(s, places);
    std::vector<tools::Series> series;
    for (size_t k = 0; k < s.groups.size(); ++k)
        series.push_back(tools::numbered_series(k, s.groups[k]));
    auto legend = series;
    if (legend.size() > most_groups) {
        legend.resize(most_groups - 1);
        legend.push_back({"and " + std::to_string(series.size() - legend.size()) + " more", {255, 255, 255}});
    }
    const auto ends = std::minmax_element(places.x.begin(), places.x.end());
    const double left = *ends.first, right = std::max(*ends.second, left + 1);
    Plot plot(Plot::with_legend(Plot::with_title(spectra_frame, s.title), legend),
              {s.wavelengths_nm.empty() ? "band" : "wavelength (nm)", left, right, {}},
              {s.value_label, low, high, {}});
    plot.title(s.title);
    for (const auto& one : s.spectra)
        draw_deviation(plot, places, one, series[one.group].colour);
    const double width = s.spectra.size() > series.size() ? 1 : 2;
    for (const auto& one : s.spectra) {
        draw_values(plot, places, one.values, series[one.group], width);
        for (const auto& range : s.ranges)
            draw_feature(plot, s, one, range, series[one.group].colour);
    }
    plot.legend(legend);
    return plot;
}

} // namespace hsi::spectra_tool
