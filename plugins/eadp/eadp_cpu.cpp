// SPDX-License-Identifier: MIT
// Anisotropic diffusion on the processor.
#include "core/byte_pack.h"
#include "core/cube_view.h"
#include "core/error.h"
#include "eadp/eadp.h"
#include "eadp/eadp_simd.h"
#include "eadp/gradient.h"
#include "parallel/group.h"
#include "parallel/team.h"
#include "stream/band_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hsi::eadp {
namespace {

// --- scans
// ------------------------------------------------------------------------------------------------------------

/// Computes the gradient of each component over the core of a tile.
class ScanWorkerBase : public stream::Worker {
  public:
    ScanWorkerBase(const Options& options, const stream::TileLimits& limits)
        : m_zero_is_invalid(options.zero_is_invalid), m_gradient(options.sigma, limits.window_samples),
          m_mask(static_cast<size_t>(limits.window_samples * limits.window_lines)) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        make_mask(in, m_zero_is_invalid, m_mask.data());
        const int64_t x0 = tile.core.x - tile.window.x, y0 = tile.core.y - tile.window.y;
        for (int b = 0; b < in.bands; ++b)
            m_gradient.run(in, b, m_mask.data(), y0, y0 + tile.core.h,
                           [&](int64_t y, const double* squared, const double* valid) {
                               add_row(b, in.row(b, y) + x0, squared + x0, valid + x0, tile.core.w);
                           });
    }

  protected:
    virtual void add_row(int band, const float* x, const double* squared, const double* valid,
                         int64_t count) = 0;

  private:
    const bool m_zero_is_invalid;
    Gradient m_gradient;
    HostBuffer<float> m_mask;
};

uint64_t scan_bytes(const Options& options, const stream::TileLimits& limits) {
    return static_cast<uint64_t>(limits.window_samples * limits.window_lines) * 4 +
           Gradient::bytes(options.sigma, limits.window_samples);
}

class RangeWorker final : public ScanWorkerBase {
  public:
    RangeWorker(const Options& options, const stream::TileLimits& limits, size_t components)
        : ScanWorkerBase(options, limits), ranges(components), squares(components) {}
    std::vector<Range> ranges;
    std::vector<double> squares; ///< squared steepest gradient of each component

  private:
    void add_row(int band, const float* x, const double* squared, const double* valid,
                 int64_t count) override {
        Range& r = ranges[static_cast<size_t>(band)];
        double& s = squares[static_cast<size_t>(band)];
        s = std::max(s, setup_kernels().maximum(squared, valid, count));
        float low = r.valid > 0 ? r.lowest : std::numeric_limits<float>::max(),
              high = r.valid > 0 ? r.highest : -low;
        for (int64_t i = 0; i < count; ++i) {
            const bool v = valid[i] != 0;
            r.valid += v;
            low = v && x[i] < low ? x[i] : low;
            high = v && x[i] > high ? x[i] : high;
        }
        if (low <= high) r.lowest = low, r.highest = high;
    }
};

void merge(Range& r, const Range& o) {
    if (o.valid == 0) return;
    r.lowest = r.valid > 0 ? std::min(r.lowest, o.lowest) : o.lowest;
    r.highest = r.valid > 0 ? std::max(r.highest, o.highest) : o.highest;
    r.steepest = std::max(r.steepest, o.steepest);
    r.valid += o.valid;
}

class CpuRangeScan final : public RangeScan {
  public:
    CpuRangeScan(Options options, int components)
        : m_options(std::move(options)), m_result(static_cast<size_t>(components)) {}
    int64_t halo() const override { return gradient_halo(m_options); }
    bool reads_in_place() const override { return true; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return scan_bytes(m_options, limits);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<RangeWorker>(m_options, limits, m_result.size());
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const RangeWorker&>(worker);
        for (size_t b = 0; b < m_result.size(); ++b) {
            Range one = w.ranges[b];
            one.steepest = std::sqrt(w.squares[b]);
            merge(m_result[b], one);
        }
    }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        const auto parts = ranks.all("gradient ranges", BytePacker().put(m_result).take());
        std::fill(m_result.begin(), m_result.end(), Range());
        for (const std::string& part : parts) {
            const auto theirs = ByteUnpacker(part).one<std::vector<Range>>();
            for (size_t b = 0; b < m_result.size(); ++b)
                merge(m_result[b], theirs.at(b));
        }
    }
    const std::vector<Range>& result() const override { return m_result; }

  private:
    const Options m_options;
    std::vector<Range> m_result;
};

