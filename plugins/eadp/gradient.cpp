// SPDX-License-Identifier: MIT
#include "eadp/gradient.h"

#include "core/valid_pixel.h"

#include <algorithm>
#include <limits>

namespace hsi::eadp {
namespace {

/// Returns the index after reflection at the outer edges of the border pixels: ... 1 0 | 0 1 2 .. n-1 | n-1
/// n-2 ...
int64_t mirrored(int64_t i, int64_t n) {
    i %= 2 * n;
    if (i < 0) i += 2 * n;
    return i < n ? i : 2 * n - 1 - i;
}

/// Returns the result of smooth_row() or smooth_column() for a constant value, bitwise equal to the kernels.
double filtered_constant(const std::vector<double>& weights, double value) {
    double sum = weights[0] * value;
    for (size_t t = 1; t < weights.size(); ++t)
        sum = sum + weights[t] * (value + value);
    return sum;
}

} // namespace

void make_mask(const CubeView<float>& in, bool zero_is_invalid, float* mask) {
    const auto samples = static_cast<size_t>(in.samples);
    PixelRow row;
    for (int64_t y = 0; y < in.lines; ++y) {
        row.start(samples);
        for (int b = 0; b < in.bands; ++b)
            row.look(in.row(b, y));
        row.judge(zero_is_invalid);
        for (size_t i = 0; i < samples; ++i)
            mask[static_cast<size_t>(y) * samples + i] = row.is_valid(i) ? 1.0f : 0.0f;
    }
}

KeptOutputWorker::KeptOutputWorker(bool zero_is_invalid, int copies, const stream::TileLimits& limits)
    : m_zero_is_invalid(zero_is_invalid), m_copies(copies),
      m_mask(static_cast<size_t>(limits.core_samples * limits.core_lines)) {}

uint64_t KeptOutputWorker::bytes(const stream::TileLimits& limits) {
    return static_cast<uint64_t>(limits.core_samples * limits.core_lines) * 4;
}

void KeptOutputWorker::process(const Tile& tile, const CubeView<float>& in,
                               const std::vector<CubeView<float>>& out) {
    for (int c = 0; c < in.bands; ++c) {
        CubeView<float> to = out[0];
        to.data = out[0].row(c * (m_copies + 1) + 1, 0);
        to.bands = m_copies;
        copy(tile.core, c, to);
    }
    make_mask(in, m_zero_is_invalid, m_mask.data());
    for (int c = 0; c < in.bands; ++c)
        for (int64_t y = 0; y < tile.core.h; ++y) {
            const float* const x = in.row(c, y);
            const float* const mask = m_mask.data() + y * tile.core.w;
            float* const to = out[0].row(c * (m_copies + 1), y);
            for (int64_t i = 0; i < tile.core.w; ++i)
                to[i] = mask[i] != 0 ? x[i] : std::numeric_limits<float>::quiet_NaN();
        }
    finish();
}

Gradient::Gradient(double sigma, int64_t max_samples)
    : m_simd(setup_kernels()), m_weights(gaussian_weights(sigma)), m_radius(gaussian_radius(sigma)),
      m_pitch(max_samples + 16), m_line(static_cast<size_t>(max_samples + 2 * m_radius)),
      m_numerator(static_cast<size_t>(m_pitch * (2 * m_radius + 1))), m_denominator(m_numerator.size()),
      m_smooth(static_cast<size_t>(m_pitch * 3)), m_valid(m_smooth.size()),
      m_sum(static_cast<size_t>(m_pitch)), m_sum_weights(m_sum.size()), m_squared(m_sum.size()),
      m_rows(static_cast<size_t>(2 * m_radius + 1)), m_kind(m_rows.size(), Weights::filtered),
      m_line_weight(filtered_constant(m_weights, 1.0)),
      m_whole_weight(filtered_constant(m_weights, m_line_weight)) {}

uint64_t Gradient::bytes(double sigma, int64_t samples) {
    const auto radius = static_cast<uint64_t>(gaussian_radius(sigma));
    return (static_cast<uint64_t>(samples) + 16) * 8 * (2 * (2 * radius + 1) + 11);
}

void Gradient::begin(const CubeView<float>& in, int band, const float* mask, int64_t first) {
    m_in = in;
    m_band = band;
    m_mask = mask;
    m_next_smooth = std::max<int64_t>(0, first - 1);
    m_next_filtered = std::max<int64_t>(0, m_next_smooth - m_radius);
}

void Gradient::make_filtered(int64_t y) {
    const int64_t w = m_in.samples;
    const float* const x = m_in.row(m_band, y);
    const float* const m = m_mask + y * w;
    double* const line = m_line.data();
    const auto filter = [&](auto value, double* out) {
        for (int64_t i = 0; i < w; ++i)
            line[m_radius + i] = value(i);
        for (int64_t i = 1; i <= m_radius; ++i) {
            line[m_radius - i] = value(mirrored(-i, w));
            line[m_radius + w - 1 + i] = value(mirrored(w - 1 + i, w));
        }
        m_simd.smooth_row(line + m_radius, m_weights.data(), m_radius, w, out);
    };
    filter([&](int64_t i) { return m[i] != 0.0f ? static_cast<double>(x[i]) : 0.0; },
           m_numerator.data() + slot(y));
    int holes = 0;
    for (int64_t i = 0; i < w; ++i)
        holes |= static_cast<int>(m[i] != 1.0f);
    m_kind[turn(y)] = holes != 0 ? Weights::filtered : Weights::constant;
    if (holes != 0)
        filter([&](int64_t i) { return static_cast<double>(m[i]); }, m_denominator.data() + slot(y));
}

void Gradient::make_weights(int64_t y) {
    const int64_t w = m_in.samples, h = m_in.lines;
    bool whole = true;
    for (int64_t t = -m_radius; t <= m_radius; ++t)
        whole = whole && m_kind[turn(mirrored(y + t, h))] != Weights::filtered;
    if (whole) {
        if (!m_whole) std::fill(m_sum_weights.begin(), m_sum_weights.end(), m_whole_weight);
        m_whole = true;
        return;
    }
    m_whole = false;
    for (int64_t t = -m_radius; t <= m_radius; ++t) {
        const int64_t line = mirrored(y + t, h);
        double* const row = m_denominator.data() + slot(line);
        Weights& kind = m_kind[turn(line)];
        if (kind == Weights::constant) {
            std::fill_n(row, w, m_line_weight);
            kind = Weights::filled;
        }
        m_rows[static_cast<size_t>(m_radius + t)] = row;
    }
    m_simd.smooth_column(m_rows.data(), m_weights.data(), m_radius, w, m_sum_weights.data());
}

void Gradient::make_smooth(int64_t y) {
    const int64_t w = m_in.samples, h = m_in.lines;
    const int64_t last = std::min(h - 1, y + m_radius);
    for (; m_next_filtered <= last; ++m_next_filtered)
        make_filtered(m_next_filtered);
    double* const out = smooth(y);
    double* const valid = valid_row(y);
    const float* const m = m_mask + y * w;
    for (int64_t i = 0; i < w; ++i)
        valid[i] = static_cast<double>(m[i]);
    for (int64_t t = -m_radius; t <= m_radius; ++t)
        m_rows[static_cast<size_t>(m_radius + t)] = m_numerator.data() + slot(mirrored(y + t, h));
    m_simd.smooth_column(m_rows.data(), m_weights.data(), m_radius, w, m_sum.data());
    make_weights(y);
    m_simd.divide(m_sum.data(), m_sum_weights.data(), valid, w, out);
    // The image is mirrored, so the pixel beyond the edge equals the edge pixel.
    out[-1] = out[0], out[w] = out[w - 1];
    valid[-1] = valid[0], valid[w] = valid[w - 1];
}

const double* Gradient::gradient_row(int64_t y, const double*& valid) {
    const int64_t h = m_in.lines, last = std::min(h - 1, y + 1);
    for (; m_next_smooth <= last; ++m_next_smooth)
        make_smooth(m_next_smooth);
    const int64_t up = std::max<int64_t>(0, y - 1);
    const double* const rows[3] = {smooth(up), smooth(y), smooth(last)};
    const double* const valids[3] = {valid_row(up), valid_row(y), valid_row(last)};
    m_simd.scharr(rows, valids, m_in.samples, m_squared.data());
    valid = valids[1];
    return m_squared.data();
}

} // namespace hsi::eadp
