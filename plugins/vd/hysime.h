// SPDX-License-Identifier: MIT
// Estimates the signal subspace of a scene by HySime.
//
// J. M. Bioucas-Dias, J. M. P. Nascimento: Hyperspectral subspace identification, IEEE TGRS 46(8), 2008. The
// noise of a band is the residual of its regression on all other bands (Algorithm 1). A direction belongs to
// the signal if omitting it would cost more than its noise (Algorithm 2). Let R be the mean of x x' over the
// valid pixels, P = R^-1 and D = diag(1/P_bb). The residual of x is D P x, so all results follow from R:
//   Rs = R - 2 D + D P D (signal), e_k its eigenvectors;  Rn = D + 1e-5 (trace Rs / B) I (noise, diagonal);
//   delta_k = 2 e_k'Rn e_k - e_k'R e_k;  the dimension is the number of negative delta_k.
// The term with 1e-5 is from the authors' own program, not from the paper. Without it, directions that are
// almost free of noise would count as signal.
#pragma once

#include "stream/statistics_scan.h"

#include <cstdint>
#include <vector>

namespace hsi::vd {

/// A direction e_k, in the order of falling eigenvalues.
struct Direction {
    double eigenvalue = 0;  ///< eigenvalue of Rs
    double power = 0;       ///< e_k'R e_k
    double noise_power = 0; ///< e_k'Rn e_k
    double delta = 0;       ///< 2 noise_power - power
    bool signal = false;    ///< delta < 0
};

struct SignalSubspace {
    int dimension = 0;
    std::vector<Direction> directions; ///< one direction per band
    std::vector<double> noise;         ///< standard deviation of the noise in each band, sqrt D
    bool resolved = true; ///< false if bands are linearly dependent; the noise is then an upper bound
};

/// Computes the subspace. Bands are linearly dependent if R, scaled to a unit diagonal, has an eigenvalue
/// below 1e-12. Such eigenvalues are replaced by 1e-12. In this case the noise is only an upper bound, and
/// the term with 1e-5 decides which directions count. \throws Error if a band is zero. \throws Error if there
/// are at most as many pixels as bands, because regression then leaves no residual.
SignalSubspace hysime(const stream::SceneStatistics& scene);

} // namespace hsi::vd