class HistogramWorker final : public ScanWorkerBase {
  public:
    HistogramWorker(const Options& options, const stream::TileLimits& limits,
                    const std::vector<Range>& ranges)
        : ScanWorkerBase(options, limits), counts(ranges.size()), m_ranges(ranges) {
        for (auto& c : counts)
            c.fill(0);
    }
    std::vector<Histogram> counts;

  private:
    void add_row(int band, const float*, const double* squared, const double* valid, int64_t count) override {
        const double steepest = m_ranges[static_cast<size_t>(band)].steepest;
        if (!(steepest > 0)) return;
        auto& c = counts[static_cast<size_t>(band)];
        for (int64_t i = 0; i < count; ++i) {
            if (valid[i] == 0 || !(squared[i] > 0)) continue;
            const double position = histogram_bins * std::sqrt(squared[i]) / steepest;
            ++c[static_cast<size_t>(std::min(histogram_bins - 1, static_cast<int>(position)))];
        }
    }
    const std::vector<Range>& m_ranges;
};

class CpuHistogramScan final : public HistogramScan {
  public:
    CpuHistogramScan(Options options, std::vector<Range> ranges)
        : m_options(std::move(options)), m_ranges(std::move(ranges)), m_result(m_ranges.size()) {
        for (auto& c : m_result)
            c.fill(0);
    }
    int64_t halo() const override { return gradient_halo(m_options); }
    bool reads_in_place() const override { return true; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return scan_bytes(m_options, limits);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<HistogramWorker>(m_options, limits, m_ranges);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const HistogramWorker&>(worker);
        for (size_t b = 0; b < m_result.size(); ++b)
            for (size_t i = 0; i < m_result[b].size(); ++i)
                m_result[b][i] += w.counts[b][i];
    }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        std::vector<int64_t> counts;
        for (const Histogram& h : m_result)
            counts.insert(counts.end(), h.begin(), h.end());
        ranks.add_up("gradient histograms", counts);
        for (size_t b = 0; b < m_result.size(); ++b)
            std::copy_n(counts.begin() + static_cast<ptrdiff_t>(b * histogram_bins), histogram_bins,
                        m_result[b].begin());
    }
    const std::vector<Histogram>& result() const override { return m_result; }

  private:
    const Options m_options;
    const std::vector<Range> m_ranges;
    std::vector<Histogram> m_result;
};

// --- diffusion
// --------------------------------------------------------------------------------------------------------

/// A plane over a window. Each row has row_slack zero elements before and after it, and one extra row
/// precedes the first row.
template <class T>
class Plane {
  public:
    Plane() = default;
    Plane(int64_t samples, int64_t lines) : m_pitch(pitch_of(samples)), m_data(count(samples, lines)) {}
    static int64_t pitch_of(int64_t samples) { return (samples + 15) / 16 * 16 + 2 * row_slack; }
    static size_t count(int64_t samples, int64_t lines) {
        return static_cast<size_t>(pitch_of(samples) * (lines + 1));
    }
    T* row(int64_t y) const { return m_data.data() + (y + 1) * m_pitch + row_slack; }
    int64_t pitch() const { return m_pitch; }

  private:
    int64_t m_pitch = 0;
    HostBuffer<T> m_data;
};

/// The output buffer of one copy. The recurrence adds its terms to the rows of `region` (in window
/// coordinates). Rows are `pitch` elements apart.
template <class T>
struct Target {
    T* data = nullptr; ///< address of pixel (region.x, region.y)
    ptrdiff_t pitch = 0;
};

/// Runs the recurrence of one component over a window, in groups of fused sweeps. Within a group, a wavefront
/// runs down the lines: when a line of Y_k enters, line - j of Y_{k+j} can be computed for all j of the
/// group. The active rows stay in the second-level cache, and each group passes over memory once.
template <class T>
class Recurrence {
  public:
    Recurrence(int64_t samples, int64_t lines, int team)
        : m_simd(sweep_kernels<T>()), m_a(samples, lines), m_b(samples, lines), m_next_a(samples, lines),
          m_next_b(samples, lines), m_east(samples, lines), m_south(samples, lines) {
        for (int i = 0; i < team; ++i) {
            m_rings.emplace_back(static_cast<size_t>(ring_pitch() * rows_before(fused_sweeps + 1)));
            std::fill_n(m_rings.back().data(), m_rings.back().size(), T(0));
        }
    }
    static uint64_t bytes(int64_t samples, int64_t lines, int team) {
        return sizeof(T) * (6 * Plane<T>::count(samples, lines) +
                            static_cast<uint64_t>(team) *
                                static_cast<uint64_t>(ring_pitch() * rows_before(fused_sweeps + 1)));
    }

