// SPDX-License-Identifier: MIT
// Virtual dimensionality: the number of spectrally distinct signals in a scene.
//
// C.-I. Chang, Q. Du: Estimation of number of spectrally distinct signal sources in hyperspectral imagery,
// IEEE TGRS 42(3), 2004. HFC: if a component of the transformed data contains a signal, its eigenvalue of the
// correlation matrix exceeds its eigenvalue of the covariance matrix. A Neyman-Pearson test with false-alarm
// probability P_F decides for each pair:
//   l_corr_i - l_cov_i > tau_i = Phi^-1(1 - P_F) sigma_i,   sigma_i^2 = 2 (l_corr_i^2 + l_cov_i^2) / N.
// NWHFC whitens the noise first: both matrices are divided by the standard deviations of the noise. For band
// l, the standard deviation is 1/sqrt((K^-1)_ll), where K is the covariance matrix.
#pragma once

#include "stream/statistics_scan.h"

#include <vector>

namespace hsi::vd {

enum class Method { hfc, nwhfc };

struct Eigenvalues {
    double correlation = 0, covariance = 0; ///< both in falling order
    double sigma = 0, threshold = 0;        ///< threshold is tau
    bool signal = false;                    ///< true if the difference exceeds the threshold
};

struct Dimensionality {
    int number = 0;                ///< number of eigenvalue pairs with a signal
    int doubtful = 0;              ///< how many of these pairs are below the resolution of the scan
    bool resolved = true;          ///< true if all eigenvalues are above the resolution of the scan
    std::vector<Eigenvalues> test; ///< one test per band
    std::vector<double> noise;     ///< NWHFC: standard deviation of the noise in each band
    int64_t pixels = 0;            ///< N, the number of valid pixels
};

/// The resolution of a scan, relative to the largest eigenvalue: an eigenvalue below it may be a rounding
/// error. There is one value for products in single precision and one for double precision.
inline constexpr double single_resolution = 1e-9;
inline double double_resolution(int bands) { return 1e-15 * bands; }

/// Estimates the dimensionality. `false_alarm` is P_F, 0 < P_F < 1. `resolution` is the resolution of the
/// scan. Throws Error if the scene has fewer than 2 valid pixels. For NWHFC, also throws Error if the
/// covariance matrix cannot be inverted (linearly dependent bands, fewer pixels than bands). Throws
/// UsageError if P_F is out of range.
Dimensionality estimate(const stream::SceneStatistics& scene, Method method, double false_alarm,
                        double resolution = single_resolution);

/// Returns Phi^-1(1 - p), 0 < p < 1: a standard normal variable exceeds this value with probability p.
double upper_quantile(double p);

} // namespace hsi::vd
