// SPDX-License-Identifier: MIT
// Detection of known spectra, and of pixels that stand out: each pixel by itself, or against one background.
// x is a pixel, t a target's spectrum, m and C the mean and the covariance (divided by n - 1) of the
// background, R = sum x x' / n its correlation matrix:
//   sam  2 atan2(|u - v|, |u + v|), u = x/|x|, v = t/|t|, in radians; 0 where rounding hides the difference
//   sid  sum (p - q)(ln p - ln q), p = x+ / sum x+, q = t+ / sum t+, x+ = max(x, 1e-6 max x)
//   mf   (t-m)'C^-1(x-m) / (t-m)'C^-1(t-m)
//   cem  t'R^-1 x / t'R^-1 t
//   ace  d|d| / ((t-m)'C^-1(t-m) (x-m)'C^-1(x-m)), d = (t-m)'C^-1(x-m); 0 where x = m
//   rx   (x-m)'C^-1(x-m); without a target
// sam and sid are small at a target, the others large.
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
// A pixel is valid when all its values are finite and not all are zero (sid: and one is positive).
// Statistics, factors and products are in double precision; but rows of the inverse factor that can bear it
// (ace, rx) meet the centred pixel in single precision, which leaves errors of some 1e-6 of rx. A pixel's
// score depends on its own values alone, so that neither tiles nor threads change a bit.
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
inline constexpr Cost score{2e-10, 1.3e-12};     ///< a value and a target
inline constexpr Cost logarithms{2.3e-9, 3e-11}; ///< a value, SID
inline constexpr Cost matrix{1.3e-11, 3e-13};    ///< a value and a band, ACE and RX
inline constexpr Cost background{2.7e-11, 0};    ///< a pixel and pair of bands, by the CPU throughout
} // namespace cost

enum class Method { sam, sid, mf, cem, ace, rx };
/// As documents and pixel functions name them.
inline constexpr std::pair<const char*, Method> method_names[] = {{"sam", Method::sam}, {"sid", Method::sid},
                                                                  {"mf", Method::mf},   {"cem", Method::cem},
                                                                  {"ace", Method::ace}, {"rx", Method::rx}};

inline bool has_target(Method m) { return m != Method::rx; }
/// Whether scores want the statistics of a background.
inline bool has_background(Method m) { return m != Method::sam && m != Method::sid; }
inline bool is_small_at_target(Method m) { return !has_background(m); }
/// 1 - u'v up to which sam is 0: the rounding errors of the sums over the bands for equal directions.
inline double sam_rounding(size_t bands) {
    return (8 + static_cast<double>(bands) / 16) * std::numeric_limits<double>::epsilon();
}
const char* name_of(Method method);

/// The result of BackgroundScan, with the names that tool::Scene needs.
struct Background {
    stream::SceneStatistics moments;              ///< of the background
    int64_t valid_pixels = 0, invalid_pixels = 0; ///< of the scene
    std::vector<int> empty;                       ///< bands (0-based) without a finite value in the scene
    const std::vector<int>& empty_bands() const { return empty; }
};

/// The moments of the background: of all valid pixels, or of those in the mask, which must outlive the scan.
/// Products in double precision.
class BackgroundScan final : public stream::StatisticsScan {
  public:
    explicit BackgroundScan(const stream::CubeShape& scene, const PixelMask* mask = nullptr);
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    void exchange(parallel::Group& ranks) override;
    Background result(int threads = 1) const;
    Background assumed() const { return {StatisticsScan::assumed(), 0, 0, {}}; } ///< for plans

  private:
    const PixelMask* m_mask;
    int64_t m_valid_outside = 0; ///< valid pixels that are not in the mask
    std::vector<int64_t> m_finite_outside;
};