    /// Returns a row of Y_0. All rows are filled before run().
    T* start_row(int64_t y) { return m_b.row(y); }
    T* east_row(int64_t y) { return m_east.row(y); }
    /// Returns the weights between lines y and y + 1. Row -1 is always zero.
    T* south_row(int64_t y) { return m_south.row(y); }

    /// A callback before each group of sweeps. It gets Y_{k-1} and Y_k and fills the lines around `region`.
    using Meet = std::function<void(Plane<T>& a, Plane<T>& b)>;
    /// Runs the stage; targets[c] covers `region`. The weights must be valid beyond `region`: by the stage's
    /// degree, or, with `meet`, by the sweeps of a group. If `begun` is true, the lines around `region` are
    /// valid for the first group, and `meet` is not called for it.
    void run(const Stage& stage, const Rect& window, const Rect& region,
             const std::vector<Target<T>>& targets, Team& team, const Meet& meet, bool begun) {
        for (int k = 0; k < stage.degree; k += fused_sweeps) {
            const int sweeps = std::min(fused_sweeps, stage.degree - k);
            const Rect output = meet ? region : intersect(grow(region, stage.degree - k - sweeps), window);
            if (meet && (k > 0 || !begun)) meet(m_a, m_b);
            const int64_t strips = (output.w + strip_width - 1) / strip_width;
            const int64_t width = ((output.w + strips - 1) / strips + 15) / 16 * 16;
            int64_t chunks = 1;
            if (team.size() > 1)
                chunks = std::clamp<int64_t>((3 * team.size() + strips - 1) / strips, 1,
                                             std::max<int64_t>(1, output.h / 64));
            const int64_t height = (output.h + chunks - 1) / chunks;
            team.run(strips * chunks, [&](int64_t unit, int member) {
                const Rect part = intersect(
                    Rect{output.x + unit % strips * width, output.y + unit / strips * height, width, height},
                    output);
                if (!part.empty())
                    run_part(stage, k, sweeps, window, part, region, targets,
                             m_rings[static_cast<size_t>(member)]);
            });
            std::swap(m_a, m_next_a);
            std::swap(m_b, m_next_b);
        }
    }

  private:
    static constexpr int64_t strip_width = 2048 / sizeof(T);
    /// Returns the number of rows of a level (1 to fused_sweeps) that the ring keeps. A row is kept until the
    /// group's last level reaches it, because the copies are summed at that point. The next two levels also
    /// need the row with both of its neighbours.
    static constexpr int64_t ring_rows(int level) { return fused_sweeps + 3 - level; }
    static constexpr int64_t rows_before(int64_t level) {
        return (level - 1) * (fused_sweeps + 3) - (level - 1) * level / 2;
    }
    static constexpr int64_t ring_pitch() { return Plane<T>::pitch_of(strip_width + 2 * fused_sweeps + 16); }

