// SPDX-License-Identifier: MIT
// ADMM on the CPU. (H'H + I)^-1 is applied exactly to rounding, without a two-dimensional transform: an FFT
// along each line turns it into one tridiagonal system a frequency along the samples' column,
//   (3 + w) Y_j - Y_(j-1) - Y_(j+1) = R_j,   w = 2 - 2 cos(2 pi k/n),
// whose solution on an endless line is a causal and an anticausal first-order filter with the pole
// z = (d - sqrt(d^2 - 4))/2 <= 0.382, d = 3 + w. Borders are what lies beyond them: a line is continued by
// `reach` mirrored (or wrapped) values on both sides before the FFT, a column by as many lines: 0.382^20 is
// 4e-9, under the rounding of single precision. So any size has a fast FFT, and no cosine transform is
// needed. Two classes share one complex transform.
#include "core/error.h"
#include "core/host_memory.h"
#include "parallel/team.h"
#include "sahic/mrf_simd.h"
#include "sahic/sahic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

namespace hsi::sahic {
namespace {

constexpr int64_t reach = 20;
constexpr int64_t block_lines = 16, group = 4; ///< lines of a unit of work; lines of an FFT
constexpr int64_t panel = 128;                 ///< most frequencies of a unit of the recursive filter
constexpr int64_t panel_bytes = 1 << 20;       ///< of a unit, which is gone through forwards and back again

int64_t stride_of(int64_t samples) { return (samples + 15) / 16 * 16 + 32; }
constexpr int64_t margin = 16; ///< floats before the first sample of temporary rows

/// Where a line or sample beyond the border comes from.
int64_t beyond(int64_t i, int64_t size, bool periodic) {
    if (periodic) return ((i % size) + size) % size;
    const int64_t period = 2 * size;
    const int64_t at = ((i % period) + period) % period;
    return at < size ? at : period - 1 - at;
}

class CpuSolver final : public MrfSolver {
  public:
    CpuSolver(const MrfOptions& options, const MrfLimits& limits, int threads)
        : m_options(options), m_limits(limits), m_team(threads), m_simd(mrf_kernels()) {
        const int64_t stride = stride_of(limits.samples);
        const auto plane = static_cast<size_t>(limits.lines * stride + 16);
        const auto planes = static_cast<size_t>(limits.classes) * plane;
        for (auto* b : {&m_p, &m_q, &m_d1, &m_t, &m_d4, &m_v4, &m_dh, &m_dv})
            *b = HostBuffer<float>(planes);
        for (auto& b : m_last)
            b = HostBuffer<float>(static_cast<size_t>(limits.classes * last_floats(limits.lines, stride)));
        for (auto* b : {&m_e, &m_d3, &m_threshold, &m_h_exists, &m_h_counts, &m_v_exists, &m_v_counts,
                        &m_valid, &m_fixed})
            *b = HostBuffer<float>(plane);
        const int64_t n = FftPlan::good_size(limits.samples + 2 * reach);
        m_f = HostBuffer<float>(static_cast<size_t>((limits.classes + 1) / 2 * 2 * limits.lines * n + 16));
        m_scratch.resize(static_cast<size_t>(threads));
        for (auto& s : m_scratch)
            s.resize(scratch_floats(limits));
    }

    /// D5 of the last lines of all blocks of a class, horizontal and vertical.
    static int64_t last_floats(int64_t lines, int64_t stride) {
        return (lines + block_lines - 1) / block_lines * 2 * stride;
    }

    static uint64_t scratch_floats(const MrfLimits& l) {
        const int64_t stride = stride_of(l.samples), n = FftPlan::good_size(l.samples + 2 * reach);
        return static_cast<uint64_t>((8 + block_lines) * stride + 2 * group * n + 4 * group * n +
                                     2 * reach * panel + 8 * margin + (2 * stride + 16) + 64);
    }

