// SPDX-License-Identifier: MIT
#include "sahic/spatial_weights.h"

#include <cmath>

namespace hsi::sahic {
namespace {

void valid_pixels(const CubeView<const float>& in, int64_t line, PixelRow& row,
                  std::vector<unsigned char>& valid) {
    const auto samples = static_cast<size_t>(in.samples);
    row.start(samples);
    for (int b = 0; b < in.bands; ++b)
        row.look(in.row(b, line));
    row.judge();
    valid.resize(samples);
    for (size_t i = 0; i < samples; ++i)
        valid[i] = row.is_valid(i);
}

} // namespace

void SpatialWeights::find_valid(const CubeView<const float>& in, int64_t line) {
    valid_pixels(in, line, m_row, m_valid);
}

/// Determines the pixels of the core's line whose differences to the right and to the line below count.
void SpatialWeights::find_neighbours(const Tile& tile, const CubeView<const float>& in, int64_t line,
                                     bool below) {
    const int64_t scene_line = tile.core.y + line;
    const auto dx = static_cast<size_t>(tile.core.x - tile.window.x), w = static_cast<size_t>(tile.core.w);
    m_right.assign(w, 0);
    for (size_t i = 0; i + 1 < w; ++i)
        m_right[i] = m_valid[dx + i] && m_valid[dx + i + 1];
    if (tile.core.right() < m_samples) {
        m_right[w - 1] = m_valid[dx + w - 1] && m_valid[dx + w];
        // The right neighbour of the last sample is the line's first sample.
    } else if (!m_first_line.empty() && m_samples > 1) {
        PixelLook<float> look;
        for (int b = 0; b < in.bands; ++b)
            look.at(first_sample(b, scene_line));
        m_right[w - 1] = m_valid[dx + w - 1] && look.is_valid();
    }
    m_down.assign(w, 0);
    for (size_t i = 0; below && i < w; ++i)
        m_down[i] = m_valid[dx + i] && m_below[dx + i];
}

void SpatialWeights::weigh(const Tile& tile, const CubeView<const float>& in, int64_t line, float* out) {
    const int64_t row = line + tile.core.y - tile.window.y, dx = tile.core.x - tile.window.x;
    if (line == 0)
        find_valid(in, row);
    else
        m_valid.swap(m_below);
    const bool wraps = !m_first_line.empty();
    const bool last_line = tile.core.y + line + 1 == m_lines, last_sample = tile.core.right() == m_samples;
    const auto w = static_cast<size_t>(tile.core.w);
    m_sum.assign(w, 0.0f);
    // The neighbours below are in the next line of the window, or in the scene's first line.
    const bool below = !last_line || (wraps && m_lines > 1);
    const CubeView<const float> first(m_first_line.data() + (wraps ? tile.window.x : 0), in.bands, 1,
                                      in.samples, m_samples, m_samples);
    if (below && !last_line)
        valid_pixels(in, row + 1, m_row, m_below);
    else if (below)
        valid_pixels(first, 0, m_row, m_below);
    find_neighbours(tile, in, line, below);
    const bool wrap_right = wraps && last_sample && m_samples > 1 && m_right[w - 1];
    const size_t inner = last_sample ? w - 1 : w;
    for (int b = 0; b < in.bands; ++b) {
        const float* v = in.row(b, row) + dx;
        for (size_t i = 0; i < inner; ++i) {
            const float d = v[i + 1] - v[i];
            m_sum[i] += m_right[i] ? d * d : 0.0f;
        }
        if (wrap_right) {
            const float d = first_sample(b, tile.core.y + line) - v[w - 1];
            m_sum[w - 1] += d * d;
        }
        if (!below) continue;
        const float* u = (last_line ? first.row(b, 0) : in.row(b, row + 1)) + dx;
        for (size_t i = 0; i < w; ++i) {
            const float d = u[i] - v[i];
            m_sum[i] += m_down[i] ? d * d : 0.0f;
        }
    }
    for (size_t i = 0; i < w; ++i)
        out[i] = static_cast<float>(1.0 / (1.0 + std::sqrt(static_cast<double>(m_sum[i])) / m_scale));
}

} // namespace hsi::sahic