    void run_part(const Stage& stage, int k, int sweeps, const Rect& window, const Rect& part,
                  const Rect& region, const std::vector<Target<T>>& targets, HostBuffer<T>& ring) {
        const int64_t left = part.x - fused_sweeps; // window sample of ring column 0
        const auto level_row = [&](int level, int64_t y) -> T* {
            // Returns a row, indexed by window sample. Y_k and Y_{k-1} are in planes, later levels in the
            // ring.
            if (level == 0) return m_b.row(y);
            if (level == -1) return m_a.row(y);
            return ring.data() + (rows_before(level) + y % ring_rows(level)) * ring_pitch() + row_slack -
                   left;
        };
        const Rect inner = intersect(part, region);
        for (int64_t t = part.y - sweeps + 2; t < part.bottom() + sweeps; ++t) {
            for (int level = 1; level <= sweeps; ++level) {
                const int64_t reach = sweeps - level, y = t - level;
                if (y < std::max<int64_t>(0, part.y - reach) ||
                    y >= std::min(window.h, part.bottom() + reach))
                    continue;
                const int64_t x = std::max<int64_t>(0, part.x - reach),
                              end = std::min(window.w, part.right() + reach);
                // The weight is zero outside the window, so the contents of the row do not matter.
                const T* const up = level_row(level - 1, std::max<int64_t>(0, y - 1));
                const T* const down = level_row(level - 1, std::min(window.h - 1, y + 1));
                m_simd.sweep(level_row(level - 2, y) + x, up + x, level_row(level - 1, y) + x, down + x,
                             m_east.row(y) + x, m_south.row(y) + x, m_south.row(y - 1) + x, end - x,
                             k == 0 && level == 1, level_row(level, y) + x);
            }
            const int64_t y = t - sweeps;
            if (y < part.y || y >= part.bottom()) continue;
            if (!inner.empty() && y >= inner.y && y < inner.bottom()) {
                const int first = k == 0 ? 0 : 1; // The first group also adds the term of Y_0.
                const T* rows[fused_sweeps + 1];
                for (int level = first; level <= sweeps; ++level)
                    rows[level - first] = level_row(level, y) + inner.x;
                for (size_t c = 0; c < targets.size(); ++c) {
                    const auto& a = stage.coefficients[c];
                    const int terms = std::min(sweeps, static_cast<int>(a.size()) - 1 - k) - first + 1;
                    if (terms <= 0) continue;
                    T coefficient[fused_sweeps + 1];
                    for (int j = 0; j < terms; ++j)
                        coefficient[j] = static_cast<T>(a[static_cast<size_t>(k + first + j)]);
                    T* const sum = targets[c].data + (y - region.y) * targets[c].pitch + (inner.x - region.x);
                    // The partial sums of a row stay in the first-level cache.
                    for (int j = 0; j < terms; j += most_rows)
                        m_simd.accumulate(rows + j, coefficient + j, std::min(most_rows, terms - j), inner.w,
                                          k == 0 && j == 0, sum);
                }
            }
            std::copy_n(level_row(sweeps - 1, y) + part.x, part.w, m_next_a.row(y) + part.x);
            std::copy_n(level_row(sweeps, y) + part.x, part.w, m_next_b.row(y) + part.x);
        }
    }

    const SweepKernels<T>& m_simd;
    Plane<T> m_a, m_b, m_next_a, m_next_b; ///< Y_{k-1}, Y_k, and their successors after the next group
    Plane<T> m_east, m_south;
    /// One ring per thread of the team: [level][row mod ring_rows(level)].
    std::vector<HostBuffer<T>> m_rings;
};

