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
// the residual and b the coefficients, v_k = q_k + sum_j b_kj^2 q_j. The noise q solves this system, a step
// that published methods omit; q_k is at least 0.04 v_k.
#pragma once

#include "stream/operation.h"
#include "stream/statistics_scan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::noise {

/// Standard deviations per band; NaN if missing.
struct Noise {
    std::vector<double> noise, residual;
    bool regularised = false; ///< 1e-10 was added to the diagonal of the correlation matrix
};

/// Regresses each band that is not constant on all others, with the double-precision covariance. \throws
/// Error if there are fewer valid pixels than these bands plus two.
Noise by_regression(const stream::SceneStatistics& statistics);
/// Uses the differences of neighbours along lines: statistics with Statistics::differences.
Noise by_differences(const stream::SceneStatistics& statistics);

/// The two bands on which a band is regressed: its neighbours in the segment, at an end the next two inwards.
struct Neighbours {
    int first = -1, second = -1; ///< -1 if the segment has fewer than 3 bands
};

/// The estimate from square blocks of valid pixels.
enum class BlockMethod {
    none,
    residual,  ///< regresses a band on its two neighbours
    ssdc,      ///< also on the pixel above (in the first line, to the left); the corner is left out
    deviations ///< lsd: standard deviations of the block
};

struct BlockNoise : Noise {
    std::vector<double> signal; ///< for deviations: the mean in the blocks in use
};

struct Stripes {
    std::vector<double> stripe; ///< standard deviation of the differences between columns and their
                                ///< neighbours
    std::vector<double> share;  ///< of columns that differ by more than 5 standard errors
};

/// The means of the valid pixels of columns.
struct ColumnMeans {
    std::vector<double> mean;    ///< [band of the list][column]; NaN if no pixel is valid
    std::vector<int64_t> pixels; ///< one per column
};

/// A scan of stripes and, unless `method` is none, of blocks. Blocks begin at the scene's corner; every k-th
/// of n blocks is used, k = ceil(n/16384). The result functions are complete after the pass.
class NoiseScan : public stream::Operation {
  public:
    virtual Stripes stripes() const = 0;
    virtual BlockNoise blocks() const = 0;
    virtual ColumnMeans column_means() const = 0;
};
std::unique_ptr<NoiseScan> make_scan(const stream::CubeShape& scene, BlockMethod method, int block,
                                     const std::vector<Neighbours>& neighbours,
                                     const std::vector<int>& mean_bands = {});

/// The shift of the centre of an absorption from column to column, caused by the smile of spectrometers.
struct Smile {
    std::vector<double> shift_nm; ///< mean(p) - p_j, positive if centres are at longer wavelengths; NaN:
                                  ///< unknown
    std::vector<double> depth;    ///< the greatest 1 - r of a column
    double smile_nm = 0;          ///< peak to peak of the least-squares parabola over the columns
    double rms_nm = 0;            ///< of the differences between the shifts and the parabola
};
/// Computes the smile. r_j: the mean spectrum of column j divided by the line through the range's ends; p_j:
/// the centroid of 1 - r_j with the weights of trapezoids. `wavelengths`: ascending, at least 3; means:
/// [band][column]. \throws Error if fewer than 3 columns have a centroid.
Smile smile_of(const std::vector<double>& wavelengths, const std::vector<double>& means);

/// Returns the middle value, or the mean of the two middle values; NaN without values.
double median(std::vector<double> values);

} // namespace hsi::noise
