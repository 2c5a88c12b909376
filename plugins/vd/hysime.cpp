// SPDX-License-Identifier: MIT
#include "vd/hysime.h"

#include "core/counted.h"
#include "core/error.h"
#include "math/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace hsi::vd {
namespace {

constexpr double least_eigenvalue = 1e-12; ///< smallest eigenvalue of R, scaled to a unit diagonal
constexpr double added_noise = 1e-5; ///< noise that is added, relative to the mean signal power of a band

/// Returns the inverse of a matrix. Eigenvalues below least_eigenvalue are raised to least_eigenvalue.
std::vector<double> bounded_inverse(const std::vector<double>& matrix, int bands) {
    const auto n = static_cast<size_t>(bands);
    const auto eigen = math::eigen_symmetric(matrix, bands);
    std::vector<double> inverse(n * n, 0.0);
    for (int k = 0; k < bands; ++k) {
        const double* const e = eigen.vector(k);
        const double share = 1 / std::max(eigen.values[static_cast<size_t>(k)], least_eigenvalue);
        for (size_t a = 0; a < n; ++a)
            for (size_t b = 0; b < n; ++b)
                inverse[a * n + b] += share * e[a] * e[b];
    }
    return inverse;
}

/// Returns R^-1. It is computed from R scaled to a unit diagonal, so that bands have similar magnitudes. Sets
/// `resolved` to false if some eigenvalues are rounding errors; least_eigenvalue replaces them.
std::vector<double> inverse_of(const std::vector<double>& products, int bands, bool& resolved) {
    const auto n = static_cast<size_t>(bands);
    std::vector<double> length, scaled(n * n);
    for (size_t b = 0; b < n; ++b)
        length.push_back(std::sqrt(products[b * (n + 1)]));
    for (size_t a = 0; a < n; ++a) {
        if (!(length[a] > 0))
            throw Error("HySime cannot estimate the noise: a band is zero in all valid pixels",
                        "Leave out such bands (-b), or use -method hfc.");
        for (size_t b = 0; b < n; ++b)
            scaled[a * n + b] = a == b ? 1.0 : products[a * n + b] / (length[a] * length[b]);
    }
    resolved = math::eigenvalues_symmetric(scaled, bands).back() >= least_eigenvalue;
    auto inverse = resolved ? math::invert_positive(scaled, bands) : bounded_inverse(scaled, bands);
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            inverse[a * n + b] /= length[a] * length[b];
    return inverse;
}

} // namespace

SignalSubspace hysime(const stream::SceneStatistics& scene) {
    if (scene.valid_pixels <= scene.bands)
        throw Error("HySime cannot estimate the noise: " +
                        counted(scene.valid_pixels, "valid pixel is", "valid pixels are") +
                        " not more than " + counted(scene.bands, "band"),
                    "Use a larger part of the scene, fewer bands (-b), or -method hfc.");
    const auto n = static_cast<size_t>(scene.bands);
    const auto products = scene.mean_products();
    SignalSubspace result;
    const auto inverse = inverse_of(products, scene.bands, result.resolved);
    std::vector<double> residual(n), signal(n * n); // D and Rs
    for (size_t b = 0; b < n; ++b)
        residual[b] = 1 / inverse[b * (n + 1)];
    double trace = 0;
    for (size_t a = 0; a < n; ++a) {
        for (size_t b = 0; b < n; ++b)
            signal[a * n + b] = products[a * n + b] + residual[a] * inverse[a * n + b] * residual[b];
        signal[a * (n + 1)] -= 2 * residual[a];
        trace += signal[a * (n + 1)];
    }
    const double added = added_noise * trace / static_cast<double>(n);
    const auto eigen = math::eigen_symmetric(signal, scene.bands);
    for (int k = 0; k < scene.bands; ++k) {
        const double* const e = eigen.vector(k);
        Direction d;
        d.eigenvalue = eigen.values[static_cast<size_t>(k)];
        for (size_t a = 0; a < n; ++a) {
            double sum = 0;
            for (size_t b = 0; b < n; ++b)
                sum += products[a * n + b] * e[b];
            d.power += e[a] * sum;
            d.noise_power += e[a] * e[a] * (residual[a] + added);
        }
        d.delta = 2 * d.noise_power - d.power;
        d.signal = d.delta < 0;
        result.dimension += d.signal;
        result.directions.push_back(d);
    }
    for (const double d : residual)
        result.noise.push_back(std::sqrt(d));
    return result;
}

} // namespace hsi::vd
