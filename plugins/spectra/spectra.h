// SPDX-License-Identifier: MIT
// Reads the spectra of labelled pixels: the mean and the standard deviation of each class, or every spectrum.
// A pass needs to read only the tiles that contain a labelled pixel.
#pragma once

#include "core/tile_plan.h"
#include "math/exact_sum.h"
#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::spectra {

// In this file, `parts` is the number of floats per value of the cube, 1 or stream::value_parts. `bands` is
// the number of values per pixel.

/// The labelled pixels of a scene.
struct Labels {
    int64_t samples = 0;            ///< width of the scene
    std::vector<int64_t> index;     ///< line * samples + sample of each pixel, ascending
    std::vector<uint16_t> class_of; ///< class of each pixel, from 0 to classes - 1
    size_t classes = 0;
};

/// The statistics of a class. Pixels are ignored if a value is not finite or if all values are zero.
struct ClassSpectra {
    int64_t pixels = 0, invalid = 0;
    std::vector<double> mean; ///< mean of each band; NaN if the class has no pixels
    /// Sample standard deviation (n - 1) of each band; NaN for fewer than two pixels.
    std::vector<double> deviation;
};

/// The scan for the statistics of classes. Sums of values and of squares are exact. The result is therefore
/// bitwise equal for every tiling and number of threads, and a standard deviation is accurate even if it is
/// small compared with the mean.
class ClassScan final : public stream::Operation {
  public:
    ClassScan(int bands, const Labels& labels, int parts = 1);
    /// Returns the tiles that contain a labelled pixel.
    std::vector<int64_t> tiles(const TilePlan& plan) const;
    uint64_t scratch_bytes(const stream::TileLimits&) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    /// Returns the statistics of each class. They are complete after the pass.
    std::vector<ClassSpectra> result() const;

  private:
    class ClassWorker;
    static constexpr size_t terms = 3;
    size_t m_bands;
    const Labels& m_labels;
    const int m_parts;
    /// Sums for each class: the bands' values, their squares, and the rounding errors of the squares.
    math::ExactSums m_sums;
    std::vector<int64_t> m_pixels, m_invalid;
};

/// The scan that keeps every spectrum.
class PixelScan final : public stream::Operation {
  public:
    PixelScan(int bands, const Labels& labels, int parts = 1);
    std::vector<int64_t> tiles(const TilePlan& plan) const;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    /// Returns the spectrum of the label with index `pixel`, one value per band; empty if the pixel is
    /// invalid.
    std::vector<double> spectrum(size_t pixel) const;

  private:
    class PixelWorker;
    size_t m_bands;
    const Labels& m_labels;
    const int m_parts;
    std::vector<float> m_values; ///< [label][band][part]
};

} // namespace hsi::spectra