/// Whether they are so few that their own scores are alike: the statistics of n pixels span n - 1 directions,
/// and if the bands have no more, each pixel is (n - 1)^2 / n from the mean.
inline bool are_alike(int64_t pixels, double dimensions) {
    return static_cast<double>(pixels) < dimensions + 1.5;
}
/// Whether a background has too few pixels for the bands (or components, or Detector::free_dimensions) that
/// scores are made from: fewer than two for each, or two for a single one.
inline bool is_few(int64_t pixels, double dimensions) {
    return static_cast<double>(pixels) < 2 * dimensions || are_alike(pixels, dimensions);
}
/// The part of its contrast that a matched filter with statistics of n pixels keeps on average, half with two
/// pixels a band: (n + 2 - dimensions) / (n + 1). I. S. Reed, J. D. Mallett, L. E. Brennan: Rapid Convergence
/// Rate in Adaptive Arrays, IEEE Trans. AES 10(6), 1974.
inline double kept_contrast(int64_t pixels, double dimensions) {
    const auto n = static_cast<double>(pixels);
    return (n + 2 - dimensions) / (n + 1);
}

/// sid: values below this share of the greatest count as that.
inline constexpr double least_part = 1e-6;
/// From this share of the mean eigenvalue on the least one is not trusted, and this share is then added.
inline constexpr double least_share = 1e-10, ridge_share = 1e-6;
/// ace, rx: rows of the inverse factor times the bands' deviations no longer than this are multiplied in
/// single precision. Measured on four scenes: rx within 6e-6 of itself; nearly all of their rows are shorter.
inline constexpr double single_length = 200;
/// Everything that scores are made from: the pixel, at the bands `used` and less `centre`, times the rows.
struct Detector {
    Method method = Method::sam;
    int bands = 0;                 ///< of the scene
    std::vector<int> used;         ///< bands (0-based) that scores are made from
    std::vector<int> constant;     ///< those that are left out, having one value all over the background
    std::vector<double> centre;    ///< m, or zeros: a number a band used
    std::vector<double> rows;      ///< targets x used: v (sam), ln q (sid), M^-1(t-m) / (t-m)'M^-1(t-m)
    std::vector<double> log_rows;  ///< targets x used, for the logarithms of the pixel: q (sid)
    std::vector<double> constants; ///< by target: (t-m)'C^-1(t-m) (ace), sum q ln q (sid)
    std::vector<double> factor;    ///< used x used, lower: L^-1, C = L L' (ace, rx); empty otherwise
    std::vector<double> deviation; ///< with a factor: the standard deviation of the bands used
    int targets = 0;               ///< rx: 0
    int scores() const { return targets > 0 ? targets : 1; }

    int64_t background_pixels = 0;
    double least_eigenvalue = 0, mean_eigenvalue = 0; ///< of C or R, before anything was added
    double ridge = 0;                                 ///< the addition to its diagonal; 0: none
    double shrinkage = 0;                             ///< Conditioning::shrinkage
    int components = 0; ///< principal components that scores are made from; 0: all bands used
    /// Directions whose variance is the background's own: dimensions(), and of a shrunk matrix the sum of
    /// (1-a) l / ((1-a) l + a s) over the eigenvalues l (of the components) that the pixels can have; shrunk
    /// by bands, l of the matrix on bands of unit variance, and s = 1.
    double free_dimensions = 0;
    int64_t dimensions() const { return components > 0 ? components : static_cast<int64_t>(used.size()); }
};

/// sam, sid. Throws Error naming the target when it is all zero (sid: when no value is positive).
Detector make_detector(Method method, const Targets& targets);

/// The means by which a background of few pixels gets an inverse.
struct Conditioning {
    /// 0..1: (1 - a) C + a s I takes the place of C, s = trace C / bands.
    double shrinkage = 0;
    /// a diag(C) takes the place of a s I there: the units of the bands, and dark ones, do not matter.
    bool by_bands = false;
    /// The detector is to state the eigenvalues of the matrix. Else they are NaN, and are computed only if no
    /// cheaper test proves that the matrix has an inverse.
    bool tell_eigenvalues = true;
    /// The inverse is that in the first components of the matrix alone. 0: in all; best_components: as many
    /// as there are ten pixels for (a matched filter keeps nine tenths of its contrast: is_few()), one at
    /// least (ace, which is 1 or -1 in one: two), without those whose eigenvalues are under 1e-10 s.
    int components = 0;
    static constexpr int best_components = -1, pixels_for_one = 10;
    /// The least result of best_components, if there are as many.
    static int fewest_components(Method method) { return method == Method::ace ? 2 : 1; }
};

