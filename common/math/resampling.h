// SPDX-License-Identifier: MIT
// Resampling from one list of bands to another: weights that turn a spectrum of one spectrometer into the
// spectrum that another one, with different band widths, would have measured.
//
// Bands have a centre and a full width at half maximum (nm); their responses are normal curves. A source has
// blurred the spectrum already, by its own width, and the broken line between its values blurs by h^2/6 more
// (h the distance of its bands). So the requested response is the difference to the target's:
//   s^2 = sigma(W)^2 - sigma(w)^2 - h^2/6,   sigma(w) = w/2.354820045
// The weights are the integral of the broken line under that normal curve, cut at 4 s, in closed form. Where
// nothing is missing (s^2 <= 1e-6 nm^2), the source is as coarse as the target, and the line's value at the
// centre is taken: nothing jumps there.
//
// Summing a response of the full width at the source's centres, as other programs do, blurs twice.
#pragma once

#include <cstddef>
#include <vector>

namespace hsi::math {

enum class Resampling {
    response, ///< under the response of the target's bands
    linear,   ///< the broken line at their centres
};

struct SpectralBands {
    std::vector<double> centres; ///< nm; NaN: unknown
    std::vector<double> widths;  ///< nm, one per centre; NaN or not above 0: not stated; empty: none is
    size_t size() const { return centres.size(); }
};

/// True when every band whose centre is known has a width, and there is one.
bool tells_widths(const SpectralBands& bands);

/// The widths. A band without a width gets half the distance of its two neighbours, at the ends the only
/// distance; NaN if that is unknown, too.
std::vector<double> full_widths(const SpectralBands& bands);

/// A band that can be made.
struct ResampledBand {
    size_t target = 0;           ///< its place among the targets
    std::vector<size_t> sources; ///< places of the source's bands with a weight, rising
    std::vector<double> weights; ///< above 0; their sum is 1 to rounding
    double width = 0;            ///< of the target (nm); NaN: unknown
    double inside = 1;           ///< share of its response within the source's centres
    /// sqrt(sum of squared weights): the factor by which independent noise of the source grows.
    double noise_gain() const;
};

struct ResamplingPlan {
    std::vector<size_t> sources;      ///< places of the source's bands that take part, by rising centre
    std::vector<ResampledBand> bands; ///< in the targets' order
    std::vector<size_t> left_out;     ///< targets that cannot be made
    /// Bands with under 0.9 of their response within the source's centres.
    size_t cut() const;
};

/// A band is made if its centre is between the first and the last of the source's. With `response`, at least
/// half of its response must be within 1.5 widths of a source's band as well (its centre, if the source is as
/// coarse): one lost band is bridged, a gap of water vapour is not. With `linear` any gap is. Among source
/// bands within 1e-6 nm of each other the first counts.
ResamplingPlan plan_resampling(const SpectralBands& source, const SpectralBands& target, Resampling method);

} // namespace hsi::math
