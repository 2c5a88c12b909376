// SPDX-License-Identifier: MIT
// The noise of the bands of a scene, and stripes along its columns.
//
// regression: J. M. Bioucas-Dias, J. M. P. Nascimento: Hyperspectral subspace identification, IEEE TGRS
// 46(8), 2008. ssdc: R. E. Roger, J. F. Arnold: Reliably estimating the noise in AVIRIS hyperspectral images,
// IJRS 17(10), 1996. residual: L. Gao et al.: A comparative study of noise estimation ..., 2007. lsd: B.-C.
// Gao: An operational method for estimating signal to noise ratios from data acquired with imaging
// spectrometers, Remote Sensing of Environment 43(1), 1993.
//
// The residual of a regression on other bands also contains the noise of these predictors. With v the
// variance of the residual and b the coefficients, v_k = q_k + sum_j b_kj^2 q_j. The noise variance q is the
// solution of this system. Published methods omit this step. q_k is at least 0.04 v_k.
#pragma once

#include "stream/operation.h"
#include "stream/statistics_scan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::noise {

/// Standard deviations, one per band; NaN if missing.
struct Noise {
    std::vector<double> noise, residual;
    bool regularised = false; ///< true if 1e-10 was added to the diagonal of the correlation matrix
};

/// Regresses each band that is not constant on all other bands that are not constant, with the
/// double-precision covariance. \throws Error if the number of valid pixels is less than the number of these
/// bands plus two.
Noise by_regression(const stream::SceneStatistics& statistics);
/// Uses the differences of neighbours along lines. `statistics` must have Statistics::differences.
Noise by_differences(const stream::SceneStatistics& statistics);

/// The two bands on which a band is regressed: its two neighbours in the segment. At an end of the segment,
/// the next two inner bands are used.
struct Neighbours {
    int first = -1, second = -1; ///< -1 if the segment has fewer than 3 bands
};

/// The estimate from square blocks of valid pixels.
enum class BlockMethod {
    none,
    residual, ///< regression of a band on its two neighbouring bands
    /// Regression also on the pixel above; in the first line, on the pixel to the left; the corner is
    /// omitted.
    ssdc,
    deviations ///< standard deviations of the block (the method lsd)
};

struct BlockNoise : Noise {
    std::vector<double> signal; ///< mean in the blocks in use; only for `deviations`
};

struct Stripes {
    /// Standard deviation of the differences between columns and their neighbours.
    std::vector<double> stripe;
    std::vector<double> share; ///< fraction of columns that differ by more than 5 standard errors
};

/// The means of the valid pixels of columns.
struct ColumnMeans {
    std::vector<double> mean;    ///< [band of the list][column]; NaN if no pixel is valid
    std::vector<int64_t> pixels; ///< number of valid pixels, one per column
};

/// A scan for stripes and, unless `method` is none, for the noise of blocks. Blocks start at the scene's
/// corner. Only every k-th of the n blocks is used, with k = ceil(n/16384). The results are complete after
/// the pass.
class NoiseScan : public stream::Operation {
  public:
    virtual Stripes stripes() const = 0;
    virtual BlockNoise blocks() const = 0;
    virtual ColumnMeans column_means() const = 0;
};
std::unique_ptr<NoiseScan> make_scan(const stream::CubeShape& scene, BlockMethod method, int block,
                                     const std::vector<Neighbours>& neighbours,
                                     const std::vector<int>& mean_bands = {});

/// The shift of the centre of an absorption feature between columns, caused by the smile of spectrometers.
struct Smile {
    /// mean(p) - p_j, positive if centres are at longer wavelengths; NaN: unknown.
    std::vector<double> shift_nm;
    std::vector<double> depth; ///< greatest value of 1 - r in each column
    double smile_nm = 0;       ///< peak-to-peak range of the least-squares parabola over the columns
    double rms_nm = 0;         ///< RMS of the differences between the shifts and the parabola
};
/// Computes the smile. r_j is the mean spectrum of column j divided by the line through the range's ends. p_j
/// is the centroid of 1 - r_j with trapezoidal weights. `wavelengths` has at least 3 values in rising order;
/// `means` is [band][column]. \throws Error if fewer than 3 columns have a centroid.
Smile smile_of(const std::vector<double>& wavelengths, const std::vector<double>& means);

/// Returns the median: the middle value, or the mean of the two middle values. Returns NaN if there are no
/// values.
double median(std::vector<double> values);

} // namespace hsi::noise