    static uint64_t bytes(const MrfLimits& l) {
        const int64_t stride = stride_of(l.samples), plane = l.lines * stride + 16;
        const int64_t n = FftPlan::good_size(l.samples + 2 * reach);
        return static_cast<uint64_t>(4 * (plane * (8 * l.classes + 9) +
                                          2 * l.classes * last_floats(l.lines, stride) +
                                          (l.classes + 1) / 2 * 2 * l.lines * n));
    }

    MrfResiduals solve(const MrfProblem& problem, float* q, const CancelFlag* cancel) override {
        if (problem.classes != m_limits.classes || problem.samples > m_limits.samples ||
            problem.lines > m_limits.lines)
            throw Error("internal: an MRF tile is larger than was planned");
        start(problem);
        int side = 0;
        for (int it = 0; it < m_options.iterations; ++it) {
            if (cancel && cancel->requested()) throw Cancelled();
            if (it + 1 == m_options.iterations) copy_out(q); // q before the last step, for the residuals
            m_team.run((m_lines + block_lines - 1) / block_lines, [&](int64_t unit, int member) {
                update(unit * block_lines, it == 0, side, m_scratch[static_cast<size_t>(member)].data());
            });
            m_team.run(m_pairs * 2 * m_panels, [&](int64_t unit, int member) {
                filter(unit, m_scratch[static_cast<size_t>(member)].data());
            });
            m_team.run(m_pairs * m_groups, [&](int64_t unit, int member) {
                back(unit, m_scratch[static_cast<size_t>(member)].data());
            });
            side = 1 - side;
            if (progress) progress(static_cast<double>(it + 1) / m_options.iterations);
        }
        const MrfResiduals residuals = finish(problem, q);
        copy_out(q);
        return residuals;
    }

  private:
    float* plane(const HostBuffer<float>& b, int k) const { return b.data() + k * m_plane; }

    void start(const MrfProblem& p) {
        m_problem = &p;
        m_lines = p.lines;
        m_samples = p.samples;
        m_stride = stride_of(p.samples);
        m_plane = m_lines * m_stride + 16;
        m_classes = p.classes;
        m_pairs = (m_classes + 1) / 2;
        m_groups = (m_lines + group - 1) / group;
        m_n = FftPlan::good_size(m_samples + 2 * reach);
        for (int64_t i = 0; i < reach; ++i) {
            m_before[static_cast<size_t>(i)] = beyond(i - reach, m_samples, p.periodic);
            m_behind[static_cast<size_t>(i)] = beyond(m_samples + i, m_samples, p.periodic);
        }
        m_panel = panel;
        while (m_panel > 32 && m_panel * m_lines * static_cast<int64_t>(sizeof(float)) > panel_bytes)
            m_panel /= 2;
        m_panels = (m_n + m_panel - 1) / m_panel;
        if (m_plan.n != m_n) {
            m_plan = FftPlan(m_n);
            m_pole.resize(static_cast<size_t>(m_n));
            m_gain.resize(static_cast<size_t>(m_n));
            m_steady.resize(static_cast<size_t>(m_n));
            for (int64_t k = 0; k < m_n; ++k) {
                const double d = 5.0 - 2.0 * std::cos(2.0 * std::numbers::pi * static_cast<double>(k) /
                                                      static_cast<double>(m_n));
                const double z = (d - std::sqrt(d * d - 4.0)) / 2.0;
                m_pole[static_cast<size_t>(k)] = static_cast<float>(z);
                m_gain[static_cast<size_t>(k)] = static_cast<float>(z / static_cast<double>(m_n));
                m_steady[static_cast<size_t>(k)] = static_cast<float>(1.0 / (1.0 - z));
            }
        }
        m_row_fixed.assign(static_cast<size_t>(m_lines), 0);
        m_team.run(m_lines, [&](int64_t y, int) { start_line(p, y); });
    }

