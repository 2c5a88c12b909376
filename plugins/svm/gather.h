// SPDX-License-Identifier: MIT
// Reads the spectra of given pixels in one scan over the tiles that contain them.
#pragma once

#include "core/tile_plan.h"
#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::svm {

class Gather final : public stream::Operation {
  public:
    /// `index` has line * samples + sample of each pixel in rising order. `samples` is the width of the
    /// scene.
    Gather(int bands, int64_t samples, std::vector<int64_t> index);
    /// Returns the tiles of the plan that contain a pixel.
    std::vector<int64_t> tiles(const TilePlan& plan) const;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    /// Return the spectra, [pixel][band], and whether a pixel is valid (core/valid_pixel.h). Both are
    /// complete after the pass.
    const std::vector<float>& spectra() const { return m_spectra; }
    bool valid(size_t pixel) const;

  private:
    class GatherWorker;
    int m_bands;
    int64_t m_samples;
    std::vector<int64_t> m_index;
    std::vector<float> m_spectra;
};

} // namespace hsi::svm