template <class T>
class DiffusionWorker final : public stream::Worker {
  public:
    DiffusionWorker(const Options& options, const std::vector<Stage>& stages,
                    const std::vector<Contrast>& contrasts, bool with_component, int team,
                    const stream::TileLimits& limits, parallel::Group* joined, stream::BandWriter* writer)
        : m_options(options), m_stages(stages), m_contrasts(contrasts), m_with_component(with_component),
          m_team(team), m_joined(joined), m_writer(writer),
          m_recurrence(limits.window_samples, limits.window_lines, team),
          m_mask(static_cast<size_t>(limits.window_samples * limits.window_lines)) {
        for (int i = 0; i < team; ++i) {
            m_gradients.emplace_back(options.sigma, limits.window_samples);
            m_g.emplace_back(static_cast<size_t>(2 * (limits.window_samples + 16)));
        }
        if (stages.size() > 1)
            m_sums.emplace_back(static_cast<size_t>(limits.window_samples * limits.window_lines));
        else if (sizeof(T) != sizeof(float))
            m_sums.emplace_back(stages[0].coefficients.size() *
                                static_cast<size_t>(limits.core_samples * limits.core_lines));
    }
    static uint64_t bytes(const Options& options, const std::vector<Stage>& stages, int team,
                          const stream::TileLimits& limits) {
        const auto window = static_cast<uint64_t>(limits.window_samples * limits.window_lines);
        uint64_t sums = 0;
        if (stages.size() > 1)
            sums = window;
        else if (sizeof(T) != sizeof(float))
            sums = stages[0].coefficients.size() *
                   static_cast<uint64_t>(limits.core_samples * limits.core_lines);
        return Recurrence<T>::bytes(limits.window_samples, limits.window_lines, team) + window * 4 +
               sums * sizeof(T) +
               static_cast<uint64_t>(team) * (Gradient::bytes(options.sigma, limits.window_samples) +
                                              2 * (static_cast<uint64_t>(limits.window_samples) + 16) * 8);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        in_parts(in.lines, [&](int64_t first, int64_t last) {
            make_mask(in.cut(0, first, in.samples, last - first), m_options.zero_is_invalid,
                      m_mask.data() + first * in.samples);
        });
        const Rect window{0, 0, tile.window.w, tile.window.h};
        const Rect core{tile.core.x - tile.window.x, tile.core.y - tile.window.y, tile.core.w, tile.core.h};
        if (m_joined && tile.index != m_joined->rank()) throw Error("internal: a strip of another rank");
        typename Recurrence<T>::Meet meet;
        if (m_joined) meet = [&](Plane<T>& a, Plane<T>& b) { swap_borders(window, core, a, b); };
        int band = 0;
        for (int component = 0; component < in.bands; ++component) {
            const auto& contrast = m_contrasts[static_cast<size_t>(component)];
            if (m_with_component) {
                const auto plane = plane_of(out, band);
                in_parts(core.h, [&](int64_t first, int64_t last) {
                    for (int64_t y = first; y < last; ++y)
                        for (int64_t x = 0; x < core.w; ++x)
                            plane.at(0, y, x) = valid(window, core.y + y, core.x + x)
                                                    ? in.at(component, core.y + y, core.x + x)
                                                    : no_value;
                });
                write_band(band++, plane);
            }
            set_up(in, component, contrast);
            int64_t reach = 0;
            for (const auto& s : m_stages)
                reach += m_joined ? 0 : s.degree;
            for (size_t s = 0; s < m_stages.size(); ++s) {
                const Stage& stage = m_stages[s];
                reach -= m_joined ? 0 : stage.degree;
                const Rect region = intersect(grow(core, reach), window);
                std::vector<CubeView<float>> planes;
                for (size_t c = 0; c < stage.coefficients.size(); ++c)
                    planes.push_back(plane_of(out, band + static_cast<int>(c)));
                const auto targets = targets_of(stage, region, planes);
                m_recurrence.run(stage, window, region, targets, m_team, meet, s == 0);
                for (size_t c = 0; c < targets.size(); ++c) {
                    finish(targets[c], window, region, core, contrast.level, planes[c]);
                    write_band(band++, planes[c]);
                }
                // In evolutions with several stages, the next copy starts from the copy of this stage.
                if (s + 1 < m_stages.size())
                    for (int64_t y = region.y; y < region.bottom(); ++y)
                        std::copy_n(targets[0].data + (y - region.y) * targets[0].pitch, region.w,
                                    m_recurrence.start_row(y) + region.x);
            }
        }
        if (m_writer) m_writer->finish();
    }

  private:
    /// Returns the plane into which a band of the core is written.
    CubeView<float> plane_of(const std::vector<CubeView<float>>& out, int band) {
        if (m_writer) return m_writer->take();
        CubeView<float> plane = out[0];
        plane.data = out[0].row(band, 0);
        plane.bands = 1;
        return plane;
    }
    void write_band(int band, const CubeView<float>& plane) {
        if (m_writer) m_writer->give(band, plane);
    }

    /// Splits the lines into parts and calls work(first line, end line) for each part, on all threads of the
    /// team.
    template <class Work>
    void in_parts(int64_t lines, const Work& work) {
        const int64_t parts = std::clamp<int64_t>(lines / 16, 1, 4 * m_team.size()),
                      height = (lines + parts - 1) / parts;
        m_team.run(parts, [&](int64_t unit, int) {
            const int64_t first = unit * height, last = std::min(lines, first + height);
            if (first < last) work(first, last);
        });
    }

    bool valid(const Rect& window, int64_t y, int64_t x) const {
        return m_mask[static_cast<size_t>(y * window.w + x)] != 0;
    }