    void start_line(const MrfProblem& p, int64_t y) {
        const int64_t row = y * m_samples, to = y * m_stride, pixels = m_lines * m_samples;
        const auto valid = [&](int64_t line, int64_t sample) {
            return !std::isnan(p.p[line * m_samples + sample]);
        };
        for (auto* b :
             {&m_e, &m_d3, &m_threshold, &m_h_exists, &m_h_counts, &m_v_exists, &m_v_counts, &m_valid})
            std::fill_n(b->data() + to, m_stride, 0.0f);
        std::fill_n(m_fixed.data() + to, m_stride, -1.0f);
        const int64_t below = y + 1 < m_lines ? y + 1 : 0;
        for (int64_t x = 0; x < m_samples; ++x) {
            const int64_t right = x + 1 < m_samples ? x + 1 : 0;
            const bool v = valid(y, x), h_there = x + 1 < m_samples || p.periodic,
                       v_there = y + 1 < m_lines || p.periodic;
            m_valid[static_cast<size_t>(to + x)] = v;
            m_h_exists[static_cast<size_t>(to + x)] = h_there;
            m_v_exists[static_cast<size_t>(to + x)] = v_there;
            m_h_counts[static_cast<size_t>(to + x)] = h_there && v && valid(y, right);
            m_v_counts[static_cast<size_t>(to + x)] = v_there && v && valid(below, x);
            m_threshold[static_cast<size_t>(to + x)] =
                static_cast<float>(m_options.lambda * static_cast<double>(p.weight[row + x]) / m_options.mu);
            const int fixed = v && p.fixed ? p.fixed[row + x] : 0;
            m_fixed[static_cast<size_t>(to + x)] = static_cast<float>(fixed - 1);
            if (fixed > 0) m_row_fixed[static_cast<size_t>(y)] = 1;
        }
        const float uniform = 1.0f / static_cast<float>(m_classes);
        for (int k = 0; k < m_classes; ++k) {
            float* p_row = plane(m_p, k) + to;
            const float* from = p.p + k * pixels + row;
            for (int64_t x = 0; x < m_samples; ++x)
                p_row[x] = m_valid[static_cast<size_t>(to + x)] > 0 ? from[x] : uniform;
            std::fill(p_row + m_samples, p_row + m_stride, 0.0f);
            for (const auto* b : {&m_q, &m_t, &m_v4})
                std::copy_n(p_row, m_stride, plane(*b, k) + to);
            for (const auto* b : {&m_d1, &m_d4, &m_dh, &m_dv})
                std::fill_n(plane(*b, k) + to, m_stride, 0.0f);
        }
    }

    /// D5 of a block's last line after the step before, since the block itself may be further: horizontal,
    /// and a stride behind it vertical.
    float* last_of(int side, int k, int64_t block) const {
        return m_last[side].data() + k * last_floats(m_lines, m_stride) + block * 2 * m_stride;
    }

    EdgeRow edge_row(int k, int64_t y) const {
        EdgeRow r;
        const int64_t at = y * m_stride;
        r.samples = m_samples;
        r.v4 = plane(m_v4, k) + at;
        // Beyond the last line: anything, where the difference does not exist.
        r.v4_below = plane(m_v4, k) + (y + 1 < m_lines ? y + 1 : 0) * m_stride;
        r.dh_old = plane(m_dh, k) + at;
        r.dv_old = plane(m_dv, k) + at;
        r.threshold = m_threshold.data() + at;
        r.h_exists = m_h_exists.data() + at;
        r.h_counts = m_h_counts.data() + at;
        r.v_exists = m_v_exists.data() + at;
        r.v_counts = m_v_counts.data() + at;
        return r;
    }

