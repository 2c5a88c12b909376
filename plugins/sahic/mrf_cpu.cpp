// SPDX-License-Identifier: MIT
// Runs ADMM on the CPU. One step reads and writes the state once. In each step, a block of lines computes its
// part of V4 from the spectrum of the last step (mrf_spectrum.h), a few rows at a time. It then stores its
// own spectrum in the same place. Between steps, a recursion over blocks runs.
#include "core/error.h"
#include "core/host_memory.h"
#include "math/elementary.h"
#include "parallel/team.h"
#include "sahic/mrf_spectrum.h"
#include "sahic/sahic.h"
#include "sahic/sahic_simd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace hsi::sahic {
namespace {

constexpr int64_t reach = SpectrumPlan::reach, width = SpectrumPlan::width;
constexpr int64_t block_lines = 16; ///< number of lines in a unit of work
constexpr int64_t ring = 8;         ///< number of V4 rows in the ring: the result of two batches of lines
constexpr int64_t chunk = 512;      ///< number of values in a unit of the recursion over blocks
constexpr int64_t margin = 16;      ///< number of floats before the first sample of temporary rows

int64_t stride_of(int64_t samples) { return (samples + 15) / 16 * 16 + 32; }
int64_t blocks_of(int64_t lines) { return (lines + block_lines - 1) / block_lines; }

/// Returns the index of the line or sample that replaces a line or sample beyond the border.
int64_t beyond(int64_t i, int64_t size, bool periodic) {
    if (periodic) return ((i % size) + size) % size;
    const int64_t period = 2 * size;
    const int64_t at = ((i % period) + period) % period;
    return at < size ? at : period - 1 - at;
}

/// The buffers of one thread, for lines up to the length in MrfLimits.
struct StepRows {
    using Rows = std::array<float*, 2>; ///< one row per class of a spectrum's plane
    float *sum = nullptr, *unused = nullptr, *zero = nullptr, *extra = nullptr;
    float *uh = nullptr, *sh = nullptr;
    std::array<Rows, 2> uv, sv; ///< values of a line and of the line above it
    std::array<Rows, ring> v4;  ///< ring of V4 rows; line y - y0 is at (y - y0) % ring
    Rows below;                 ///< V4 of the line below the block
    /// Right-hand sides of the lines of a batch, extended on both sides.
    std::array<Rows, width / 4> lines{};

    /// Assigns parts of `memory` and returns the number of floats. If `memory` is null, only counts them.
    int64_t place(float* memory, const SpectrumPlan& plan, int64_t samples) {
        int64_t used = 0;
        const auto take = [&](int64_t floats, int64_t before = margin) {
            float* const at = memory ? memory + used + before : nullptr;
            used += (floats + before + margin + 15) / 16 * 16;
            return at;
        };
        const int64_t stride = stride_of(samples), row = plan.segments() * plan.length + margin;
        sum = take(block_lines * stride);
        uh = take(stride);
        sh = take(stride);
        unused = take(stride);
        zero = take(plan.extended());
        extra = take(plan.batch());
        for (Rows* rows : {&uv[0], &uv[1], &sv[0], &sv[1]})
            for (float*& r : *rows)
                r = take(stride);
        for (Rows& rows : v4)
            for (float*& r : rows)
                r = take(row);
        for (float*& r : below)
            r = take(row);
        // The first sample is aligned.
        for (Rows& rows : lines)
            for (float*& r : rows)
                r = take(std::max(plan.extended(), reach + stride), 2 * margin - reach);
        return used;
    }
};

class CpuSolver final : public MrfSolver {
  public:
    CpuSolver(const MrfOptions& options, const MrfLimits& limits, std::unique_ptr<Team> team)
        : m_options(options), m_limits(limits), m_team(std::move(team)), m_simd(mrf_kernels()),
          m_spectrum(spectrum_kernels()), m_plan(limits.samples, limits.classes) {
        const int64_t stride = stride_of(limits.samples);
        const auto plane = static_cast<size_t>(limits.lines * stride + 16);
        const auto planes = static_cast<size_t>(limits.classes) * plane;
        const auto shared = m_team->memory();
        for (auto* b : {&m_p, &m_q, &m_d1, &m_t, &m_th, &m_tv})
            *b = HostBuffer<float>(shared, planes);
        for (auto& b : m_last)
            b = HostBuffer<float>(shared,
                                  static_cast<size_t>(limits.classes * last_floats(limits.lines, stride)));
        for (auto* b : {&m_e, &m_d3, &m_threshold, &m_h_counts, &m_v_counts, &m_valid, &m_fixed})
            *b = HostBuffer<float>(shared, plane);
        m_f = HostBuffer<float>(shared, static_cast<size_t>(spectrum_floats(m_plan, limits)));
        for (auto* b : {&m_above, &m_below})
            *b = HostBuffer<float>(shared, static_cast<size_t>(row_floats(m_plan, limits)));
        m_rows = HostBuffer<Row>(shared, static_cast<size_t>(limits.lines));
        for (int i = 0; i < m_team->size(); ++i) {
            const int64_t floats = StepRows().place(nullptr, m_plan, limits.samples);
            m_scratch_memory.emplace_back(static_cast<size_t>(floats));
            m_scratch.emplace_back();
            m_scratch.back().place(m_scratch_memory.back().data(), m_plan, limits.samples);
        }
    }