    /// Prepares Y_0 and the weights over the whole window.
    void set_up(const CubeView<float>& in, int component, const Contrast& contrast) {
        const int64_t w = in.samples, h = in.lines;
        const int64_t chunks = std::clamp<int64_t>(h / 64, 1, 2 * m_team.size()),
                      height = (h + chunks - 1) / chunks;
        m_team.run(chunks, [&](int64_t unit, int member) {
            const int64_t first = unit * height, last = std::min(h, first + height);
            if (first >= last) return;
            double* g[2];
            for (int i = 0; i < 2; ++i)
                g[i] = m_g[static_cast<size_t>(member)].data() +
                       static_cast<size_t>(i) * m_g[static_cast<size_t>(member)].size() / 2;
            const auto row = [&](int64_t y, const double* squared, const double* mask) {
                double* const now = g[y % 2];
                const double* const before = g[(y + 1) % 2];
                if (contrast.k > 0)
                    setup_kernels().diffusivity(squared, contrast.k * contrast.k, m_options.diffusivity, w,
                                                now);
                else
                    std::fill_n(now, w, 1.0);
                // No flux enters invalid pixels. Their g is set to -2, which makes the sum of two g negative,
                // so weight() returns 0.
                for (int64_t x = 0; x < w; ++x)
                    now[x] = mask[x] != 0 ? now[x] : -2.0;
                if (y < last) {
                    T* const start = m_recurrence.start_row(y);
                    const float* const values = in.row(component, y);
                    for (int64_t x = 0; x < w; ++x)
                        start[x] =
                            mask[x] != 0 ? static_cast<T>(values[x]) - static_cast<T>(contrast.level) : T(0);
                    T* const east = m_recurrence.east_row(y);
                    for (int64_t x = 0; x + 1 < w; ++x)
                        east[x] = weight(now[x], now[x + 1]);
                    east[w - 1] = 0;
                }
                if (y > first) {
                    T* const south = m_recurrence.south_row(y - 1);
                    for (int64_t x = 0; x < w; ++x)
                        south[x] = weight(before[x], now[x]);
                }
                if (y == h - 1) std::fill_n(m_recurrence.south_row(y), w, T(0));
            };
            m_gradients[static_cast<size_t>(member)].run(in, component, m_mask.data(), first,
                                                         std::min(h, last + 1), row);
        });
    }
    /// Returns 2 tau_max times the mean of two g in [0, 1], or 0 if either pixel is invalid (g = -2).
    static T weight(double a, double b) { return static_cast<T>(tau_max * std::max(0.0, a + b)); }

    /// Sends the lines at the borders of the core to the neighbouring ranks, and stores the received lines in
    /// the window.
    void swap_borders(const Rect& window, const Rect& core, Plane<T>& a, Plane<T>& b) {
        const auto bytes = static_cast<size_t>(window.w) * sizeof(T);
        const auto each = [&](int64_t first, const auto& work) {
            for (Plane<T>* plane : {&a, &b})
                for (int64_t y = first; y < first + fused_sweeps; ++y)
                    work(reinterpret_cast<char*>(plane->row(y)));
        };
        std::string before, after;
        each(core.y, [&](const char* row) { before.append(row, bytes); });
        each(core.bottom() - fused_sweeps, [&](const char* row) { after.append(row, bytes); });
        m_joined->swap_borders("borders of strips", before, after);
        const auto receive = [&](const std::string& theirs, int64_t first) {
            if (theirs.size() != 2 * fused_sweeps * bytes)
                throw Error("internal: the border of another rank's strip has another size");
            const char* from = theirs.data();
            each(first, [&](char* row) {
                std::memcpy(row, from, bytes);
                from += bytes;
            });
        };
        if (core.y > 0) receive(before, core.y - fused_sweeps);
        if (core.bottom() < window.h) receive(after, core.bottom());
    }

    /// Returns the targets. In single precision, terms are added directly to the output planes, unless sums
    /// are also needed beyond the core.
    std::vector<Target<T>> targets_of(const Stage& stage, const Rect& region,
                                      const std::vector<CubeView<float>>& planes) {
        std::vector<Target<T>> targets;
        for (size_t c = 0; c < stage.coefficients.size(); ++c) {
            if constexpr (sizeof(T) == sizeof(float)) {
                if (m_sums.empty()) {
                    targets.push_back({planes[c].data, planes[c].line_stride});
                    continue;
                }
            }
            targets.push_back({m_sums[0].data() + static_cast<ptrdiff_t>(c) * region.area(), region.w});
        }
        return targets;
    }

    void finish(const Target<T>& target, const Rect& window, const Rect& region, const Rect& core,
                float level, const CubeView<float>& plane) {
        in_parts(core.h, [&](int64_t first, int64_t last) {
            for (int64_t y = first; y < last; ++y) {
                const T* const from =
                    target.data + (core.y + y - region.y) * target.pitch + (core.x - region.x);
                float* const to = plane.row(0, y);
                const float* const mask = m_mask.data() + (core.y + y) * window.w + core.x;
                for (int64_t x = 0; x < core.w; ++x)
                    to[x] = mask[x] != 0 ? static_cast<float>(from[x] + static_cast<T>(level)) : no_value;
            }
        });
    }

