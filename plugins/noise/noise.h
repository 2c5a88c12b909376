// SPDX-License-Identifier: MIT
// The noise of the bands of a scene, and stripes along its columns.
//
// regression: J. M. Bioucas-Dias, J. M. P. Nascimento: Hyperspectral subspace identification, IEEE TGRS
// 46(8), 2008. ssdc: R. E. Roger, J. F. Arnold: Reliably estimating the noise in AVIRIS hyperspectral images,
// IJRS 17(10), 1996. residual: L. Gao et al.: A comparative study of noise estimation ..., 2007. lsd: B.-C.
// Gao: An operational method for estimating signal to noise ratios from data acquired with imaging
// spectrometers, Remote Sensing of Environment 43(1), 1993.
//
// The residual of a regression on other bands also contains the noise of these bands. Let v_k be the variance
// of the residual of band k, b_kj the coefficients and q_k the noise variance. Then v_k = q_k + sum_j b_kj^2
// q_j. Solving this system gives q. Published methods omit this step. The solution may be too small or
// negative, so q_k below 0.04 v_k is raised to 0.04 v_k.
#pragma once

#include "stream/operation.h"
#include "stream/statistics_scan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::noise {

/// Standard deviations, one per band; NaN if missing. `noise`: of the noise. `residual`: of the regression's
/// residual, which also contains the noise of other bands. Methods without a regression set both to the same
/// values.
struct Noise {
    std::vector<double> noise, residual;
    bool regularised = false; ///< true if 1e-10 was added to the diagonal of the correlation matrix
};

/// Estimates the noise by regression of each band on all others. Constant bands are left out. `statistics`
/// must have the covariance in double precision. \throws Error if the number of valid pixels is less than the
/// number of these bands plus two.
Noise by_regression(const stream::SceneStatistics& statistics);
/// Estimates the noise from the differences of neighbouring pixels along lines. `statistics` must have
/// Statistics::differences.
Noise by_differences(const stream::SceneStatistics& statistics);

/// The two bands on which a band is regressed: the bands before and after it in its segment of the spectrum.
/// For the first or last band of the segment, these are the next two bands inside the segment.
struct Neighbours {
    int first = -1, second = -1; ///< -1 if the segment has fewer than 3 bands
};

/// The method that estimates the noise from square blocks of valid pixels.
enum class BlockMethod {
    none,
    residual, ///< regression of a band on its two neighbouring bands
    /// Regression on the two bands and on the same band of the pixel above. In the first line of a block, the
    /// pixel to the left is used instead. The block's first pixel is omitted.
    ssdc,
    deviations ///< standard deviations of the block (the method lsd)
};

struct BlockNoise : Noise {
    std::vector<double> signal; ///< mean in the blocks in use; only for `deviations`
};

struct Stripes {
    /// Standard deviation of the offsets of columns (stripes), one per band. It is estimated from the
    /// differences of columns from the mean of their two neighbours, without the noise in these differences.
    std::vector<double> stripe;
    std::vector<double> share; ///< fraction of columns that differ by more than 5 standard errors
};

/// The means of the valid pixels of columns.
struct ColumnMeans {
    std::vector<double> mean;    ///< [band of the list][column]; NaN if no pixel is valid
    std::vector<int64_t> pixels; ///< number of valid pixels, one per column
};

/// A scan for stripes and, unless `method` is none, for the noise in blocks. `block`: size of a block in
/// pixels; the first block is in the scene's corner. If the scene has n blocks, only every k-th block is
/// used, with k = ceil(n/16384). `mean_bands`: the bands of column_means(). The results are complete after
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
    /// mean(p) - p_j for each column j, see smile_of(). It is positive if the band centres of the column are
    /// at longer wavelengths. NaN: unknown.
    std::vector<double> shift_nm;
    std::vector<double> depth; ///< greatest value of 1 - r in each column
    double smile_nm = 0;       ///< peak-to-peak range of the least-squares parabola over the columns
    double rms_nm = 0;         ///< RMS of the differences between the shifts and the parabola
};
/// Computes the smile from an absorption feature. r_j is the mean spectrum of column j, divided by the line
/// through its first and last value. p_j is the wavelength of the feature's centroid, the centroid of 1 - r_j
/// with trapezoidal weights. `wavelengths` has at least 3 values in rising order; `means` is [band][column].
/// \throws Error if fewer than 3 columns have a centroid.
Smile smile_of(const std::vector<double>& wavelengths, const std::vector<double>& means);

/// Returns the median: the middle value, or the mean of the two middle values. Returns NaN if there are no
/// values.
double median(std::vector<double> values);

} // namespace hsi::noise
