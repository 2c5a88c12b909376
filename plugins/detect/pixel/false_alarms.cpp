// SPDX-License-Identifier: MIT
// Thresholds for a rate of false alarms.
#include "core/counted.h"
#include "core/error.h"
#include "detect/pixel/pixel.h"
#include "math/distributions.h"

#include <algorithm>
#include <cmath>

namespace hsi::detect {
namespace {

/// Returns the value that a symmetric score exceeds with probability `rate`. The square of the score (for
/// ace, its magnitude) has the beta distribution.
double symmetric_quantile(double rate, double a, double b) {
    if (rate == 0.5) return 0;
    return rate < 0.5 ? math::beta_quantile_of_tail(2 * rate, a, b)
                      : -math::beta_quantile_of_tail(2 * (1 - rate), a, b);
}

} // namespace

double threshold_of(const Detector& detector, double rate) {
    const auto n = static_cast<double>(detector.background_pixels);
    const auto p = static_cast<double>(detector.dimensions());
    const char* const advice = "Give a -threshold, or a -background whose scores are measured.";
    // The scores of fewer components may have a known distribution although those of all bands have none.
    const char* const fewer =
        "Use -nc auto, which takes as many components as the background's pixels support.";
    if (detector.ridge > 0 || detector.shrinkage > 0)
        throw Error("the background's matrix was regularised, so the distribution of the scores is unknown",
                    fewer);
    if (n < p + 2)
        throw Error("the background has " + counted(detector.background_pixels, "pixel") + " for " +
                        counted(detector.dimensions(), detector.components > 0 ? "component" : "band") +
                        ", too few to predict false alarms",
                    p > 1 ? fewer : advice);
    const double each = detector.targets > 1 ? rate / detector.targets : rate, spread = (n - 1) * (n - 1) / n;
    switch (detector.method) {
    case Method::rx:
        return spread * math::beta_quantile_of_tail(rate, p / 2, (n - p - 1) / 2);
    case Method::ace:
        if (p < 2)
            throw Error("ace of one band is 1 or -1 in all pixels, so no threshold separates false alarms",
                        advice);
        return symmetric_quantile(each, 0.5, (p - 1) / 2);
    case Method::mf: {
        const double square = symmetric_quantile(each, 0.5, (n - 2) / 2) * spread;
        // The scores of the target with the least contrast spread most, so this target has the greatest
        // threshold. If thresholds are negative, the target with the most contrast has the greatest one.
        const auto& k = detector.constants;
        const double contrast =
            square > 0 ? *std::min_element(k.begin(), k.end()) : *std::max_element(k.begin(), k.end());
        return std::copysign(std::sqrt(std::fabs(square) / contrast), square);
    }
    case Method::cem:
    case Method::sam:
    case Method::sid:
        break;
    }
    throw Error("internal: no distribution of this method is known");
}

} // namespace hsi::detect
