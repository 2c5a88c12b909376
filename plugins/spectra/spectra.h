// SPDX-License-Identifier: MIT
// Spectra of labelled pixels: mean and standard deviation of classes, or every spectrum. Makes one scan over
// the tiles that contain a labelled pixel.
#pragma once

#include "core/tile_plan.h"
#include "math/exact_sum.h"
#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::spectra {

// parts: floats per value of the cube, 1 or stream::value_parts; `bands` counts values.

/// Labelled pixels of a scene.
struct Labels {
    int64_t samples = 0;            ///< of the scene
    std::vector<int64_t> index;     ///< line * samples + sample, ascending
    std::vector<uint16_t> class_of; ///< class of each: from 0 to below `classes`
    size_t classes = 0;
};

/// The statistics of a class. Pixels with a value that is not finite, or with only zeros, do not count.
struct ClassSpectra {
    int64_t pixels = 0, invalid = 0;
    std::vector<double> mean;      ///< by band; NaN without pixels
    std::vector<double> deviation; ///< of the sample, with n - 1; NaN for fewer than two pixels
};

/// The scan for the classes' statistics. Sums of values and of squares are exact, so the result is the same
/// to the last bit for every tiling and number of threads, and a standard deviation is accurate even if it is
/// small compared with the mean.
class ClassScan final : public stream::Operation {
  public:
    ClassScan(int bands, const Labels& labels, int parts = 1);
    std::vector<int64_t> tiles(const TilePlan& plan) const; ///< those that contain a labelled pixel
    uint64_t scratch_bytes(const stream::TileLimits&) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    std::vector<ClassSpectra> result() const; ///< by class; complete after the pass

  private:
    class ClassWorker;
    static constexpr size_t terms = 3;
    size_t m_bands;
    const Labels& m_labels;
    const int m_parts;
    math::ExactSums
        m_sums; ///< for each class the bands' values, their squares, and the rounding errors of the squares
    std::vector<int64_t> m_pixels, m_invalid;
};

/// The scan that keeps every spectrum.
class PixelScan final : public stream::Operation {
  public:
    PixelScan(int bands, const Labels& labels, int parts = 1);
    std::vector<int64_t> tiles(const TilePlan& plan) const;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    /// Returns the spectrum of the label at `pixel`: one value per band; empty if the pixel is invalid.
    std::vector<double> spectrum(size_t pixel) const;

  private:
    class PixelWorker;
    size_t m_bands;
    const Labels& m_labels;
    const int m_parts;
    std::vector<float> m_values; ///< [label][band][part]
};

} // namespace hsi::spectra
