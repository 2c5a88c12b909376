// SPDX-License-Identifier: MIT
// Detects known spectra and anomalous pixels. Each pixel is scored alone or against one background. x is a
// pixel, and t a target's spectrum. The background's n pixels have the mean m, the covariance C (divisor n -
// 1) and the correlation matrix R = sum x x' / n:
//   sam  2 atan2(|u - v|, |u + v|), u = x/|x|, v = t/|t|, in radians; 0 where rounding hides the difference
//   sid  sum (p - q)(ln p - ln q), p = x+ / sum x+, q = t+ / sum t+, x+ = max(x, 1e-6 max x)
//   mf   (t-m)'C^-1(x-m) / (t-m)'C^-1(t-m)
//   cem  t'R^-1 x / t'R^-1 t
//   ace  d|d| / ((t-m)'C^-1(t-m) (x-m)'C^-1(x-m)), d = (t-m)'C^-1(x-m); 0 where x = m
//   rx   (x-m)'C^-1(x-m); without a target
// sam and sid are small at a target; the other scores are large.
//
// F. A. Kruse et al.: The Spectral Image Processing System (SIPS), Remote Sensing of Environment 44, 1993
// (sam); C.-I. Chang: An Information-Theoretic Approach to Spectral Variability, Similarity, and
// Discrimination for Hyperspectral Image Analysis, IEEE Trans. Information Theory 46(5), 2000 (sid); D.
// Manolakis, G. Shaw: Detection Algorithms for Hyperspectral Imaging Applications, IEEE Signal Processing
// Magazine 19(1), 2002 (mf); J. C. Harsanyi: Detection and Classification of Subpixel Spectral Signatures in
// Hyperspectral Image Sequences, dissertation, University of Maryland, 1993 (cem); S. Kraut, L. L. Scharf, L.
// T. McWhorter: Adaptive Subspace Detectors, IEEE Trans. Signal Processing 49(1), 2001, (ace, squared there:
// here d keeps its sign, so that the opposite of a target does not rank with it); I. S. Reed, X. Yu: Adaptive
// Multiple-Band CFAR Detection of an Optical Pattern with Unknown Spectral Distribution, IEEE Trans. ASSP
// 38(10), 1990 (rx).
//
// A pixel is valid if all its values are finite and not all are zero (sid: and at least one is positive).
// Statistics, factors and products are in double precision. There is one exception: for ace and rx, short
// rows of the inverse factor are multiplied with the centred pixel in single precision. This changes rx by
// about 1e-6 of its value. A pixel's score depends only on its own values, so it has the same bits for any
// tiles and threads.
#pragma once

#include "core/cost.h"
#include "core/cube_view.h"
#include "detect/detect.h"
#include "math/exact_sum.h"
#include "stream/statistics_scan.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::detect {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost score{2e-10, 1.3e-12};     ///< per value and target
inline constexpr Cost logarithms{2.3e-9, 3e-11}; ///< sid: per value
inline constexpr Cost matrix{1.3e-11, 3e-13};    ///< ace and rx: per value and band
inline constexpr Cost background{2.7e-11, 0};    ///< per pixel and pair of bands, always on the CPU
} // namespace cost

enum class Method { sam, sid, mf, cem, ace, rx };
/// The names of methods in documents and pixel functions.
inline constexpr std::pair<const char*, Method> method_names[] = {{"sam", Method::sam}, {"sid", Method::sid},
                                                                  {"mf", Method::mf},   {"cem", Method::cem},
                                                                  {"ace", Method::ace}, {"rx", Method::rx}};

inline bool has_target(Method m) { return m != Method::rx; }
/// Returns true if scores need the statistics of a background.
inline bool has_background(Method m) { return m != Method::sam && m != Method::sid; }
inline bool is_small_at_target(Method m) { return !has_background(m); }
/// Returns the greatest 1 - u'v (u, v: the unit spectra) that counts as angle 0. It covers the rounding
/// errors of the sums over the bands for equal directions.
inline double sam_rounding(size_t bands) {
    return (8 + static_cast<double>(bands) / 16) * std::numeric_limits<double>::epsilon();
}
const char* name_of(Method method);

