// SPDX-License-Identifier: MIT
// Computes the weights a in the total variation of the Markov random field line by line, and finds the valid
// pixels.
#pragma once

#include "core/cube_view.h"
#include "core/tile_plan.h"
#include "core/valid_pixel.h"

#include <cstdint>
#include <vector>

namespace hsi::sahic {

/// Computes a = 1 / (1 + sqrt(sum over bands of (forward difference in x)^2 + (in y)^2) / scale) (equation
/// 6). Differences that leave the scene or touch an invalid pixel are zero. Each thread has its own object.
class SpatialWeights {
  public:
    /// The arguments describe the size of the scene. `first_line` [band][sample] and `first_sample`
    /// [band][line] are the scene's first line and sample, for a wrapping border. If they are empty, the
    /// border is mirrored. Both must outlive the object.
    SpatialWeights(int64_t samples, int64_t lines, double scale, const std::vector<float>& first_line,
                   const std::vector<float>& first_sample)
        : m_samples(samples), m_lines(lines), m_scale(scale), m_first_line(first_line),
          m_first_sample(first_sample) {}
    /// Writes the weights of `line` of the core into `out`. Call it for the lines of a tile in order, from 0.
    /// `in` is the tile's window, with a halo of one pixel. Afterwards, valid() describes this line. Sums are
    /// in band order, so that the result is bitwise equal for every tile.
    void weigh(const Tile& tile, const CubeView<const float>& in, int64_t line, float* out);
    /// Finds the valid pixels of `line` of the window, without computing weights.
    void find_valid(const CubeView<const float>& in, int64_t line);
    /// Returns the validity of the pixels, one flag per sample of the window.
    const unsigned char* valid() const { return m_valid.data(); }

  private:
    void find_neighbours(const Tile& tile, const CubeView<const float>& in, int64_t line, bool below);
    float first_sample(int band, int64_t line) const {
        return m_first_sample[static_cast<size_t>(static_cast<int64_t>(band) * m_lines + line)];
    }

    const int64_t m_samples, m_lines;
    const double m_scale;
    const std::vector<float>&m_first_line, &m_first_sample;
    PixelRow m_row;
    std::vector<float> m_sum;
    std::vector<unsigned char> m_valid, m_below, m_right, m_down;
};

} // namespace hsi::sahic
