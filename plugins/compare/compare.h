// SPDX-License-Identifier: MIT
// Differences between two cubes of the same size. The first cube, s, is the reference; t is the other.
//
// Per pixel, over nb bands (Delgado et al., IEEE JSTARS 9(2), 2016, equations 6 to 8, and customary
// measures):
//   nrmse  = sqrt( sum (t_i - s_i)^2 / sum (s_i - mean s)^2 ); 0 if s = t; infinite if s != t and s is flat
//   maxsde = max_i nb |s_i - t_i| / sum |s_i|
//   sad    = angle between s and t, degrees
//   rmse   = sqrt( sum (t_i - s_i)^2 / nb )
//   maxabs = max_i |s_i - t_i|
// With rmse, also the root mean square over the n compared pixels, per band and over all bands:
//   rmse of band i     = sqrt( sum over the pixels of (t_i - s_i)^2 / n )
//   rmse of all values = sqrt( sum over pixels and bands of (t_i - s_i)^2 / (n nb) )
// Per band: ssim (Wang et al., IEEE TIP 13(4), 2004: Gaussian window 11x11, sigma 1.5, K1 = 0.01, K2 = 0.03,
// dynamic range of s in that band) and sr, the simplification ratio: the number of flat zones of t divided by
// that of s. Otsu's threshold divides a band into two phases; a flat zone is a 4-connected component of
// either phase.
//
// Operations read a cube of 2 nb bands: the bands of s, then the bands of t (stream::StackedSource). If
// single precision cannot represent the values, each value is divided into `parts` bands
// (stream::value_parts); otherwise `parts` is 1. A pixel is compared if it is valid in both cubes: all values
// are finite and, with two or more bands, not all zero. Sums over fixed runs of pixels are in double
// precision, and are added without rounding, so results do not depend on tiles, threads or the processor.
#pragma once

#include "stream/operation.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::compare {

enum class Metric { nrmse, maxsde, sad, rmse, maxabs, ssim, sr };

/// Returns the name of the metric, such as "nrmse".
const char* metric_name(Metric metric);
/// Returns the metric with this name. Throws UsageError that lists the allowed names.
Metric parse_metric(const std::string& name);
/// Returns true for metrics that compare the spectra of a pixel; false for ssim and sr, which compare the
/// images of a band.
bool is_spectral(Metric metric);

struct Summary {
    double mean = 0; ///< over the compared pixels; infinite if a value is infinite
    double maximum = 0;
    int64_t line = -1, sample = -1; ///< pixel of the maximum; the first in reading order if there are several
};

struct PixelCounts {
    int64_t compared = 0; ///< pixels that are valid in both cubes
    /// Pixels that are valid only in the first cube, only in the second cube, and in neither cube
    int64_t only_first = 0, only_second = 0, neither = 0;
};

/// The minimum and maximum of both cubes in every band, over the compared pixels.
struct Ranges {
    /// [bands] {minimum, maximum}; infinities if no pixel is compared
    std::vector<std::array<double, 2>> first, second;
};

/// A scan without outputs. Its result is complete after the pass.
template <class Result>
class Scan : public stream::Operation {
  public:
    virtual Result result() const = 0;
};
std::unique_ptr<Scan<Ranges>> make_range_scan(int bands, int parts = 1);

struct Compared {
    PixelCounts counts;
    std::vector<Summary> summaries; ///< one per spectral metric, in the requested order
    std::vector<double> ssim;       ///< mean of ssim over the compared pixels, per band; empty without ssim
    std::vector<double> band_rmse;  ///< rmse over the compared pixels, per band; empty without rmse
    double rmse = 0;                ///< rmse over the compared pixels and the bands; 0 without rmse
};
/// Computes spectral metrics and ssim in one pass. The halo is 5 with ssim, otherwise 0. metrics: must not
/// contain sr. map: requests output 0, with one band per metric in the same order. Its ssim is the mean over
/// the bands, and pixels that are not compared are NaN. ranges: needed with ssim, otherwise ignored.
std::unique_ptr<Scan<Compared>> make_comparison(int bands, const std::vector<Metric>& metrics, bool map,
                                                const Ranges& ranges, int parts = 1);

inline constexpr int histogram_bins = 256;

/// Assigns the values v of a band to bins: min(255, floor((v - minimum) f)), where f = 256/(maximum -
/// minimum), rounded to double. In a flat band, all values are in bin 0.
struct Binning {
    double low = 0, factor = 0;
    Binning() = default;
    explicit Binning(const std::array<double, 2>& range)
        : low(range[0]), factor(range[1] > range[0] ? histogram_bins / (range[1] - range[0]) : 0) {}
    int operator()(double value) const {
        const int bin = static_cast<int>((value - low) * factor);
        return bin < histogram_bins ? bin : histogram_bins - 1;
    }
};

/// Returns Otsu's threshold, the last bin of the lower phase. It makes the variance between the phases
/// greatest; among equal variances, the lowest bin wins.
int otsu_threshold(const std::array<int64_t, histogram_bins>& histogram);

struct Thresholds {
    std::vector<int> first, second; ///< [bands] last bin of the lower phase
};

std::unique_ptr<Scan<Thresholds>> make_threshold_scan(int bands, const Ranges& ranges, int parts = 1);

struct Zones {
    std::vector<int64_t> first, second; ///< [bands] number of flat zones
};

/// Counts flat zones. Tiles are strips of whole lines. The scan joins them in the order of their lines;
/// strips that are finished early wait. For the next strip, it keeps the labels of the last joined line of
/// each band.
std::unique_ptr<Scan<Zones>> make_zone_scan(int bands, int64_t scene_samples, const Ranges& ranges,
                                            const Thresholds& thresholds, int parts = 1);

} // namespace hsi::compare