/// The result of BackgroundScan. tool::Scene requires the names of its members.
struct Background {
    stream::SceneStatistics moments;              ///< statistics of the background
    int64_t valid_pixels = 0, invalid_pixels = 0; ///< numbers of pixels in the whole scene
    std::vector<int> empty;                       ///< bands (0-based) without a finite value in the scene
    const std::vector<int>& empty_bands() const { return empty; }
};

/// Computes the moments of the background, from all valid pixels or from the valid pixels in the mask. The
/// mask must outlive the scan. Products are in double precision.
class BackgroundScan final : public stream::StatisticsScan {
  public:
    explicit BackgroundScan(const stream::CubeShape& scene, const PixelMask* mask = nullptr);
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    void exchange(parallel::Group& ranks) override;
    Background result(int threads = 1) const;
    /// Returns an assumed result, for plans before the pass.
    Background assumed() const { return {StatisticsScan::assumed(), 0, 0, {}}; }

  private:
    const PixelMask* m_mask;
    int64_t m_valid_outside = 0; ///< valid pixels outside the mask
    std::vector<int64_t> m_finite_outside;
};

/// Returns true if a background has so few pixels that all of them have the same rx. n pixels minus their
/// mean span n - 1 directions. If there are at least n - 1 bands, rx of each of these pixels is (n - 1)^2 /
/// n.
inline bool are_alike(int64_t pixels, double dimensions) {
    return static_cast<double>(pixels) < dimensions + 1.5;
}
/// Returns true if a background has too few pixels for reliable scores: fewer than two per dimension, or
/// fewer than three if there is one dimension. dimensions: the number of bands, of components, or
/// Detector::free_dimensions.
inline bool is_few(int64_t pixels, double dimensions) {
    return static_cast<double>(pixels) < 2 * dimensions || are_alike(pixels, dimensions);
}
/// Returns the fraction of its contrast that a matched filter with statistics of n pixels keeps on average:
/// (n + 2 - dimensions) / (n + 1), which is about one half with two pixels per band. I. S. Reed, J. D.
/// Mallett, L. E. Brennan: Rapid Convergence Rate in Adaptive Arrays, IEEE Trans. AES 10(6), 1974.
inline double kept_contrast(int64_t pixels, double dimensions) {
    const auto n = static_cast<double>(pixels);
    return (n + 2 - dimensions) / (n + 1);
}

/// sid: values of a spectrum below this fraction of its greatest value are raised to this fraction.
inline constexpr double least_part = 1e-6;
/// If a matrix's least eigenvalue is below least_share times its mean eigenvalue, ridge_share times the mean
/// eigenvalue is added to its diagonal.
inline constexpr double least_share = 1e-10, ridge_share = 1e-6;
/// ace, rx: rows of the inverse factor are multiplied in single precision if their length is at most this
/// number, after their elements were multiplied by the standard deviations of the bands. Nearly all rows are
/// shorter. In four measured scenes, single precision changed rx by at most 6e-6 of its value.
inline constexpr double single_length = 200;

/// The parameters from which pixels are scored: the `used` bands of a pixel, minus `centre`, are multiplied
/// by the rows.
struct Detector {
    Method method = Method::sam;
    int bands = 0;                 ///< number of bands of the scene
    std::vector<int> used;         ///< bands (0-based) used for scores
    std::vector<int> constant;     ///< bands that are excluded, since they are constant in the background
    std::vector<double> centre;    ///< m, or zeros: one value per used band
    std::vector<double> rows;      ///< targets x used: v (sam), ln q (sid), M^-1(t-m) / (t-m)'M^-1(t-m)
    std::vector<double> log_rows;  ///< targets x used, for the logarithms of the pixel: q (sid)
    std::vector<double> constants; ///< per target: (t-m)'C^-1(t-m) (ace), sum q ln q (sid)
    std::vector<double> factor;    ///< used x used, lower: L^-1, C = L L' (ace, rx); empty otherwise
    std::vector<double> deviation; ///< with a factor: the standard deviation of the used bands
    int targets = 0;               ///< 0 for rx
    int scores() const { return targets > 0 ? targets : 1; }

