// SPDX-License-Identifier: MIT
// Resampling from one list of bands to another: computes weights that convert a spectrum of one spectrometer
// into the spectrum that another spectrometer with other band widths would have measured.
//
// Bands have a centre and a full width at half maximum (nm), and their responses are normal curves. The
// source has already blurred the spectrum by its own width w. Linear interpolation between its values adds
// the variance h^2/6 (h: the distance of its bands). To reach the blur of the target with the width W, the
// weights must add only the variance
//   s^2 = sigma(W)^2 - sigma(w)^2 - h^2/6,   sigma(w) = w/2.354820045
// The weights are the integral of the interpolated spectrum under a normal curve with this variance, cut at 4
// s, in closed form. If no blur has to be added (s^2 <= 1e-6 nm^2), the source is as coarse as the target,
// and the interpolated value at the centre is used. The weights are continuous at this limit.
//
// Other programs apply a response with the target's full width to the values of the source, which blurs the
// spectrum twice.
#pragma once

#include <cstddef>
#include <vector>

namespace hsi::math {

enum class Resampling {
    response, ///< Weights from the response of the target's bands.
    linear,   ///< Linear interpolation at the centres of the target's bands.
};

struct SpectralBands {
    std::vector<double> centres; ///< nm; NaN: unknown
    /// Full widths at half maximum in nm, one per centre; NaN or not above 0: the band does not state its
    /// width. Empty: no band states its width.
    std::vector<double> widths;
    size_t size() const { return centres.size(); }
};

/// Returns true if every band with a known centre has a width, and at least one band has a known centre.
bool tells_widths(const SpectralBands& bands);

/// Returns the full width of each band. A band without a stated width gets half the distance between its two
/// neighbours; the first and the last band get the distance to their only neighbour. The width is NaN if this
/// distance is unknown.
std::vector<double> full_widths(const SpectralBands& bands);

/// A target band that can be resampled.
struct ResampledBand {
    size_t target = 0;           ///< index of the target band
    std::vector<size_t> sources; ///< indices of the source bands with a weight, rising
    std::vector<double> weights; ///< above 0; their sum is 1 to rounding
    double width = 0;            ///< width of the target band (nm); NaN: unknown
    double inside = 1;           ///< share of the target band's response within the source's centres
    /// Returns sqrt(sum of squared weights). The standard deviation of independent noise is multiplied by
    /// this factor.
    double noise_gain() const;
};

struct ResamplingPlan {
    std::vector<size_t> sources;      ///< indices of the source bands in use, by rising centre
    std::vector<ResampledBand> bands; ///< in the order of the target bands
    std::vector<size_t> left_out;     ///< indices of the target bands that cannot be resampled
    /// Returns the number of bands with less than 0.9 of their response within the source's centres.
    size_t cut() const;
};

/// Plans the resampling. A target band is resampled if its centre is between the first and the last centre of
/// the source. With `linear`, there is no further condition, so every gap of the source is bridged. With
/// `response`, the source must also have bands near the target band. At least half of the normal curve of the
/// weights must be within 1.5 widths of a source band. If no blur has to be added, the centre of the target
/// band must be within this distance. So one missing band is bridged, but not a gap of water vapour. If
/// source bands are within 1e-6 nm of each other, the first one is used.
ResamplingPlan plan_resampling(const SpectralBands& source, const SpectralBands& target, Resampling method);

} // namespace hsi::math
