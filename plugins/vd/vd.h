// SPDX-License-Identifier: MIT
// Virtual dimensionality: the number of spectrally distinct signals in a scene.
//
// C.-I. Chang, Q. Du: Estimation of number of spectrally distinct signal sources in hyperspectral imagery,
// IEEE TGRS 42(3), 2004. HFC: if a band of the transformed data contains a signal, the eigenvalue of the
// correlation matrix exceeds that of the covariance matrix; a Neyman-Pearson test with false-alarm
// probability P_F decides for each pair
//   l_corr_i - l_cov_i > tau_i = Phi^-1(1 - P_F) sigma_i,   sigma_i^2 = 2 (l_corr_i^2 + l_cov_i^2) / N.
// NWHFC whitens the noise first: both matrices are divided by the noise's standard deviations, for band l
// 1/sqrt((K^-1)_ll), with K the covariance matrix.
#pragma once

#include "stream/statistics_scan.h"

#include <vector>

namespace hsi::vd {

enum class Method { hfc, nwhfc };

struct Eigenvalues {
    double correlation = 0, covariance = 0; ///< each in falling order
    double sigma = 0, threshold = 0;        ///< tau
    bool signal = false;                    ///< the difference exceeds the threshold
};

struct Dimensionality {
    int number = 0;                ///< eigenvalue pairs with a signal
    int doubtful = 0;              ///< those among them that the scan does not resolve
    bool resolved = true;          ///< the scan resolves all eigenvalues
    std::vector<Eigenvalues> test; ///< by band
    std::vector<double> noise;     ///< NWHFC: standard deviations by band
    int64_t pixels = 0;            ///< N
};

/// The fraction of the largest eigenvalue below which an eigenvalue may be a rounding error: for products in
/// single precision, and in double precision.
inline constexpr double single_resolution = 1e-9;
inline double double_resolution(int bands) { return 1e-15 * bands; }

/// Estimates the dimensionality. false_alarm: P_F, 0 < P_F < 1. resolution: that of the scan. Throws Error if
/// the scene has fewer than 2 valid pixels, and for NWHFC if the covariance matrix cannot be inverted
/// (linearly dependent bands, fewer pixels than bands); UsageError if P_F is out of range.
Dimensionality estimate(const stream::SceneStatistics& scene, Method method, double false_alarm,
                        double resolution = single_resolution);

/// Returns Phi^-1(1 - p): the number of standard deviations that a normal variable exceeds with probability
/// p, 0 < p < 1.
double upper_quantile(double p);

} // namespace hsi::vd