    int64_t background_pixels = 0;
    double least_eigenvalue = 0, mean_eigenvalue = 0; ///< eigenvalues of C or R before shrinkage and ridge
    double ridge = 0;                                 ///< the addition to the diagonal, or 0
    double shrinkage = 0;                             ///< Conditioning::shrinkage
    int components = 0; ///< principal components used for scores; 0 for all used bands
    /// The number of directions whose variance comes from the background: dimensions(), or for a shrunk
    /// matrix the sum of (1-a) l / ((1-a) l + a s) over the eigenvalues l. The sum has at most dimensions()
    /// terms, and at most as many as n background pixels can make different from 0: n - 1, for cem n. If the
    /// matrix is shrunk by bands, l are its eigenvalues after the bands were scaled to a variance of 1, and s
    /// = 1. NaN without Conditioning::tell_eigenvalues.
    double free_dimensions = 0;
    int64_t dimensions() const { return components > 0 ? components : static_cast<int64_t>(used.size()); }
};

/// Makes a detector for sam or sid. Throws Error if all values of a target's spectrum are 0 (sid: if none is
/// positive); the message names the target.
Detector make_detector(Method method, const Targets& targets);

/// Options that make the matrix of a background invertible and reliable if the background has few pixels.
struct Conditioning {
    /// Shrinkage a, 0..1: (1 - a) C + a s I replaces C, where s = trace C / bands.
    double shrinkage = 0;
    /// Uses a diag(C) instead of a s I, so that neither the units of the bands nor dark bands matter.
    bool by_bands = false;
    /// Requests the least eigenvalue and free_dimensions. Otherwise both are NaN, and eigenvalues are
    /// computed only if no cheaper test proves that the matrix has an inverse.
    bool tell_eigenvalues = true;
    /// Number of first principal components in which the inverse is computed; 0 for all bands.
    /// best_components takes one component per ten pixels, so that a matched filter keeps nine tenths of its
    /// contrast (see kept_contrast()). It takes at least one component (for ace two, since ace in one
    /// component is 1 or -1), and excludes components whose eigenvalues are below 1e-10 s.
    int components = 0;
    static constexpr int best_components = -1, pixels_for_one = 10;
    /// Returns the least number of components that best_components takes, if enough are available.
    static int fewest_components(Method method) { return method == Method::ace ? 2 : 1; }
};

/// Computes the shrinkage with the least expected squared error. O. Ledoit, M. Wolf: A well-conditioned
/// estimator for large-dimensional covariance matrices, Journal of Multivariate Analysis 88(2), 2004 (Lemma
/// 3.2 to 3.5). The shrinkage is min(b, d) / d. S is the covariance with the divisor n, and s the mean of its
/// diagonal:
///   d = |S - s I|^2,  b = 1/n^2 sum |z z' - S|^2 = (sum |z|^4 / n - |S|^2) / n,  z = x - m
/// cem uses R instead of S, and z = x. Constant bands are excluded (except for cem). Results have the same
/// bits for any tiles, threads and ranks. GroupShrinkageScan (detect/groups/groups.h) computes the shrinkage
/// for bands of unit variance.
class ShrinkageScan final : public stream::Operation {
  public:
    /// `moments`: statistics of the pixels that the scan will read. Pixels outside the mask are ignored.
    ShrinkageScan(Method method, const stream::SceneStatistics& moments, const PixelMask* mask = nullptr);
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    double result() const; ///< Returns the shrinkage, 0..1.

