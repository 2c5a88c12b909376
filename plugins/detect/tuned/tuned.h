// SPDX-License-Identifier: MIT
// Mixture-tuned matched filtering: a matched filter among components whose noise has a variance of 1 (MNF),
// and the distance of a pixel from any mixture of target and background. y and t are pixel and target in the
// first K components, of eigenvalues l, which are (signal + noise) / noise:
//   MF = sum(t_k y_k / l_k) / sum(t_k^2 / l_k)
//   a = MF cut to 0..1;  v_k = (1 - a)^2 max(l_k - 1, 0) + 1
//   infeasibility = sqrt(mean_k (y_k - a t_k)^2 / v_k)
//
// J. W. Boardman, F. A. Kruse: Analysis of imaging spectrometer data using N-dimensional geometry and a
// mixture-tuned matched filtering approach, IEEE TGRS 49(11), 2011. How ENVI's infeasibility grows with the
// noise is not published in full; here v_k is the variance that the linear mixture has: a share 1 - a of a
// background of covariance l - 1, and noise of 1. So infeasibility is about 1 for the background and for true
// mixtures, for any K, and 0 at the target. All is in double precision, pixel by pixel: no tile, thread or
// rank changes a bit.
#pragma once

#include "detect/detect.h"

#include <memory>
#include <optional>
#include <vector>

namespace hsi::detect {

struct TunedTask {
    int bands = 0;         ///< of the cube
    std::vector<int> used; ///< those that components are made from, as many as `mean` has
    std::vector<double> mean;
    std::vector<double> loadings;          ///< components x used: y = loadings (x - mean)
    std::vector<double> eigenvalues;       ///< by component
    Targets targets;                       ///< at the cube's bands
    std::optional<double> most_infeasible; ///< of the map: more infeasible pixels are not detections
    int components() const { return static_cast<int>(eigenvalues.size()); }
};

/// Outputs: two bands per target, MF and infeasibility; the map if the decision has one: the greatest MF,
/// within the threshold, of the targets that are feasible, the first of those that are equal to 1e-10; 0
/// without one. NaN in both for invalid pixels. \throws TargetIsMean naming a target that has less than
/// least_contrast for its sum(t_k^2 / l_k), and Error for one with values that are not numbers.
std::unique_ptr<Detection> make_tuned_filter(const TunedTask& task, const Decision& decision);

/// The tuned filter; the backend for devices is in hsi_cuda_detect_tuned.so.
class TunedBackend : public Backend {
  public:
    virtual std::unique_ptr<Detection> make_tuned_filter(const TunedTask& task, const Decision& decision) {
        return detect::make_tuned_filter(task, decision);
    }
};

} // namespace hsi::detect
