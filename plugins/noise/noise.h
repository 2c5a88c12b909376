// SPDX-License-Identifier: MIT
// The noise of the bands of a scene, and stripes along its columns.
//
// regression: J. M. Bioucas-Dias, J. M. P. Nascimento: Hyperspectral subspace identification, IEEE TGRS
// 46(8), 2008. ssdc: R. E. Roger, J. F. Arnold: Reliably estimating the noise in AVIRIS hyperspectral images,
// IJRS 17(10), 1996. residual: L. Gao et al.: A comparative study of noise estimation ..., 2007. lsd: B.-C.
// Gao: An operational method for estimating signal to noise ratios from data acquired with imaging
// spectrometers, Remote Sensing of Environment 43(1), 1993.
//
// The residual of a regression on other bands contains the noise of these predictors: with v the variance of
// the residual and b the coefficients, v_k = q_k + sum_j b_kj^2 q_j. The noise q solves this system, which
// published methods do not do; q_k is at least 0.04 v_k.
#pragma once

#include "stream/operation.h"
#include "stream/statistics_scan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::noise {

/// Standard deviations, by band; NaN: missing.
struct Noise {
    std::vector<double> noise, residual;
    bool regularised = false; ///< 1e-10 was added to the diagonal of the correlation matrix
};

/// Each band that is not constant on all others, by the double-precision covariance. \throws Error when there
/// are fewer valid pixels than these bands and two more.
Noise by_regression(const stream::SceneStatistics& statistics);
/// The differences of neighbours along lines: statistics with Statistics::differences.
Noise by_differences(const stream::SceneStatistics& statistics);

/// The two bands that a band is regressed on: its neighbours in the segment, at an end the next two inwards.
struct Neighbours {
    int first = -1, second = -1; ///< -1: the segment has fewer than 3 bands
};

/// The estimate from square blocks of valid pixels.
enum class BlockMethod {
    none,
    residual,  ///< a band on its two neighbours
    ssdc,      ///< and on the pixel above; in the first line that to the left; the corner is left out
    deviations ///< lsd: of the block
};

struct BlockNoise : Noise {
    std::vector<double> signal; ///< of deviations: the mean in the blocks that count
};

struct Stripes {
    std::vector<double> stripe; ///< standard deviation of the differences between columns and their
                                ///< neighbours
    std::vector<double> share;  ///< of columns that differ by over 5 standard errors
};

/// Means of the valid pixels of columns.
struct ColumnMeans {
    std::vector<double> mean;    ///< [band of the list][column]; NaN where no pixel is valid
    std::vector<int64_t> pixels; ///< one a column
};

/// A scan of stripes and, unless `method` is none, of blocks. Blocks begin at the scene's corner; every k-th
/// of n is taken, k = ceil(n/16384). result functions are complete after the pass.
class NoiseScan : public stream::Operation {
  public:
    virtual Stripes stripes() const = 0;
    virtual BlockNoise blocks() const = 0;
    virtual ColumnMeans column_means() const = 0;
};
std::unique_ptr<NoiseScan> make_scan(const stream::CubeShape& scene, BlockMethod method, int block,
                                     const std::vector<Neighbours>& neighbours,
                                     const std::vector<int>& mean_bands = {});

/// How the centre of an absorption moves from column to column, which spectrometers' smile does.
struct Smile {
    std::vector<double> shift_nm; ///< mean(p) - p_j, positive if centres are at longer waves; NaN: unknown
    std::vector<double> depth;    ///< the greatest 1 - r of a column
    double smile_nm = 0;          ///< peak to peak of the parabola of least squares over the columns
    double rms_nm = 0;            ///< of the differences between the shifts and it
};
/// r_j: the mean spectrum of column j over the line through the range's ends; p_j: the centroid of 1 - r_j
/// with the weights of trapezoids. `wavelengths`: ascending, at least 3; means: [band][column].
/// \throws Error when fewer than 3 columns have a centroid.
Smile smile_of(const std::vector<double>& wavelengths, const std::vector<double>& means);

/// The middle value, or the mean of both; NaN without values.
double median(std::vector<double> values);

} // namespace hsi::noise
