// SPDX-License-Identifier: MIT
// Detection by the shapes of absorption features. O and L are a pixel and a target divided by their continua
// in a range of wavelengths, n bands; the least squares line O = a + b L, both free, makes up for the
// contrast that grain sizes and mixtures change:
//   F = corr(O, L)    D = b (1 - min L)    both 0 where b <= 0
//   fit = sum w F,  depth = sum w D,  fd = sum w F D   over the ranges of the target, of weights of sum 1
//
// R. N. Clark et al.: Imaging spectroscopy: Earth and planetary remote sensing with the USGS Tetracorder and
// expert systems, J. Geophys. Res. 108 (E12), 2003. F^2 is the product of the slopes of both regressions.
// All is decided and computed in double precision, pixel by pixel: no tile, thread or rank changes a bit.
#pragma once

#include "detect/detect.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::detect {

inline constexpr size_t least_fit_bands = 4;
inline constexpr double least_fit_depth = 1e-3; ///< of a target; with less there is no feature to compare

/// Bands in which spectra have one continuum; targets share it.
struct FitRange {
    std::vector<size_t> bands; ///< of the cube, by rising wavelength; least_fit_bands at least
    std::vector<double> x;     ///< their wavelengths (nm), each above the one before
};

/// A feature of a target.
struct FitFeature {
    size_t range = 0;                      ///< of FitTask::ranges
    std::vector<double> removed;           ///< L: a number a band of the range
    double weight = 0;                     ///< of a target they are divided by their sum
    double least_fit = 0, least_depth = 0; ///< with less, the target's scores are 0
};

/// The feature of a spectrum, with a number for each band of `range` and the area of 1 - L (trapezoids, nm)
/// as weight. \throws Error, beginning with `what`, when the range has fewer than least_fit_bands bands, when
/// the first or the last value is not above 0, and when L is nowhere least_fit_depth below 1.
FitFeature feature_to_fit(const FitRange& range, const std::vector<double>& spectrum,
                          const std::string& what);

struct FitTarget {
    std::string name;
    std::vector<FitFeature> features; ///< one at least; weights of no negative number and a sum above 0
};

enum class FitScore { fit, depth, fd };

struct FitTask {
    int inputs = 0; ///< bands of the cube
    std::vector<FitRange> ranges;
    std::vector<FitTarget> targets;
    FitScore score = FitScore::fit;
    bool depths = false; ///< a further output
};

/// Counts of the pass; complete after it.
class FeatureFit : public Detection {
  public:
    void exchange(parallel::Group& ranks) override;
    /// Valid pixels without a score of some target, since an end of a range is not above 0.
    int64_t without_continuum() const { return m_open; }

  protected:
    int64_t m_open = 0;
};

/// Outputs: scores, one band per target; the map if the decision has one; depths, one band per target, if the
/// task requests them. A pixel is invalid, NaN throughout, when an input is not finite or all are zero; where
/// an end of one of its ranges is not above 0, a target's score and depth are NaN. The map's best score is
/// also above 0. Ranges are divided by their continua once, for any count of targets: hulls of the ranges,
/// and one multiplication for each target and band of its ranges.
std::unique_ptr<FeatureFit> make_feature_fit(FitTask task, const Decision& decision);

/// The fit of features; the backend for devices is in hsi_cuda_detect_fit.so.
class FitBackend : public Backend {
  public:
    virtual std::unique_ptr<FeatureFit> make_feature_fit(FitTask task, const Decision& decision) {
        return detect::make_feature_fit(std::move(task), decision);
    }
};

} // namespace hsi::detect
