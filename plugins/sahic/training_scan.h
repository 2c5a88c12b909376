// SPDX-License-Identifier: MIT
// Reads the data that training needs from a scene in one scan: the scene's greatest absolute value, the
// spectra of given pixels and, for a wrapping border, the scene's first line and first sample.
#pragma once

#include "core/tile_plan.h"
#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::sahic {

class TrainingScan final : public stream::Operation {
  public:
    /// `index` has line * samples + sample of the requested pixels, in rising order. `border` requests the
    /// first line and the first sample.
    TrainingScan(const stream::CubeShape& shape, std::vector<int64_t> index, bool border);
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    uint64_t preferred_bytes() const override { return uint64_t{16} << 20; }
    /// Returns the tiles of the plan that contain a requested pixel or a part of the border. Reading these
    /// tiles is enough if the greatest value is already known.
    std::vector<int64_t> tiles(const TilePlan& plan) const;

    struct Result {
        int64_t valid_pixels = 0, invalid_pixels = 0;
        std::vector<int> empty;
        const std::vector<int>& empty_bands() const { return empty; }
    };
    /// Returns the counts of a pass over all tiles.
    Result result() const { return {m_shape.pixels() - m_invalid, m_invalid, empty_bands()}; }

    // The results below are complete after the pass.
    /// Returns the greatest absolute value of the valid pixels; 0 if there are none.
    float largest() const { return m_largest; }
    int64_t invalid() const { return m_invalid; }
    /// Returns the bands (0-based) that have no finite value.
    std::vector<int> empty_bands() const;
    /// Returns the spectra [pixel][band] in the order of `index`.
    const std::vector<float>& spectra() const { return m_spectra; }
    bool valid(size_t pixel) const;
    const std::vector<float>& first_line() const { return m_first_line; }     ///< [band][sample]
    const std::vector<float>& first_sample() const { return m_first_sample; } ///< [band][line]

  private:
    class ScanWorker;
    stream::CubeShape m_shape;
    std::vector<int64_t> m_index;
    bool m_border;
    std::vector<float> m_spectra, m_first_line, m_first_sample;
    std::vector<char> m_finite;
    float m_largest = 0;
    int64_t m_invalid = 0;
};

} // namespace hsi::sahic