    /// Returns the number of floats for t5, horizontal and vertical, of the last lines of all blocks of a
    /// class.
    static int64_t last_floats(int64_t lines, int64_t stride) { return blocks_of(lines) * 2 * stride; }
    static int64_t spectrum_floats(const SpectrumPlan& plan, const MrfLimits& l) {
        return plan.planes(l.classes) * blocks_of(l.lines) * (block_lines / plan.lines()) * plan.batch();
    }
    static int64_t row_floats(const SpectrumPlan& plan, const MrfLimits& l) {
        return plan.planes(l.classes) * blocks_of(l.lines) * plan.row();
    }

    static uint64_t bytes(const MrfLimits& l) {
        const int64_t stride = stride_of(l.samples), plane = l.lines * stride + 16;
        const SpectrumPlan plan(l.samples, l.classes);
        return static_cast<uint64_t>(4 * (plane * (6 * l.classes + 7) +
                                          2 * l.classes * last_floats(l.lines, stride) +
                                          spectrum_floats(plan, l) + 2 * row_floats(plan, l)) +
                                     l.lines * static_cast<int64_t>(sizeof(Row)));
    }

    MrfResiduals solve(const MrfProblem& problem, float* q, const CancelFlag* cancel) override {
        if (problem.classes != m_limits.classes || problem.samples > m_limits.samples ||
            problem.lines > m_limits.lines)
            throw Error("internal: an MRF tile is larger than was planned");
        start(problem);
        int side = 0;
        for (int it = 0; it < m_options.iterations; ++it) {
            if (cancel && cancel->requested()) throw Cancelled();
            if (it + 1 == m_options.iterations) copy_out(q); // The residuals need q before the last step.
            m_team->run(m_blocks, [&](int64_t block, int member) {
                update(block, it == 0, side, m_scratch[static_cast<size_t>(member)]);
            });
            const int64_t chunks = (m_plan.row() + chunk - 1) / chunk;
            m_team->run(m_planes * chunks, [&](int64_t unit, int) { carry(unit / chunks, unit % chunks); });
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
        m_blocks = blocks_of(m_lines);
        const int64_t n = m_plan.n;
        m_plan.resize(m_samples);
        m_planes = m_plan.planes(m_classes);
        for (int64_t i = 0; i < reach; ++i) {
            m_before[static_cast<size_t>(i)] = beyond(i - reach, m_samples, p.periodic);
            m_behind[static_cast<size_t>(i)] = beyond(m_samples + i, m_samples, p.periodic);
        }
        if (m_plan.n != n || m_plan.pole.empty()) m_plan.prepare();
        const int64_t last = m_lines - (m_blocks - 1) * block_lines;
        for (auto* b : {&m_z_block, &m_z_last, &m_z_all, &m_z_inverse})
            b->clear();
        for (int64_t i = 0; i < m_plan.row(); ++i) {
            const auto at = static_cast<size_t>(i % (m_plan.row() / 2) / m_plan.lanes);
            const auto z = static_cast<double>(m_plan.pole[at]);
            const auto power = [&](int64_t count) { return math::pow(z, static_cast<double>(count)); };
            m_z_block.push_back(static_cast<float>(power(block_lines)));
            m_z_last.push_back(static_cast<float>(power(last)));
            m_z_all.push_back(static_cast<float>(power(m_lines)));
            m_z_inverse.push_back(
                static_cast<float>(1.0 / (1.0 - power(p.periodic ? m_lines : 2 * m_lines))));
        }
        for (const StepRows& s : m_scratch)
            clear(s);
        m_team->run(m_lines, [&](int64_t y, int) { start_line(p, y); });
    }

    /// Sets parts of the scratch memory to zero that are read before they are written: lanes without a line,
    /// and the values beyond the ends of a line.
    void clear(const StepRows& s) const {
        std::fill_n(s.zero, m_plan.extended(), 0.0f);
        std::fill_n(s.extra, m_plan.batch(), 0.0f);
        for (const auto& rows : s.lines)
            for (float* r : rows)
                std::fill_n(r, m_plan.extended(), 0.0f);
    }

    void start_line(const MrfProblem& p, int64_t y) {
        const int64_t row = y * m_samples, to = y * m_stride, pixels = m_lines * m_samples;
        const auto valid = [&](int64_t line, int64_t sample) {
            return !std::isnan(p.p[line * m_samples + sample]);
        };
        for (auto* b : {&m_e, &m_d3, &m_threshold, &m_h_counts, &m_v_counts, &m_valid})
            std::fill_n(b->data() + to, m_stride, 0.0f);
        std::fill_n(m_fixed.data() + to, m_stride, -1.0f);
        const int64_t below = y + 1 < m_lines ? y + 1 : 0;
        Row& facts = m_rows[static_cast<size_t>(y)];
        facts = {};
        for (int64_t x = 0; x < m_samples; ++x) {
            const int64_t right = x + 1 < m_samples ? x + 1 : 0;
            const bool v = valid(y, x), h_there = x + 1 < m_samples || p.periodic,
                       v_there = y + 1 < m_lines || p.periodic;
            m_valid[static_cast<size_t>(to + x)] = v;
            m_h_counts[static_cast<size_t>(to + x)] = h_there && v && valid(y, right);
            m_v_counts[static_cast<size_t>(to + x)] = v_there && v && valid(below, x);
            m_threshold[static_cast<size_t>(to + x)] =
                static_cast<float>(m_options.lambda * static_cast<double>(p.weight[row + x]) / m_options.mu);
            const int fixed = v && p.fixed ? p.fixed[row + x] : 0;
            m_fixed[static_cast<size_t>(to + x)] = static_cast<float>(fixed - 1);
            facts.fixed = facts.fixed || fixed > 0;
            facts.whole = facts.whole && v && valid(below, x);
        }
        const float uniform = 1.0f / static_cast<float>(m_classes);
        for (int k = 0; k < m_classes; ++k) {
            float* p_row = plane(m_p, k) + to;
            const float* from = p.p + k * pixels + row;
            for (int64_t x = 0; x < m_samples; ++x)
                p_row[x] = m_valid[static_cast<size_t>(to + x)] > 0 ? from[x] : uniform;
            std::fill(p_row + m_samples, p_row + m_stride, 0.0f);
            for (const auto* b : {&m_q, &m_t})
                std::copy_n(p_row, m_stride, plane(*b, k) + to);
            for (const auto* b : {&m_d1, &m_th, &m_tv})
                std::fill_n(plane(*b, k) + to, m_stride, 0.0f);
        }
    }

    /// Returns t5 of a block's last line after the previous step. It is stored separately, because the block
    /// itself may already have done the next step. The horizontal values come first, the vertical values one
    /// stride later.
    float* last_of(int side, int k, int64_t block) const {
        return m_last[side].data() + k * last_floats(m_lines, m_stride) + block * 2 * m_stride;
    }

    /// Returns the input of the edge kernel for line y of class k, with t5 of the previous step.
    EdgeRow edge_row(int k, int64_t y, const float* v4, const float* v4_below) const {
        EdgeRow r;
        const int64_t at = y * m_stride;
        r.samples = m_samples;
        r.v4 = v4;
        r.v4_below = v4_below;
        r.th_old = plane(m_th, k) + at;
        r.tv_old = plane(m_tv, k) + at;
        r.threshold = m_threshold.data() + at;
        if (!m_rows[static_cast<size_t>(y)].whole) {
            r.h_counts = m_h_counts.data() + at;
            r.v_counts = m_v_counts.data() + at;
        }
        return r;
    }

    /// Returns the number of classes in a spectrum's plane. The last plane may have one class less.
    int classes_of(int64_t of_plane) const {
        return static_cast<int>(std::min<int64_t>(m_plan.parts, m_classes - of_plane * m_plan.parts));
    }

    float* batch_at(int64_t of_plane, int64_t block, int64_t i) const {
        return m_f.data() +
               ((of_plane * m_blocks + block) * (block_lines / m_plan.lines()) + i) * m_plan.batch();
    }

    /// Does one step for a block of lines: q, the arrays that follow from it, and the spectrum of the lines.
    void update(int64_t block, bool first, int side, const StepRows& s) {
        const int64_t y0 = block * block_lines, y1 = std::min(y0 + block_lines, m_lines);
        std::fill_n(s.sum, block_lines * m_stride, 0.0f);
        const auto edges = m_options.anisotropic ? m_simd.edges_anisotropic : m_simd.edges_isotropic;
        const int64_t batches = (y1 - y0 + m_plan.lines() - 1) / m_plan.lines();
        for (int64_t f = 0; f < m_planes; ++f) {
            const int classes = classes_of(f);
            const auto k = static_cast<int>(f * m_plan.parts);
            if (!first) begin_block(f, block, s);
            for (int part = 0; part < classes; ++part)
                above(k + part, block, first, side, edges, s, static_cast<size_t>(part));
            for (int64_t i = 0; i < batches; ++i) {
                if (!first && i + 1 < batches) back(f, block, i + 1, s);
                const int64_t y = y0 + i * m_plan.lines();
                for (int64_t line = y; line < std::min(y + m_plan.lines(), y1); ++line)
                    for (int part = 0; part < classes; ++part)
                        line_of(k + part, line, first, edges, s, static_cast<size_t>(part));
                transform(f, block, i, s);
            }
            std::array<float*, block_lines> lines{};
            m_spectrum.ends(m_plan, lines_of(f, block, lines));
        }
        for (int k = 0; k < m_classes; ++k) {
            float* last = last_of(1 - side, k, block);
            std::copy_n(plane(m_th, k) + (y1 - 1) * m_stride, m_stride, last);
            std::copy_n(plane(m_tv, k) + (y1 - 1) * m_stride, m_stride, last + m_stride);
        }
        const float share = 1.0f / static_cast<float>(m_classes);
        for (int64_t y = y0; y < y1; ++y)
            m_simd.sums(m_samples, s.sum + (y - y0) * m_stride, share, m_d3.data() + y * m_stride,
                        m_e.data() + y * m_stride);
    }

    /// Computes u and s of the line above the first line of a block.
    void above(int k, int64_t block, bool first, int side, void (*edges)(const EdgeRow&), const StepRows& s,
               size_t part) {
        // uv[0] and sv[0] belong to the first line of the block.
        float *const uv = s.uv[1][part], *const sv = s.sv[1][part];
        if (first || (block == 0 && !m_problem->periodic)) {
            std::fill_n(uv, m_stride, 0.0f);
            std::fill_n(sv, m_stride, 0.0f);
            return;
        }
        const int64_t line = (block > 0 ? block * block_lines : m_lines) - 1;
        EdgeRow r = edge_row(k, line, s.v4[ring - 1][part], s.v4[0][part]);
        r.th_old = last_of(side, k, line / block_lines);
        r.tv_old = r.th_old + m_stride;
        r.uh = r.sh = s.unused;
        r.uv = uv;
        r.sv = sv;
        edges(r);
    }

    /// Returns V4 of the line below y. For the last line, returns V4 of the line itself, so that the
    /// difference is zero.
    const float* v4_below(int64_t y, const StepRows& s, size_t part) const {
        const int64_t i = y % block_lines;
        if (i + 1 == block_lines || y + 1 == m_lines)
            return y + 1 < m_lines || m_problem->periodic ? s.below[part] : row_of(y, s, part);
        return row_of(y + 1, s, part);
    }
    static float* row_of(int64_t y, const StepRows& s, size_t part) {
        return s.v4[static_cast<size_t>(y % block_lines % ring)][part];
    }

    void line_of(int k, int64_t y, bool first, void (*edges)(const EdgeRow&), const StepRows& s,
                 size_t part) {
        const int64_t at = y * m_stride, in_block = y % block_lines;
        const auto turn = static_cast<size_t>(in_block % 2);
        float *const uv = s.uv[turn][part], *const sv = s.sv[turn][part];
        SiteRow p;
        if (first) { // In the first step, V4 = p, V5 = 0 and D5 = 0.
            for (float* h : {s.uh, s.sh})
                std::fill_n(h - margin, m_stride + margin, 0.0f);
            for (float* v : {uv, sv})
                std::fill_n(v, m_stride, 0.0f);
            p.v4 = plane(m_p, k) + at;
        } else {
            EdgeRow r = edge_row(k, y, row_of(y, s, part), v4_below(y, s, part));
            r.th = plane(m_th, k) + at;
            r.tv = plane(m_tv, k) + at;
            r.uh = s.uh;
            r.uv = uv;
            r.sh = s.sh;
            r.sv = sv;
            edges(r);
            for (float* h : {s.uh, s.sh})
                h[-1] = m_problem->periodic ? h[m_samples - 1] : 0.0f;
            p.v4 = r.v4;
        }
        p.samples = m_samples;
        p.p = plane(m_p, k) + at;
        p.e = m_e.data() + at;
        p.valid = m_rows[static_cast<size_t>(y)].whole ? nullptr : m_valid.data() + at;
        p.fixed = m_rows[static_cast<size_t>(y)].fixed ? m_fixed.data() + at : nullptr;
        p.wanted = static_cast<float>(k);
        p.mu = static_cast<float>(m_options.mu);
        p.uh = s.uh;
        p.uv = uv;
        p.uv_above = s.uv[1 - turn][part];
        p.sh = s.sh;
        p.sv = sv;
        p.sv_above = s.sv[1 - turn][part];
        p.q = plane(m_q, k) + at;
        p.d1 = plane(m_d1, k) + at;
        p.t = plane(m_t, k) + at;
        float* const line = s.lines[static_cast<size_t>(in_block % m_plan.lines())][part];
        p.rhs = line + reach;
        p.sum = s.sum + in_block * m_stride;
        m_simd.pixels(p);
        // Beyond `reach` values to the right, the result is zero.
        for (size_t i = 0; i < reach; ++i) {
            line[i] = p.rhs[m_before[i]];
            p.rhs[m_samples + static_cast<int64_t>(i)] = p.rhs[m_behind[i]];
        }
    }

    /// Sets the pointers to the starts of the segments of a batch's lines, from rows(line of the batch, class
    /// of the plane).
    template <class T, class Rows>
    void segments(const Rows& rows, T* (&out)[2][width]) const {
        for (int64_t g = 0; g < m_plan.lines(); ++g)
            for (int64_t lane = 0; lane < m_plan.lanes; ++lane) {
                const int64_t to = g * m_plan.lanes + lane;
                out[0][to] = rows(g, 0) + lane * m_plan.length;
                out[1][to] = m_plan.parts == 2 ? rows(g, 1) + lane * m_plan.length
                                               : rows(g, 0) + (m_plan.lanes + lane) * m_plan.length;
            }
    }

    /// Computes the spectrum of a batch's lines. Missing lines and classes are zero.
    void transform(int64_t f, int64_t block, int64_t i, const StepRows& s) {
        const int64_t lines = m_lines - block * block_lines - i * m_plan.lines();
        const float* from[2][width];
        segments(
            [&](int64_t g, int part) -> const float* {
                return g < lines && part < classes_of(f)
                           ? s.lines[static_cast<size_t>(g)][static_cast<size_t>(part)]
                           : s.zero;
            },
            from);
        float* const batch = batch_at(f, block, i);
        m_spectrum.gather(m_plan, from, batch);
        m_spectrum.forward(m_plan, batch);
    }

    SpectrumBlock lines_of(int64_t f, int64_t block, std::array<float*, block_lines>& lines) const {
        SpectrumBlock b;
        b.count = std::min(block_lines, m_lines - block * block_lines);
        for (int64_t j = 0; j < b.count; ++j)
            lines[static_cast<size_t>(j)] =
                batch_at(f, block, j / m_plan.lines()) + j % m_plan.lines() * m_plan.lanes;
        b.line = lines.data();
        b.above = m_above.data() + (f * m_blocks + block) * m_plan.row();
        b.below = m_below.data() + (f * m_blocks + block) * m_plan.row();
        return b;
    }

    /// Computes V4 of the lines above and below a block and of the block's first batch, from the block's
    /// spectrum.
    void begin_block(int64_t f, int64_t block, const StepRows& s) const {
        std::array<float*, block_lines> lines{};
        float* const beyond[2] = {s.extra, s.extra + m_plan.lanes};
        m_spectrum.solve(m_plan, lines_of(f, block, lines), beyond);
        // Rows that the second batch overwrites. They take the results of the unused lanes of `extra`.
        constexpr size_t waste = ring / 2;
        to_rows(s.extra, [&](int64_t g) -> const StepRows::Rows& {
            return g == 0 ? s.v4[ring - 1] : g == 1 ? s.below : s.v4[waste + static_cast<size_t>(g - 2)];
        });
        back(f, block, 0, s);
    }

    /// Computes V4 of a batch's lines.
    void back(int64_t f, int64_t block, int64_t i, const StepRows& s) const {
        to_rows(batch_at(f, block, i), [&](int64_t g) -> const StepRows::Rows& {
            return s.v4[static_cast<size_t>((i * m_plan.lines() + g) % ring)];
        });
    }

    template <class Rows>
    void to_rows(float* batch, const Rows& rows) const {
        float* to[2][width];
        segments([&](int64_t g, int part) { return rows(g)[static_cast<size_t>(part)]; }, to);
        m_spectrum.backward(m_plan, batch);
        m_spectrum.scatter(m_plan, batch, to);
        for (int64_t g = 0; g < m_plan.lines(); ++g)
            // Sets the right neighbour of the last sample.
            for (int part = 0; part < m_plan.parts; ++part) {
                float* const row = rows(g)[static_cast<size_t>(part)];
                row[m_samples] = row[m_problem->periodic ? 0 : m_samples - 1];
            }
    }

    /// Carries the sums into each block from above and from below, for one chunk of a plane's frequencies.
    void carry(int64_t f, int64_t unit) const {
        SpectrumCarry c;
        c.blocks = m_blocks;
        c.stride = m_plan.row();
        c.above = m_above.data() + f * m_blocks * m_plan.row();
        c.below = m_below.data() + f * m_blocks * m_plan.row();
        c.block = m_z_block.data();
        c.last = m_z_last.data();
        c.all = m_z_all.data();
        c.inverse = m_z_inverse.data();
        c.periodic = m_problem->periodic;
        m_spectrum.carry(c, unit * chunk, std::min(chunk, m_plan.row() - unit * chunk));
    }

    void copy_out(float* q) {
        m_team->run(m_lines, [&](int64_t y, int) {
            for (int k = 0; k < m_classes; ++k)
                std::copy_n(plane(m_q, k) + y * m_stride, m_samples, q + (k * m_lines + y) * m_samples);
        });
    }

    /// Computes the residuals after the last step. `before` holds q of the previous step. The function
    /// overwrites the spectrum.
    MrfResiduals finish(const MrfProblem& p, const float* before) {
        const Rect& core = p.core;
        const int64_t first = core.y / block_lines, blocks = blocks_of(core.bottom()) - first;
        m_team->run(blocks, [&](int64_t unit, int member) {
            const int64_t block = first + unit;
            const int64_t y0 = block * block_lines, y1 = std::min(y0 + block_lines, m_lines);
            const StepRows& s = m_scratch[static_cast<size_t>(member)];
            for (int64_t f = 0; f < m_planes; ++f) {
                begin_block(f, block, s);
                for (int64_t y = y0; y < y1; ++y) {
                    const int64_t next = (y - y0) / m_plan.lines() + 1;
                    if ((y - y0) % m_plan.lines() == 0 && y0 + next * m_plan.lines() < y1)
                        back(f, block, next, s);
                    if (y < core.y || y >= core.bottom()) continue;
                    MrfResiduals& of_line = m_rows[static_cast<size_t>(y)].residuals;
                    for (int part = 0; part < classes_of(f); ++part)
                        line_residuals(static_cast<int>(f * m_plan.parts) + part, y,
                                       row_of(y, s, static_cast<size_t>(part)),
                                       v4_below(y, s, static_cast<size_t>(part)), before, of_line);
                }
            }
        });
        MrfResiduals total;
        for (int64_t y = core.y; y < core.bottom(); ++y)
            total += m_rows[static_cast<size_t>(y)].residuals;
        total.entries = static_cast<int64_t>(m_classes) * core.area();
        return total;
    }

    void line_residuals(int k, int64_t y, const float* v4, const float* v4_below, const float* before,
                        MrfResiduals& r) const {
        const Rect& core = m_problem->core;
        const int64_t at = y * m_stride;
        const float *q = plane(m_q, k), *th_old = plane(m_th, k), *tv_old = plane(m_tv, k);
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
            // With D3 before the step, V3 = q - D3 + b and e = 2 b - D3, so V3 - q = e - b.
            r.v3 += square(static_cast<double>(m_e[s]) - static_cast<double>(m_d3[s]));
            r.v4 += square(qi - static_cast<double>(v4[x]));
            r.change += square(qi - static_cast<double>(before[(k * m_lines + y) * m_samples + x]));
            const auto here = static_cast<double>(v4[x]);
            const double h = static_cast<double>(v4[x + 1]) - here,
                         v = static_cast<double>(v4_below[x]) - here;
            const auto limit = static_cast<double>(m_threshold[s]);
            const bool ch = m_h_counts[s] > 0, cv = m_v_counts[s] > 0;
            const auto dual = [&](double t5h, double t5v) { // computes D5' from t5
                const double ph = ch ? t5h : 0.0, pv = cv ? t5v : 0.0;
                if (m_options.anisotropic)
                    return std::pair(-std::clamp(ph, -limit, limit), -std::clamp(pv, -limit, limit));
                const double norm = std::sqrt(square(ph) + square(pv)),
                             factor = norm > limit ? limit / norm : 1.0;
                return std::pair(-ph * factor, -pv * factor);
            };
            const auto [dh, dv] = dual(static_cast<double>(th_old[i]), static_cast<double>(tv_old[i]));
            const auto [nh, nv] = dual(h - dh, v - dv);
            r.v5 += square(dh - nh) + square(dv - nv); // V5 = t5 + D5' and t5 = H V4 - D5
            const double gh = ch ? static_cast<double>(q[right]) - qi : 0.0,
                         gv = cv ? static_cast<double>(q[below]) - qi : 0.0;
            r.objective +=
                mu * limit *
                (m_options.anisotropic ? std::fabs(gh) + std::fabs(gv) : std::sqrt(square(gh) + square(gv)));
        }
    }