    const Options& m_options;
    const std::vector<Stage>& m_stages;
    const std::vector<Contrast>& m_contrasts;
    const bool m_with_component;
    Team m_team;
    /// The ranks, which each diffuse one strip and exchange borders; null: tiles are independent.
    parallel::Group* const m_joined;
    /// Receives finished bands; null: bands go to the output of process().
    stream::BandWriter* const m_writer;
    Recurrence<T> m_recurrence;
    HostBuffer<float> m_mask; ///< 1: valid pixel, 0: invalid pixel; covers the window
    std::vector<Gradient> m_gradients;
    std::vector<std::vector<double>> m_g; ///< two rows of g per thread of the team
    std::vector<HostBuffer<T>> m_sums;
};

class CpuDiffusion final : public stream::Operation {
  public:
    explicit CpuDiffusion(Diffusion diffusion, parallel::Group* joined = nullptr)
        : m_d(std::move(diffusion)), m_joined(joined) {}
    void write_to(stream::BandWriter& writer) { m_writer = &writer; }
    bool divides() const override { return true; }
    int64_t halo() const override {
        return m_joined ? gradient_halo(m_d.options) + fused_sweeps : halo_of(m_d.options, m_d.stages);
    }
    bool reads_in_place() const override { return true; }
    std::vector<int> output_bands() const override {
        int bands = m_d.with_component ? 1 : 0;
        for (const auto& s : m_d.stages)
            bands += static_cast<int>(s.coefficients.size());
        return {bands * static_cast<int>(m_d.contrasts.size())};
    }
    // The halo is expensive, so tiles are as large as memory allows.
    uint64_t preferred_bytes() const override { return 0; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return m_d.options.precision == Precision::single_precision
                   ? DiffusionWorker<float>::bytes(m_d.options, m_d.stages, m_d.team, limits)
                   : DiffusionWorker<double>::bytes(m_d.options, m_d.stages, m_d.team, limits);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        if (m_d.options.precision == Precision::single_precision)
            return std::make_unique<DiffusionWorker<float>>(m_d.options, m_d.stages, m_d.contrasts,
                                                            m_d.with_component, m_d.team, limits, m_joined,
                                                            m_writer);
        return std::make_unique<DiffusionWorker<double>>(
            m_d.options, m_d.stages, m_d.contrasts, m_d.with_component, m_d.team, limits, m_joined, m_writer);
    }

  private:
    const Diffusion m_d;
    /// The ranks, which each diffuse one strip and exchange borders; null: tiles are independent.
    parallel::Group* const m_joined;
    stream::BandWriter* m_writer = nullptr;
};

/// A CpuDiffusion of a single tile: the whole scene or one rank's part of it. Its bands go to a BandWriter
/// instead of an output.
class CpuWrittenDiffusion final : public WrittenDiffusion {
  public:
    explicit CpuWrittenDiffusion(const Diffusion& diffusion, parallel::Group* joined = nullptr)
        : m_tile(diffusion, joined), m_joined(joined != nullptr) {
        // A component and its copies of one stage are computed together. If the team has another thread, this
        // thread writes the previous planes at the same time.
        size_t most = 0;
        for (const auto& s : diffusion.stages)
            most = std::max(most, s.coefficients.size());
        m_planes =
            std::min((diffusion.team > 1 ? 2 : 1) * (1 + static_cast<int>(most)), m_tile.output_bands()[0]);
    }
    bool divides() const override { return m_joined; }
    int64_t halo() const override { return m_tile.halo(); }
    uint64_t preferred_bytes() const override { return 0; }
    bool reads_in_place() const override { return true; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return m_tile.scratch_bytes(limits) +
               stream::BandWriter::bytes({limits.core_samples, limits.core_lines, 1}, m_planes);
    }
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override {
        return m_tile.start(lane, limits);
    }
    int planes() const override { return m_planes; }
    void write_to(stream::BandWriter& writer) override { m_tile.write_to(writer); }

  private:
    CpuDiffusion m_tile;
    const bool m_joined;
    int m_planes;
};

/// All copies of a scene, ordered by component.
struct KeptCopies {
    KeptCopies(int copies_of_one, const stream::CubeShape& s)
        : copies(copies_of_one), shape(s), values(static_cast<size_t>(s.float_bytes() / sizeof(float))) {}
    CubeView<float> view() const {
        return CubeView<float>::packed(values.data(), shape.bands, shape.lines, shape.samples);
    }
    const int copies;
    const stream::CubeShape shape;
    const HostBuffer<float> values;
};

