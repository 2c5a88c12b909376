// SPDX-License-Identifier: MIT
#include "gdal_hsi_noise/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::noise_tool {

tools::Plot plot_of(const Curve& curve) {
    constexpr tools::Rgb grey{238, 238, 238}, blue{0, 85, 170}, red{204, 51, 17};
    const auto is_shown = [](double v) { return v > 0 && std::isfinite(v); };
    const bool level = curve.level && *curve.level > 0;
    double low = level ? *curve.level : std::numeric_limits<double>::infinity(), high = level ? low : 0;
    for (const double v : curve.y)
        if (is_shown(v)) {
            low = std::min(low, v);
            high = std::max(high, v);
        }
    if (!(high > 0)) low = high = 1;
    const double first = std::floor(std::log10(low)), last = std::max(first + 1, std::ceil(std::log10(high)));
    tools::Plot plot(frame,
                     {curve.x_label, curve.x.front(), std::max(curve.x.back(), curve.x.front() + 1), {}},
                     {curve.y_label, std::pow(10, first), std::pow(10, last), {}, true});
    const size_t count = curve.x.size();
    for (size_t k = 0; k < count; ++k) {
        if (curve.shaded.empty() || curve.shaded[k] == 0) continue;
        const double from = plot.x_of((curve.x[k > 0 ? k - 1 : k] + curve.x[k]) / 2),
                     to = plot.x_of((curve.x[k] + curve.x[k + 1 < count ? k + 1 : k]) / 2);
        plot.line((from + to) / 2, frame.top, (from + to) / 2, frame.bottom - 1, grey, to - from);
    }
    if (level) plot.line(frame.left, plot.y_of(*curve.level), frame.right, plot.y_of(*curve.level), red);
    for (size_t k = 0; k < count; ++k) {
        if (!is_shown(curve.y[k])) continue;
        const double x = plot.x_of(curve.x[k]), y = plot.y_of(curve.y[k]);
        if (k > 0 && is_shown(curve.y[k - 1]))
            plot.line(plot.x_of(curve.x[k - 1]), plot.y_of(curve.y[k - 1]), x, y, blue);
        plot.line(x - 2, y, x + 2, y, blue);
    }
    return plot;
}

} // namespace hsi::noise_tool
