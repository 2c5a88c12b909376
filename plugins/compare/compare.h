// SPDX-License-Identifier: MIT
// How far two cubes of one size are apart. The first cube, s, is the reference; t is the other one.
//
// Per pixel, over nb bands (Delgado et al., IEEE JSTARS 9(2), 2016, equations 6 to 8, and customary ones):
//   nrmse  = sqrt( sum (t_i - s_i)^2 / sum (s_i - mean s)^2 )      0 where the cubes agree, infinite where
//   only s is flat maxsde = max_i nb |s_i - t_i| / sum |s_i| sad    = angle between s and t, degrees rmse   =
//   sqrt( sum (t_i - s_i)^2 / nb ) maxabs = max_i |s_i - t_i|
// Per band: ssim (Wang et al., IEEE TIP 13(4), 2004: Gaussian window 11x11, sigma 1.5, K1 = 0.01, K2 = 0.03,
// dynamic range of s in that band) and sr, the simplification ratio: flat zones of t over flat zones of s, a
// flat zone being a 4-connected component, of either phase, after Otsu's threshold.
//
// Operations read a cube of 2 nb bands: those of s, then those of t (stream::StackedSource), or each value as
// several bands (stream::value_parts) if single precision does not hold the values: `parts` is their count,
// or 1. A pixel takes part when it is valid in both: all values finite and, with two bands or more, not all
// zero. Sums are in double precision over fixed runs of pixels, added without rounding: neither tiles nor
// threads nor the processor change a bit.
#pragma once

#include "stream/operation.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::compare {

enum class Metric { nrmse, maxsde, sad, rmse, maxabs, ssim, sr };

/// "nrmse" ...
const char* metric_name(Metric metric);
/// Throws UsageError naming the allowed ones.
Metric parse_metric(const std::string& name);
/// Metrics of a pixel's spectrum, as opposed to a band's image.
bool is_spectral(Metric metric);

struct Summary {
    double mean = 0; ///< over the compared pixels; infinite when one value is
    double maximum = 0;
    int64_t line = -1, sample = -1; ///< of the maximum; the first one in reading order
};

struct PixelCounts {
    int64_t compared = 0; ///< valid in both
    int64_t only_first = 0, only_second = 0, neither = 0;
};

/// Least and greatest value of both cubes in every band, over the compared pixels.
struct Ranges {
    std::vector<std::array<double, 2>> first,
        second; ///< [bands] {minimum, maximum}; infinities when no pixel is compared
};

/// A scan whose result is there when its pass is over.
template <class Result>
class Scan : public stream::Operation {
  public:
    virtual Result result() const = 0;
};
std::unique_ptr<Scan<Ranges>> make_range_scan(int bands, int parts = 1);

struct Compared {
    PixelCounts counts;
    std::vector<Summary> summaries; ///< one per spectral metric, in the requested order
    std::vector<double> ssim;       ///< its mean over the compared pixels, by band; empty without ssim
};
/// Spectral metrics and ssim in one pass. Halo 5 with ssim, else none. metrics: without sr. map: output 0
/// holds one band per metric in the same order, NaN for pixels that are not compared; ssim is averaged over
/// the bands there. ranges: needed with ssim, else ignored.
std::unique_ptr<Scan<Compared>> make_comparison(int bands, const std::vector<Metric>& metrics, bool map,
                                                const Ranges& ranges, int parts = 1);

inline constexpr int histogram_bins = 256;

/// Bins of a band's values: min(255, floor((v - minimum) f)), f = 256/(maximum - minimum) rounded to double;
/// all 0 in a flat band.
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

/// Otsu's threshold: the last bin of the lower phase, where the variance between the phases is greatest (the
/// first such bin).
int otsu_threshold(const std::array<int64_t, histogram_bins>& histogram);

struct Thresholds {
    std::vector<int> first, second; ///< [bands] last bin of the lower phase
};

std::unique_ptr<Scan<Thresholds>> make_threshold_scan(int bands, const Ranges& ranges, int parts = 1);

struct Zones {
    std::vector<int64_t> first, second; ///< [bands] number of flat zones
};

/// Counts flat zones. Tiles are strips of whole lines, joined in order as they come; the memory for joining
/// is one line of labels per band.
std::unique_ptr<Scan<Zones>> make_zone_scan(int bands, int64_t scene_samples, const Ranges& ranges,
                                            const Thresholds& thresholds, int parts = 1);

} // namespace hsi::compare