    /// The properties of a line.
    struct Row {
        bool whole = true;  ///< true if all pixels of the line and of the line below are valid
        bool fixed = false; ///< true if the line has a training pixel
        MrfResiduals residuals;
    };

    const MrfOptions m_options;
    const MrfLimits m_limits;
    const std::unique_ptr<Team> m_team;
    const MrfKernels& m_simd;
    const SpectrumKernels& m_spectrum;
    SpectrumPlan m_plan;
    const MrfProblem* m_problem = nullptr;
    int m_classes = 0;
    int64_t m_lines = 0, m_samples = 0, m_stride = 0, m_plane = 0, m_blocks = 0;
    int64_t m_planes = 0;                              ///< number of planes of the spectrum
    HostBuffer<float> m_p, m_q, m_d1, m_t, m_th, m_tv; ///< [class][line][stride]
    HostBuffer<float> m_last[2];                       ///< used in turn by successive steps; see last_of()
    HostBuffer<float> m_e, m_d3, m_threshold, m_h_counts, m_v_counts, m_valid, m_fixed;
    HostBuffer<float> m_f;              ///< spectrum [plane][block][batch], see mrf_spectrum.h
    HostBuffer<float> m_above, m_below; ///< incoming sums [plane][block][row]
    std::vector<float> m_z_block, m_z_last, m_z_all, m_z_inverse; ///< the lists of SpectrumCarry
    /// Samples that extend a line to the left and to the right.
    std::array<int64_t, reach> m_before{}, m_behind{};
    HostBuffer<Row> m_rows; ///< one entry per line
    std::vector<HostBuffer<float>> m_scratch_memory;
    std::vector<StepRows> m_scratch;
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

std::unique_ptr<MrfSolver> make_mrf_solver(const MrfOptions& options, const MrfLimits& limits, int threads) {
    return make_mrf_solver(options, limits, std::make_unique<Team>(threads));
}

std::unique_ptr<MrfSolver> make_mrf_solver(const MrfOptions& options, const MrfLimits& limits,
                                           std::unique_ptr<Team> team) {
    return std::make_unique<CpuSolver>(options, limits, std::move(team));
}

uint64_t mrf_bytes(const MrfLimits& limits) { return CpuSolver::bytes(limits); }

void project_on_simplex(float* q, int classes, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        // The entries above the threshold are reduced equally by the excess over 1. Entries that fall below
        // the threshold are removed, until no entry falls below it.
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