    /// One step of q and all that follows from it for lines [y0, y0 + block_lines), and the FFT of its lines.
    void update(int64_t y0, bool first, int side, float* scratch) {
        const int64_t y1 = std::min(y0 + block_lines, m_lines);
        float* sum = scratch; // [line][stride]
        float* wh = sum + block_lines * m_stride + margin;
        float* whole = wh + m_stride + margin;
        float* wv[2][2]; // of a pair's classes: of a line and of the one above it
        for (int i = 0; i < 4; ++i)
            wv[i / 2][i % 2] = whole + (i + 1) * (m_stride + margin);
        float* rows = wv[1][1] + m_stride + margin; // [2][group][n]
        float* x = rows + 2 * group * m_n;          // [4][group n]: re, im and scratch
        std::fill_n(sum, block_lines * m_stride, 0.0f);
        const auto edges = m_options.anisotropic ? m_simd.edges_anisotropic : m_simd.edges_isotropic;
        for (int pair = 0; pair < m_pairs; ++pair) {
            for (int part = 0; part < 2 && 2 * pair + part < m_classes; ++part)
                above(2 * pair + part, y0, first, side, edges, whole, wv[part][1]);
            for (int64_t y = y0; y < y1; y += group) {
                for (int part = 0; part < 2; ++part) {
                    const int k = 2 * pair + part;
                    float* mine = rows + part * group * m_n;
                    const int64_t lines = std::min(group, y1 - y);
                    if (k >= m_classes) {
                        std::fill_n(mine, group * m_n, 0.0f);
                        continue;
                    }
                    for (int64_t line = y; line < y + lines; ++line) {
                        const int64_t turn = (line - y0) % 2;
                        line_of(k, line, first, edges, wh, wv[part][turn], wv[part][1 - turn], whole,
                                sum + (line - y0) * m_stride, mine + (line - y) * m_n);
                    }
                    std::fill_n(mine + lines * m_n, (group - lines) * m_n, 0.0f);
                }
                transform(pair, y, rows, x);
            }
        }
        for (int k = 0; k < m_classes; ++k) {
            float* last = last_of(1 - side, k, y0 / block_lines);
            std::copy_n(plane(m_dh, k) + (y1 - 1) * m_stride, m_stride, last);
            std::copy_n(plane(m_dv, k) + (y1 - 1) * m_stride, m_stride, last + m_stride);
        }
        const float share = 1.0f / static_cast<float>(m_classes);
        for (int64_t y = y0; y < y1; ++y)
            m_simd.sums(m_samples, sum + (y - y0) * m_stride, share, m_d3.data() + y * m_stride,
                        m_e.data() + y * m_stride);
    }

    /// w of the line above line y, a block's first.
    void above(int k, int64_t y, bool first, int side, void (*edges)(const EdgeRow&), float* unused,
               float* wv) {
        if (first || (y == 0 && !m_problem->periodic)) {
            std::fill_n(wv, m_stride, 0.0f);
            return;
        }
        const int64_t line = y > 0 ? y - 1 : m_lines - 1;
        EdgeRow r = edge_row(k, line);
        r.dh_old = last_of(side, k, line / block_lines);
        r.dv_old = r.dh_old + m_stride;
        r.wh = unused;
        r.wv = wv;
        edges(r);
    }

    /// whole: a row of scratch.
    void line_of(int k, int64_t y, bool first, void (*edges)(const EdgeRow&), float* wh, float* wv,
                 const float* wv_above, float* whole, float* sum, float* rhs) {
        const int64_t at = y * m_stride;
        if (first) { // V5 = 0 and D5 = 0
            std::fill_n(wh - margin, m_stride + margin, 0.0f);
            std::fill_n(wv, m_stride, 0.0f);
        } else {
            EdgeRow r = edge_row(k, y);
            r.dh = plane(m_dh, k) + at;
            r.dv = plane(m_dv, k) + at;
            r.wh = wh;
            r.wv = wv;
            edges(r);
            wh[-1] = m_problem->periodic ? wh[m_samples - 1] : 0.0f;
        }
        PixelRow p;
        p.samples = m_samples;
        p.p = plane(m_p, k) + at;
        p.v4 = plane(m_v4, k) + at;
        p.e = m_e.data() + at;
        p.valid = m_valid.data() + at;
        p.fixed = m_row_fixed[static_cast<size_t>(y)] ? m_fixed.data() + at : nullptr;
        p.wanted = static_cast<float>(k);
        p.mu = static_cast<float>(m_options.mu);
        p.wh = wh;
        p.wv = wv;
        p.wv_above = wv_above;
        p.q = plane(m_q, k) + at;
        p.d1 = plane(m_d1, k) + at;
        p.t = plane(m_t, k) + at;
        p.d4 = plane(m_d4, k) + at;
        p.rhs = whole;
        p.sum = sum;
        m_simd.pixels(p);
        // The line, continued on both sides. Right of `reach` values more, whatever lies there is out of
        // reach of the line; the left continuation begins where the last value ends.
        float* const end = std::copy_n(whole, m_samples, rhs + reach);
        for (size_t i = 0; i < reach; ++i) {
            rhs[i] = whole[m_before[i]];
            end[i] = whole[m_behind[i]];
        }
        std::fill(end + reach, rhs + m_n, 0.0f);
    }