/// The result of ShrinkageScan: the share of O. Ledoit, M. Wolf: A well-conditioned estimator for
/// large-dimensional covariance matrices, Journal of Multivariate Analysis 88(2), 2004 (Lemma 3.2 to 3.5),
/// with the least expected squared error: min(b, d) / d of S, the covariance divided by n,
///   d = |S - s I|^2,  b = 1/n^2 sum |z z' - S|^2 = (sum |z|^4 / n - |S|^2) / n,  z = x - m
/// cem: of R instead of S, and z = x. Bands that are constant are left out (not by cem). Neither tiles,
/// threads nor ranks change a bit. GroupShrinkageScan (detect/groups/groups.h) finds that on bands of unit
/// variance.
class ShrinkageScan final : public stream::Operation {
  public:
    /// `moments` of the pixels that it will see; those in the mask count.
    ShrinkageScan(Method method, const stream::SceneStatistics& moments, const PixelMask* mask = nullptr);
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    double result() const; ///< 0..1

  private:
    const Method m_method;
    const stream::SceneStatistics& m_moments;
    const PixelMask* m_mask;
    std::vector<double> m_centre; ///< by band; NaN: left out
    math::ExactSums m_fourth{1};  ///< of |z|^4
};

/// For mf, cem, ace, rx (which has no targets). C without bands that are constant (cem: R with them), as
/// `conditioning` requires. It becomes C + 1e-6 s I, s = trace C / bands, when its least eigenvalue is under
/// 1e-10 s or, unless it was shrunk, the background does not have more pixels than bands; never in
/// components. Also throws Error for more components than there are eigenvalues over 1e-10 s. Throws Error
/// when the background has fewer than 2 pixels or no variance, or naming a target that is the mean (cem: all
/// zero).
Detector make_detector(Method method, const Targets& targets, const stream::SceneStatistics& background,
                       const Conditioning& conditioning = {});

/// The lengths of a detector's lists.
struct DetectorSizes {
    size_t centre, rows, log_rows, constants, factor, deviation;
};
DetectorSizes sizes_of(Method method, size_t used, size_t targets);

/// Throws Error when a list has another length than sizes_of() says, or a band is not the scene's.
void check_detector(const Detector& detector);

/// The threshold that one pixel of a normal background in `false_alarm_rate` (0..1) reaches with one of the
/// targets: exact for a pixel that is itself one of the n pixels behind the detector's statistics, whose
/// bands (or components) are p, with K the targets and B(a, b) a beta distribution:
///   rx   (n-1)^2 / n B(p/2, (n-p-1)/2)
///   ace  its magnitude is B(1/2, (p-1)/2), either sign as likely; each target has 1/K of the rate
///   mf   its square is (n-1)^2 / n B(1/2, (n-2)/2) / (t-m)'C^-1(t-m), likewise; the greatest of all targets
/// R. Gnanadesikan, J. R. Kettenring: Robust Estimates, Residuals, and Outlier Detection with Multiresponse
/// Data, Biometrics 28(1), 1972 (rx). The rows of the whitened background are an orthonormal frame without a
/// preferred direction, which gives the others, as S. Kraut, L. L. Scharf, L. T. McWhorter: Adaptive Subspace
/// Detectors, IEEE Trans. Signal Processing 49(1), 2001, have them for a known covariance. \throws Error if
/// no such distribution holds: other methods, a matrix with a ridge, n < p + 2, or p = 1 (ace).
double threshold_of(const Detector& detector, double false_alarm_rate);

/// Output 0: one score per target (rx: one band). Output 1, if requested: the best target, 1..k (rx: 1), the
/// first of those whose scores are equal to 1e-10 of the best; 0 without a detection. NaN in both for invalid
/// pixels.
std::unique_ptr<Detection> make_detection(const Detector& detector, const Decision& decision);

/// The scores of single pixels; the backend for devices is in hsi_cuda_detect_pixel.so.
class PixelBackend : public Backend {
  public:
    virtual std::unique_ptr<Detection> make_detection(const Detector& detector, const Decision& decision) {
        return detect::make_detection(detector, decision);
    }
    /// squares[i] = the sum of the squares of pixel i, counted line by line, of a scene on the device.
    /// Returns false if this is not a device.
    virtual bool sum_squares(const CubeView<float>& /*scene*/, double* /*squares*/) { return false; }
};

} // namespace hsi::detect
