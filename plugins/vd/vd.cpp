// SPDX-License-Identifier: MIT
#include "vd/vd.h"

#include "core/error.h"
#include "math/elementary.h"
#include "math/linear_algebra.h"

#include <cmath>
#include <limits>
#include <string>

namespace hsi::vd {

double upper_quantile(double p) {
    // Q(x) = erfc(x / sqrt 2) / 2 falls strictly. The interval contains the solution for each double p, and
    // is bisected until doubles cannot be halved.
    double low = -40, high = 40;
    for (int i = 0; i < 200; ++i) {
        const double middle = 0.5 * (low + high);
        (0.5 * math::erfc(middle / std::sqrt(2.0)) > p ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

Dimensionality estimate(const stream::SceneStatistics& scene, Method method, double false_alarm,
                        double resolution) {
    if (!(false_alarm > 0 && false_alarm < 1))
        throw UsageError("-pf: " + std::to_string(false_alarm) + " is not a false-alarm probability",
                         "Use a number between 0 and 1, for example 1e-3.");
    if (scene.valid_pixels < 2)
        throw Error("virtual dimensionality needs at least 2 valid pixels, but the scene has " +
                    std::to_string(scene.valid_pixels));
    const auto bands = static_cast<size_t>(scene.bands);
    std::vector<double> covariance = scene.covariance, correlation = scene.mean_products();
    Dimensionality result;
    result.pixels = scene.valid_pixels;
    if (method == Method::nwhfc) {
        std::vector<double> inverse;
        try {
            inverse = math::invert_positive(covariance, scene.bands);
        } catch (const Error& e) {
            throw Error(std::string("NWHFC cannot estimate the noise: ") + e.what(),
                        "Leave out bands that depend on others (-b), or use -method hfc.");
        }
        for (size_t b = 0; b < bands; ++b)
            result.noise.push_back(1.0 / std::sqrt(inverse[b * bands + b]));
        for (size_t a = 0; a < bands; ++a)
            for (size_t b = 0; b < bands; ++b) {
                const double scale = result.noise[a] * result.noise[b];
                covariance[a * bands + b] /= scale;
                correlation[a * bands + b] /= scale;
            }
    }
    const auto of_correlation = math::eigenvalues_symmetric(correlation, scene.bands);
    const auto of_covariance = math::eigenvalues_symmetric(covariance, scene.bands);
    const double factor = upper_quantile(false_alarm);
    // Eigenvalues below this limit are zeros with rounding errors.
    const double floor =
        static_cast<double>(bands) * std::numeric_limits<double>::epsilon() * of_correlation.front();
    for (size_t i = 0; i < bands; ++i) {
        Eigenvalues e;
        e.correlation = of_correlation[i];
        e.covariance = of_covariance[i];
        e.sigma = std::sqrt(2.0 * (e.correlation * e.correlation + e.covariance * e.covariance) /
                            static_cast<double>(scene.valid_pixels));
        e.threshold = factor * e.sigma;
        e.signal = e.correlation > floor && e.correlation - e.covariance > e.threshold;
        result.number += e.signal;
        result.doubtful += e.signal && e.correlation < resolution * of_correlation.front();
        result.resolved = result.resolved && e.covariance >= resolution * of_correlation.front();
        result.test.push_back(e);
    }
    return result;
}

} // namespace hsi::vd