    float* spectrum(int64_t pair, int part, int64_t y) const {
        return m_f.data() + ((pair * 2 + part) * m_lines + y) * m_n;
    }

    void transform(int pair, int64_t y, const float* rows, float* x) {
        float *re = x, *im = x + group * m_n;
        for (int part = 0; part < 2; ++part) {
            const float* from[4];
            for (int64_t g = 0; g < group; ++g)
                from[g] = rows + (part * group + g) * m_n;
            m_simd.interleave(from, m_n, part == 0 ? re : im);
        }
        m_simd.fft(m_plan, re, im, x + 2 * group * m_n, x + 3 * group * m_n);
        put(pair, y, re, im, const_cast<float*>(rows));
    }

    /// Lines y.. of the spectrum from [n][4]; lines beyond the last go to waste.
    void put(int pair, int64_t y, const float* re, const float* im, float* waste) {
        for (int part = 0; part < 2; ++part) {
            float* to[4];
            for (int64_t g = 0; g < group; ++g)
                to[g] = y + g < m_lines ? spectrum(pair, part, y + g) : waste;
            m_simd.deinterleave(part == 0 ? re : im, m_n, to);
        }
    }

    /// The tridiagonal systems of one panel of frequencies of one part (re or im) of one pair.
    void filter(int64_t unit, float* scratch) {
        const int64_t first = unit % m_panels * m_panel, count = std::min(m_panel, m_n - first);
        const int64_t plane_of = unit / m_panels;
        float* f = m_f.data() + plane_of * m_lines * m_n + first;
        const float *z = m_pole.data() + first, *gain = m_gain.data() + first,
                    *steady = m_steady.data() + first;
        const bool periodic = m_problem->periodic;
        float* tail = scratch;               // [reach][panel]: what follows the last line
        float* state = tail + reach * panel; // [panel]
        for (int64_t j = 0; j < reach; ++j)
            std::copy_n(f + beyond(m_lines + j, m_lines, periodic) * m_n, count, tail + j * panel);
        const float* start = f + beyond(-reach, m_lines, periodic) * m_n;
        for (int64_t i = 0; i < count; ++i)
            state[i] = start[i] * steady[i];
        for (int64_t j = 1 - reach; j < 0; ++j)
            m_simd.causal(count, z, state, f + beyond(j, m_lines, periodic) * m_n, state);
        const float* before = state;
        for (int64_t j = 0; j < m_lines; ++j) {
            m_simd.causal(count, z, before, f + j * m_n, f + j * m_n);
            before = f + j * m_n;
        }
        for (int64_t j = 0; j < reach; ++j) {
            m_simd.causal(count, z, before, tail + j * panel, tail + j * panel);
            before = tail + j * panel;
        }
        for (int64_t i = 0; i < count; ++i)
            state[i] = before[i] * steady[i];
        for (int64_t j = reach - 2; j >= 0; --j)
            m_simd.anticausal(count, z, gain, state, tail + j * panel);
        for (int64_t j = m_lines - 1; j >= 0; --j)
            m_simd.anticausal(count, z, gain, state, f + j * m_n);
    }