  private:
    const Method m_method;
    const stream::SceneStatistics& m_moments;
    const PixelMask* m_mask;
    std::vector<double> m_centre; ///< one per band; NaN if the band is excluded
    math::ExactSums m_fourth{1};  ///< sum of |z|^4
};

/// Makes a detector for mf, cem, ace, or rx (without targets). It uses C without constant bands (cem: R with
/// all bands), as `conditioning` requires. With s = trace C / bands, the ridge 1e-6 s is added to the
/// diagonal of the matrix if its least eigenvalue is below 1e-10 s. It is also added if the matrix is not
/// shrunk and the background has at most as many pixels as bands. No ridge is added if components are
/// requested. Throws Error if more components are requested than there are eigenvalues above 1e-10 s, or if
/// the background has fewer than 2 pixels or no variance. Throws TargetIsMean, which names the target, if a
/// target is the mean (cem: is nearly zero compared with the background).
Detector make_detector(Method method, const Targets& targets, const stream::SceneStatistics& background,
                       const Conditioning& conditioning = {});

/// The lengths of a detector's lists.
struct DetectorSizes {
    size_t centre, rows, log_rows, constants, factor, deviation;
};
DetectorSizes sizes_of(Method method, size_t used, size_t targets);

/// Throws Error if the length of a list differs from sizes_of(), or if a used band is not a band of the
/// scene.
void check_detector(const Detector& detector);

/// Returns the threshold for a false alarm rate of 0..1. This is the probability that a pixel of a normally
/// distributed background reaches the threshold with at least one of the targets. The threshold is exact for
/// a pixel that is one of the n pixels of the detector's statistics. p is the number of bands (or
/// components), K the number of targets, and B(a, b) a beta distribution. The scores then have these
/// distributions:
///   rx   rx is (n-1)^2 / n B(p/2, (n-p-1)/2)
///   ace  |ace| is B(1/2, (p-1)/2), and both signs are equally likely; each target gets 1/K of the rate
///   mf   mf^2 is (n-1)^2 / n B(1/2, (n-2)/2) / (t-m)'C^-1(t-m), and both signs are equally likely; each
///        target gets 1/K of the rate, and the greatest threshold of all targets is used
/// R. Gnanadesikan, J. R. Kettenring: Robust Estimates, Residuals, and Outlier Detection with Multiresponse
/// Data, Biometrics 28(1), 1972 (rx). The distributions of ace and mf follow from this: the rows of the
/// whitened background are an orthonormal frame without a preferred direction; S. Kraut, L. L. Scharf, L. T.
/// McWhorter: Adaptive Subspace Detectors, IEEE Trans. Signal Processing 49(1), 2001, give them for a known
/// covariance. \throws Error if no distribution is known: other methods, a matrix with a ridge, n < p + 2, or
/// p = 1 (ace).
double threshold_of(const Detector& detector, double false_alarm_rate);

/// Makes the operation that scores pixels. Output 0 has one score per target (rx: one band). Output 1, if the
/// decision requests a map, has the number of the best target, 1..k (rx: 1), or 0 if the pixel is not a
/// detection. Scores within 1e-10 (relative) of the best count as equal, and the first of them wins. Both
/// outputs are NaN for invalid pixels.
std::unique_ptr<Detection> make_detection(const Detector& detector, const Decision& decision);

/// The backend that scores single pixels. The backend for devices is in hsi_cuda_detect_pixel.so.
class PixelBackend : public Backend {
  public:
    virtual std::unique_ptr<Detection> make_detection(const Detector& detector, const Decision& decision) {
        return detect::make_detection(detector, decision);
    }
    /// Computes squares[i], the sum of the squared values of pixel i, for a scene in the memory of the
    /// device. Pixels are numbered line by line. Returns false on the CPU, which does nothing.
    virtual bool sum_squares(const CubeView<float>& /*scene*/, double* /*squares*/) { return false; }
};

} // namespace hsi::detect