/// A CpuDiffusion of a single tile whose results stay in memory after the pass.
class CpuKeptDiffusion final : public stream::Operation {
  public:
    CpuKeptDiffusion(const Diffusion& diffusion, std::shared_ptr<KeptCopies>& kept)
        : m_tile(without_component(diffusion)), m_components(static_cast<int>(diffusion.contrasts.size())),
          m_kept(kept) {}
    int64_t halo() const override { return m_tile.halo(); }
    uint64_t preferred_bytes() const override { return 0; }
    bool reads_in_place() const override { return true; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return m_tile.scratch_bytes(limits) +
               stream::CubeShape{limits.core_samples, limits.core_lines, bands()}.float_bytes();
    }
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override {
        m_kept = std::make_shared<KeptCopies>(
            bands() / m_components, stream::CubeShape{limits.core_samples, limits.core_lines, bands()});
        return std::make_unique<Work>(m_tile.start(lane, limits), m_kept->view());
    }

  private:
    struct Work final : stream::Worker {
        Work(std::unique_ptr<stream::Worker> w, const CubeView<float>& to) : worker(std::move(w)), out{to} {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>&) override {
            worker->process(tile, in, out);
        }
        const std::unique_ptr<stream::Worker> worker;
        const std::vector<CubeView<float>> out;
    };
    static Diffusion without_component(Diffusion diffusion) {
        diffusion.with_component = false;
        return diffusion;
    }
    int bands() const { return m_tile.output_bands()[0]; }
    CpuDiffusion m_tile;
    const int m_components;
    std::shared_ptr<KeptCopies>& m_kept;
};

class CpuKeptOutput final : public stream::Operation {
  public:
    CpuKeptOutput(bool zero_is_invalid, std::shared_ptr<KeptCopies> kept)
        : m_zero_is_invalid(zero_is_invalid), m_kept(std::move(kept)) {}
    std::vector<int> output_bands() const override {
        return {m_kept->shape.bands / m_kept->copies * (m_kept->copies + 1)};
    }
    bool reads_in_place() const override { return true; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return KeptOutputWorker::bytes(limits);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<Work>(m_zero_is_invalid, *m_kept, limits);
    }

  private:
    struct Work final : KeptOutputWorker {
        Work(bool zero_is_invalid, const KeptCopies& k, const stream::TileLimits& limits)
            : KeptOutputWorker(zero_is_invalid, k.copies, limits), kept(k) {}
        void copy(const Rect& core, int component, const CubeView<float>& to) override {
            const auto from = kept.view().cut(core.x, core.y, core.w, core.h);
            for (int b = 0; b < to.bands; ++b)
                for (int64_t y = 0; y < core.h; ++y)
                    std::copy_n(from.row(component * kept.copies + b, y), core.w, to.row(b, y));
        }
        const KeptCopies& kept;
    };
    const bool m_zero_is_invalid;
    const std::shared_ptr<KeptCopies> m_kept;
};

class CpuBackend final : public Backend {
  public:
    std::unique_ptr<RangeScan> make_range_scan(const Options& options, int components) override {
        return std::make_unique<CpuRangeScan>(options, components);
    }
    std::unique_ptr<HistogramScan> make_histogram_scan(const Options& options,
                                                       const std::vector<Range>& ranges) override {
        return std::make_unique<CpuHistogramScan>(options, ranges);
    }
    std::unique_ptr<stream::Operation> make_diffusion(const Diffusion& diffusion, Way way) override {
        const bool joined = way == Way::written_strips || way == Way::joined_strips;
        if (joined && diffusion.strip_lines < fused_sweeps) return nullptr;
        parallel::Group* const ranks = joined ? &parallel::group() : nullptr;
        if (is_written(way)) return std::make_unique<CpuWrittenDiffusion>(diffusion, ranks);
        if (way == Way::kept) return std::make_unique<CpuKeptDiffusion>(diffusion, m_kept);
        return std::make_unique<CpuDiffusion>(diffusion, ranks);
    }
    std::unique_ptr<stream::Operation> make_kept_output(const Options& options) override {
        return std::make_unique<CpuKeptOutput>(options.zero_is_invalid, std::move(m_kept));
    }
    uint64_t kept_bytes(const stream::CubeShape& copies) const override { return copies.float_bytes(); }
    std::string describe() const override { return std::string("CPU, ") + simd_target(); }

  private:
    std::shared_ptr<KeptCopies> m_kept; ///< copies of the last diffusion with Way::kept
};

} // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

} // namespace hsi::eadp