    /// V4 of four lines of a pair of classes.
    void back(int64_t unit, float* scratch) {
        const int64_t pair = unit / m_groups, y = unit % m_groups * group;
        float *x = scratch, *re = x, *im = x + group * m_n, *rows = x + 4 * group * m_n;
        for (int part = 0; part < 2; ++part) {
            const float* from[4];
            for (int64_t g = 0; g < group; ++g)
                from[g] = spectrum(pair, part, std::min(y + g, m_lines - 1));
            m_simd.interleave(from, m_n, part == 0 ? re : im);
        }
        m_simd.fft(m_plan, im, re, x + 2 * group * m_n, x + 3 * group * m_n);
        for (int part = 0; part < 2 && 2 * pair + part < m_classes; ++part) {
            float* to[4];
            for (int64_t g = 0; g < group; ++g)
                to[g] = rows + g * m_n;
            m_simd.deinterleave(part == 0 ? re : im, m_n, to);
            for (int64_t g = 0; g < group && y + g < m_lines; ++g) {
                float* v4 = plane(m_v4, static_cast<int>(2 * pair) + part) + (y + g) * m_stride;
                std::copy_n(to[g] + reach, m_samples, v4);
                v4[m_samples] = v4[0]; // the right neighbour of the last sample, where there is one
            }
        }
    }

    void copy_out(float* q) {
        m_team.run(m_lines, [&](int64_t y, int) {
            for (int k = 0; k < m_classes; ++k)
                std::copy_n(plane(m_q, k) + y * m_stride, m_samples, q + (k * m_lines + y) * m_samples);
        });
    }

    /// Residuals after the last step; `before` holds q of the step before.
    MrfResiduals finish(const MrfProblem& p, const float* before) {
        std::vector<MrfResiduals> by_line(static_cast<size_t>(m_lines));
        const Rect& core = p.core;
        m_team.run(core.h, [&](int64_t unit, int) {
            const int64_t y = core.y + unit;
            MrfResiduals& r = by_line[static_cast<size_t>(y)];
            for (int k = 0; k < m_classes; ++k)
                line_residuals(k, y, core, before, r);
        });
        MrfResiduals total;
        for (const auto& r : by_line)
            total += r;
        total.entries = static_cast<int64_t>(m_classes) * core.area();
        return total;
    }

    void line_residuals(int k, int64_t y, const Rect& core, const float* before, MrfResiduals& r) const {
        const int64_t at = y * m_stride;
        const float *q = plane(m_q, k), *v4 = plane(m_v4, k);
        const float *dh = plane(m_dh, k), *dv = plane(m_dv, k);
        const double mu = m_options.mu;
        const auto square = [](double x) { return x * x; };
        for (int64_t x = core.x; x < core.right(); ++x) {
            const int64_t i = at + x;
            const auto s = static_cast<size_t>(i);
            const int64_t right = x + 1 < m_samples ? i + 1 : at;
            const int64_t below = (y + 1 < m_lines ? (y + 1) * m_stride : 0) + x;
            const auto qi = static_cast<double>(q[i]);
            const bool valid = m_valid[s] > 0;
            const double data = static_cast<double>(plane(m_p, k)[i]) -
                                mu * static_cast<double>(plane(m_d1, k)[i]); // V1 = p - mu D1
            if (valid) {
                r.v1 += square(qi - data);
                r.objective += 0.5 * square(qi - static_cast<double>(plane(m_p, k)[i]));
            }
            r.v2 += square(qi - std::max(static_cast<double>(plane(m_t, k)[i]), 0.0));
            // V3 = q - D3 before + b, and e = 2 b - D3 before.
            r.v3 += square(static_cast<double>(m_e[s]) - static_cast<double>(m_d3[s]));
            r.v4 += square(qi - static_cast<double>(v4[i]));
            r.change += square(qi - static_cast<double>(before[(k * m_lines + y) * m_samples + x]));
            const double h =
                m_h_exists[s] > 0 ? static_cast<double>(v4[right]) - static_cast<double>(v4[i]) : 0.0;
            const double v =
                m_v_exists[s] > 0 ? static_cast<double>(v4[below]) - static_cast<double>(v4[i]) : 0.0;
            const double th = h - static_cast<double>(dh[i]), tv = v - static_cast<double>(dv[i]);
            const double ch = m_h_counts[s] > 0 ? th : 0.0, cv = m_v_counts[s] > 0 ? tv : 0.0;
            const auto limit = static_cast<double>(m_threshold[s]);
            const double gh = m_h_counts[s] > 0 ? static_cast<double>(q[right]) - qi : 0.0;
            const double gv = m_v_counts[s] > 0 ? static_cast<double>(q[below]) - qi : 0.0;
            double nh = 0, nv = 0; // D5'
            if (m_options.anisotropic) {
                nh = -std::clamp(ch, -limit, limit);
                nv = -std::clamp(cv, -limit, limit);
                r.objective += mu * limit * (std::fabs(gh) + std::fabs(gv));
            } else {
                const double norm = std::hypot(ch, cv), factor = norm > limit ? limit / norm : 1.0;
                nh = -ch * factor;
                nv = -cv * factor;
                r.objective += mu * limit * std::hypot(gh, gv);
            }
            r.v5 += square(h - (th + nh)) + square(v - (tv + nv)); // V5 = t5 + D5'
        }
    }

