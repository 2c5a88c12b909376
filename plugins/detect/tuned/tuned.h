// SPDX-License-Identifier: MIT
// Mixture-tuned matched filtering: a matched filter (MF) in components whose noise has a variance of 1 (MNF),
// and the infeasibility, the distance of a pixel from the mixtures of target and background. In the first K
// components, y is the pixel and t the target. The components' eigenvalues l are (signal + noise) / noise:
//   MF = sum(t_k y_k / l_k) / sum(t_k^2 / l_k)
//   a = MF, limited to 0..1;  v_k = (1 - a)^2 max(l_k - 1, 0) + 1
//   infeasibility = sqrt(mean_k (y_k - a t_k)^2 / v_k)
//
// J. W. Boardman, F. A. Kruse: Analysis of imaging spectrometer data using N-dimensional geometry and a
// mixture-tuned matched filtering approach, IEEE TGRS 49(11), 2011. The dependence of ENVI's infeasibility on
// the noise is not fully published. Here v_k is the variance of a linear mixture: a fraction 1 - a of
// background, whose variance is l_k - 1, plus noise of variance 1. So infeasibility is about 1 for the
// background and for true mixtures, for any K, and 0 at the target. All computations are in double precision,
// pixel by pixel, so results have the same bits for any tiles, threads and ranks.
#pragma once

#include "detect/detect.h"

#include <memory>
#include <optional>
#include <vector>

namespace hsi::detect {

struct TunedTask {
    int bands = 0;                   ///< number of bands of the cube
    std::vector<int> used;           ///< bands from which components are computed
    std::vector<double> mean;        ///< one per used band
    std::vector<double> loadings;    ///< components x used: y = loadings (x - mean)
    std::vector<double> eigenvalues; ///< one per component
    Targets targets;                 ///< spectra in all bands of the cube
    /// Limit of the map: pixels with a greater infeasibility are not detections
    std::optional<double> most_infeasible;
    int components() const { return static_cast<int>(eigenvalues.size()); }
};

/// Makes the filter. Outputs: two bands per target, MF and infeasibility; the map if the decision has one.
/// The map has the feasible target with the greatest MF. It is 0 if no target is feasible, or if this MF is
/// below the threshold. MF values within 1e-10 (relative) of the greatest count as equal, and the first of
/// their targets wins. All outputs are NaN for invalid pixels. \throws TargetIsMean, which names the target,
/// if sum(t_k^2 / l_k) of a target is below least_contrast. \throws Error if a target has values that are not
/// finite.
std::unique_ptr<Detection> make_tuned_filter(const TunedTask& task, const Decision& decision);

/// The backend of mixture-tuned matched filtering. The backend for devices is in hsi_cuda_detect_tuned.so.
class TunedBackend : public Backend {
  public:
    virtual std::unique_ptr<Detection> make_tuned_filter(const TunedTask& task, const Decision& decision) {
        return detect::make_tuned_filter(task, decision);
    }
};

} // namespace hsi::detect
