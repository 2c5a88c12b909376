// SPDX-License-Identifier: MIT
// Detection by the shapes of absorption features. O and L are a pixel and a target, divided by their
// continua, in a range of wavelengths with n bands. The least-squares line O = a + b L, with free a and b,
// compensates for changes of contrast by grain size and mixture:
//   F = corr(O, L)    D = b (1 - min L)    both 0 where b <= 0
//   fit = sum w F,  depth = sum w D,  fd = sum w F D   over the ranges of the target; the weights add up to 1
//
// R. N. Clark et al.: Imaging spectroscopy: Earth and planetary remote sensing with the USGS Tetracorder and
// expert systems, J. Geophys. Res. 108 (E12), 2003. F^2 is the product of the slopes of the regressions of O
// on L and of L on O. All computations are in double precision, pixel by pixel, so results have the same bits
// for any tiles, threads and ranks.
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
inline constexpr double least_fit_depth = 1e-3; ///< minimum depth of a target's feature

/// A range of bands. Every spectrum is divided by its own continuum over the range. Several targets may use
/// the same range.
struct FitRange {
    std::vector<size_t> bands; ///< bands of the cube by rising wavelength, at least least_fit_bands
    std::vector<double> x;     ///< their wavelengths (nm), strictly rising
};

/// A feature of a target.
struct FitFeature {
    size_t range = 0;                      ///< index into FitTask::ranges
    std::vector<double> removed;           ///< L: one value per band of the range
    double weight = 0;                     ///< The weights of a target are divided by their sum.
    double least_fit = 0, least_depth = 0; ///< If F or D is smaller, the target's score and depth are 0.
};

/// Returns the feature of a target's spectrum, which has one value per band of `range`. The feature's weight
/// is the area of 1 - L (trapezoids, nm). \throws Error, whose message begins with `what`, if the range has
/// fewer than least_fit_bands bands, if the first or the last value is not above 0, or if L is nowhere
/// least_fit_depth below 1.
FitFeature feature_to_fit(const FitRange& range, const std::vector<double>& spectrum,
                          const std::string& what);

struct FitTarget {
    std::string name;
    std::vector<FitFeature> features; ///< at least one; weights are not negative, and their sum is above 0
};

enum class FitScore { fit, depth, fd };

struct FitTask {
    int inputs = 0; ///< number of bands of the cube
    std::vector<FitRange> ranges;
    std::vector<FitTarget> targets;
    FitScore score = FitScore::fit;
    bool depths = false; ///< requests depths as an additional output
};

/// The operation of a feature fit. Its counts are complete after the pass.
class FeatureFit : public Detection {
  public:
    void exchange(parallel::Group& ranks) override;
    /// Returns the number of valid pixels without a score for at least one target, because their value at an
    /// end of a range is not above 0.
    int64_t without_continuum() const { return m_open; }

  protected:
    int64_t m_open = 0;
};

/// Makes the fit. Outputs: scores, one band per target; the map if the decision has one; depths, one band per
/// target, if the task requests them. A pixel is invalid, and NaN in all outputs, if an input is not finite
/// or all are zero. If the pixel's value at an end of one of a target's ranges is not above 0, the target's
/// score and depth are NaN in this pixel. A target is in the map only if its score is above 0. A pixel is
/// divided by its continuum once per range, for any number of targets. So a pixel costs the convex hull of
/// each range, and one multiplication per target and band of the target's ranges.
std::unique_ptr<FeatureFit> make_feature_fit(FitTask task, const Decision& decision);

/// Fits features; the backend for devices is in hsi_cuda_detect_fit.so.
class FitBackend : public Backend {
  public:
    virtual std::unique_ptr<FeatureFit> make_feature_fit(FitTask task, const Decision& decision) {
        return detect::make_feature_fit(std::move(task), decision);
    }
};

} // namespace hsi::detect