    const MrfOptions m_options;
    const MrfLimits m_limits;
    Team m_team;
    const MrfKernels& m_simd;
    const MrfProblem* m_problem = nullptr;
    int m_classes = 0;
    int64_t m_pairs = 0, m_lines = 0, m_samples = 0, m_stride = 0, m_plane = 0, m_groups = 0, m_n = 0,
            m_panels = 0, m_panel = panel;
    HostBuffer<float> m_p, m_q, m_d1, m_t, m_d4, m_v4, m_dh, m_dv; ///< [class][line][stride]
    HostBuffer<float> m_last[2];                                   ///< by turns, see last_of()
    HostBuffer<float> m_e, m_d3, m_threshold, m_h_exists, m_h_counts, m_v_exists, m_v_counts, m_valid,
        m_fixed;
    HostBuffer<float> m_f; ///< [pair][re, im][line][n]
    FftPlan m_plan{16};
    std::vector<float> m_pole, m_gain, m_steady;
    std::array<int64_t, reach> m_before{}, m_behind{}; ///< which samples continue a line on either side
    std::vector<char> m_row_fixed;
    std::vector<std::vector<float>> m_scratch;
};

} // namespace

MrfResiduals& MrfResiduals::operator+=(const MrfResiduals& o) {
    v1 += o.v1;
    v2 += o.v2;
    v3 += o.v3;
    v4 += o.v4;
    v5 += o.v5;
    change += o.change;
    objective += o.objective;
    entries += o.entries;
    return *this;
}

std::optional<int64_t> mrf_halo(const MrfOptions& options) {
    if (options.mu > 0.05 || options.iterations > 200) return std::nullopt;
    return 24;
}

std::unique_ptr<MrfSolver> make_mrf_solver(const MrfOptions& options, const MrfLimits& limits, int threads) {
    return std::make_unique<CpuSolver>(options, limits, threads);
}

uint64_t mrf_bytes(const MrfLimits& limits) { return CpuSolver::bytes(limits); }

void project_on_simplex(float* q, int classes, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        // Entries above the threshold share what is over 1; those that fall under it leave, until none does.
        float threshold = -3e38f;
        for (int round = 0, active = classes + 1; round <= classes; ++round) {
            double sum = 0;
            int above = 0;
            for (int k = 0; k < classes; ++k)
                if (q[k * stride + i] > threshold) {
                    sum += static_cast<double>(q[k * stride + i]);
                    ++above;
                }
            if (above == active) break;
            active = above;
            threshold = static_cast<float>((sum - 1.0) / above);
        }
        for (int k = 0; k < classes; ++k)
            q[k * stride + i] = std::max(q[k * stride + i] - threshold, 0.0f);
    }
}

} // namespace hsi::sahic
