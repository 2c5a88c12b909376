// SPDX-License-Identifier: MIT
// The setup of the diffusion on the CPU, row by row: the mask, and the Gaussian and the Scharr gradient of
// one component over a tile's window.
#pragma once

#include "core/cube_view.h"
#include "eadp/eadp_simd.h"
#include "stream/operation.h"

#include <cstdint>
#include <vector>

namespace hsi::eadp {

/// Sets the mask of each pixel of `in` to 1 if it is valid in all bands, otherwise to 0. zero_is_invalid: a
/// pixel that is zero in all bands is also invalid. The mask is packed, in.lines x in.samples.
void make_mask(const CubeView<float>& in, bool zero_is_invalid, float* mask);

/// Writes the tiles of a profile from copies that already exist. For every component, the output contains the
/// component itself, with NaN for missing pixels, and then its copies.
class KeptOutputWorker : public stream::Worker {
  public:
    /// `copies` is the number of copies per component.
    KeptOutputWorker(bool zero_is_invalid, int copies, const stream::TileLimits& limits);
    static uint64_t bytes(const stream::TileLimits& limits);
    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override;

  protected:
    /// Writes the diffused copies of one component of a tile to `to`.
    virtual void copy(const Rect& core, int component, const CubeView<float>& to) = 0;
    /// Called after copy() was called for all components of a tile. All rows must be complete when it
    /// returns.
    virtual void finish() {}

  private:
    const bool m_zero_is_invalid;
    const int m_copies;
    std::vector<float> m_mask;
};

class Gradient {
  public:
    Gradient(double sigma, int64_t max_samples);
    static uint64_t bytes(double sigma, int64_t samples);

    /// Calls row(y, squared, valid) for the lines [first, last) of a component. `squared` is the squared
    /// gradient magnitude, undefined for invalid pixels. `valid` is 1 or 0. Each has in.samples elements.
    /// Beyond the window, the image is mirrored at the outer edge of the border pixels.
    template <class Row>
    void run(const CubeView<float>& in, int band, const float* mask, int64_t first, int64_t last,
             const Row& row) {
        begin(in, band, mask, first);
        for (int64_t y = first; y < last; ++y) {
            const double* valid = nullptr;
            const double* squared = gradient_row(y, valid);
            row(y, squared, valid);
        }
    }

  private:
    void begin(const CubeView<float>& in, int band, const float* mask, int64_t first);
    const double* gradient_row(int64_t y, const double*& valid);
    void make_filtered(int64_t y);
    void make_smooth(int64_t y);
    double* smooth(int64_t y) { return m_smooth.data() + (y % 3) * m_pitch + 8; }
    double* valid_row(int64_t y) { return m_valid.data() + (y % 3) * m_pitch + 8; }
    size_t turn(int64_t y) const { return static_cast<size_t>(y % (2 * m_radius + 1)); }
    size_t slot(int64_t y) const { return turn(y) * static_cast<size_t>(m_pitch); }
    /// Filters the denominators of lines y - radius .. y + radius vertically into m_sum_weights.
    void make_weights(int64_t y);

    const SetupKernels& m_simd;
    const std::vector<double> m_weights;
    const int m_radius;
    const int64_t m_pitch;
    std::vector<double> m_line;                     ///< a row with `radius` mirrored pixels on both sides
    std::vector<double> m_numerator, m_denominator; ///< [row mod (2 radius + 1)][sample], filtered along rows
    std::vector<double> m_smooth, m_valid;          ///< [row mod 3][8 + sample]
    std::vector<double> m_sum, m_sum_weights, m_squared;
    std::vector<const double*> m_rows;
    /// The state of a row of m_denominator. If all pixels of the line are valid, the row equals
    /// m_line_weight. Such a row is filled only when a line within the radius has invalid pixels.
    enum class Weights : char { filtered, constant, filled };
    std::vector<Weights> m_kind;
    /// Denominators if all pixels are valid: m_line_weight after filtering along one line, m_whole_weight
    /// after filtering in both directions.
    double m_line_weight, m_whole_weight;
    bool m_whole = false; ///< true if m_sum_weights contains m_whole_weight

    CubeView<float> m_in;
    int m_band = 0;
    const float* m_mask = nullptr;
    int64_t m_next_filtered = 0, m_next_smooth = 0;
};

} // namespace hsi::eadp
