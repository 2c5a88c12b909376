// SPDX-License-Identifier: MIT
#include "compare/compare.h"

#include "compare/kernels_simd.h"
#include "compare/valid_pixels.h"
#include "core/byte_pack.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "math/elementary.h"
#include "math/exact_sum.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

namespace hsi::compare {
namespace {

constexpr std::array<const char*, 7> names{"nrmse", "maxsde", "sad", "rmse", "maxabs", "ssim", "sr"};
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double degrees = 57.29577951308232;

double ratio(double above, double below) { return above == 0 ? 0 : below == 0 ? infinity : above / below; }

double pixel_metric(Metric metric, const RunSums& r, size_t i, int bands) {
    switch (metric) {
    case Metric::nrmse:
        return std::sqrt(ratio(r.difference[i], r.centred[i]));
    case Metric::maxsde:
        return ratio(bands * r.largest[i], r.absolute[i]);
    case Metric::sad:
        // Near 0 and 180 degrees, this formula is accurate; the arc cosine of the dot product is not.
        return 2 * math::atan2(std::sqrt(r.minus[i]), std::sqrt(r.plus[i])) * degrees;
    case Metric::rmse:
        return std::sqrt(r.difference[i] / bands);
    case Metric::maxabs:
        return r.largest[i];
    default:
        return nan;
    }
}

struct Gathered {
    PixelCounts counts;
    std::vector<math::ExactSum> sums;    ///< per spectral metric: sum of its finite values
    std::vector<Summary> best;           ///< per spectral metric: only the maximum is set
    std::vector<math::ExactSum> ssim;    ///< per band
    std::vector<math::ExactSum> squares; ///< per band, with rmse: sum of the squared differences
    std::vector<uint8_t> infinite;       ///< per spectral metric: 1 if a value is infinite

    void resize(size_t metrics, size_t bands, size_t square_bands) {
        sums.resize(metrics);
        best.resize(metrics);
        infinite.resize(metrics);
        ssim.resize(bands);
        squares.resize(square_bands);
        for (auto& s : best)
            s.maximum = -1; // less than any value of a metric
    }
    std::string packed() const {
        return BytePacker().put(counts).put(sums).put(best).put(ssim).put(squares).put(infinite).take();
    }
    void unpack(const std::string& bytes) {
        ByteUnpacker in(bytes);
        in.get(counts);
        in.get(sums);
        in.get(best);
        in.get(ssim);
        in.get(squares);
        in.get(infinite);
    }
    static bool better(const Summary& a, const Summary& b) {
        if (a.maximum != b.maximum) return a.maximum > b.maximum;
        if (a.line < 0 || b.line < 0) return b.line < 0 && a.line >= 0;
        return a.line != b.line ? a.line < b.line : a.sample < b.sample;
    }
    void add(const Gathered& o) {
        counts.compared += o.counts.compared;
        counts.only_first += o.counts.only_first;
        counts.only_second += o.counts.only_second;
        counts.neither += o.counts.neither;
        for (size_t k = 0; k < sums.size(); ++k) {
            sums[k].add(o.sums[k]);
            infinite[k] |= o.infinite[k];
            if (better(o.best[k], best[k])) best[k] = o.best[k];
        }
        for (size_t b = 0; b < ssim.size(); ++b)
            ssim[b].add(o.ssim[b]);
        for (size_t b = 0; b < squares.size(); ++b)
            squares[b].add(o.squares[b]);
    }
};

struct Plan {
    int bands = 0, parts = 1;
    std::vector<Metric> metrics, spectral;
    std::vector<int> spectral_map; ///< map band of each spectral metric
    int ssim_map = -1;             ///< map band of ssim; -1: not requested
    bool map = false, second = false;
    bool squares = false; ///< true to sum the squared differences of each band
    Ranges ranges;
};

/// Computes ssim of one tile, one band at a time. s, t and their products in the window (with the halo) are
/// filtered along lines, then along columns. They are 0 outside of the scene and where a pixel is invalid.
class SsimTile {
  public:
    static uint64_t bytes(const stream::TileLimits& t) {
        const auto core = static_cast<uint64_t>(t.core_samples), width = core + 2 * ssim_radius;
        const auto height = static_cast<uint64_t>(t.core_lines) + 2 * ssim_radius;
        return sizeof(double) *
                   (5 * width + 6 * height * core + 7 * core + core * static_cast<uint64_t>(t.core_lines)) +
               width * height;
    }
    explicit SsimTile(const stream::TileLimits& t)
        : m_mask(static_cast<size_t>((t.core_samples + 2 * ssim_radius) * (t.core_lines + 2 * ssim_radius))),
          m_mean(static_cast<size_t>(t.core_samples * t.core_lines)),
          m_values(static_cast<size_t>(t.core_samples)) {
        for (auto& r : m_rows)
            r.resize(static_cast<size_t>(t.core_samples + 2 * ssim_radius));
        for (auto& p : m_planes)
            p.resize(static_cast<size_t>(t.core_samples * (t.core_lines + 2 * ssim_radius)));
        for (auto& p : m_filtered)
            p.resize(static_cast<size_t>(t.core_samples));
        for (int k = -ssim_radius; k <= ssim_radius; ++k) // exp(-k^2 / (2 sigma^2)), sigma = 1.5
            m_taps[static_cast<size_t>(k + ssim_radius)] = math::exp(-k * k / 4.5);
    }

    /// valid(x, y): whether the pixel at these scene coordinates, inside the window, is compared.
    template <class Valid>
    void process(const Plan& plan, const Tile& tile, const CubeView<float>& in, const Valid& valid,
                 Gathered& to) {
        const int64_t w = tile.core.w, h = tile.core.h, rows = h + 2 * ssim_radius,
                      width = w + 2 * ssim_radius;
        const int64_t x0 = tile.core.x - ssim_radius, y0 = tile.core.y - ssim_radius;
        for (int64_t y = 0; y < rows; ++y)
            for (int64_t x = 0; x < width; ++x) {
                const int64_t sx = x0 + x, sy = y0 + y;
                const bool inside = sx >= tile.window.x && sx < tile.window.right() && sy >= tile.window.y &&
                                    sy < tile.window.bottom();
                m_mask[static_cast<size_t>(y * width + x)] = inside && valid(sx, sy);
            }
        for (int64_t y = 0; y < rows; ++y) {
            for (int64_t x = 0; x < width; ++x)
                m_rows[0][static_cast<size_t>(x)] = m_mask[static_cast<size_t>(y * width + x)];
            along_line(0, 0, y, w);
        }
        std::fill(m_mean.begin(), m_mean.end(), 0.0);
        for (int b = 0; b < plan.bands; ++b)
            band(plan, tile, in, b, to);
    }
    double mean(int64_t core_samples, int64_t x, int64_t y) const {
        return m_mean[static_cast<size_t>(y * core_samples + x)];
    }

  private:
    void band(const Plan& plan, const Tile& tile, const CubeView<float>& in, int b, Gathered& to) {
        const int64_t w = tile.core.w, h = tile.core.h, rows = h + 2 * ssim_radius,
                      width = w + 2 * ssim_radius;
        // The window covers the columns left to right - 1 of the padded rows.
        const int64_t left = tile.window.x - (tile.core.x - ssim_radius), right = left + tile.window.w;
        const auto& range = plan.ranges.first[static_cast<size_t>(b)];
        const double length = range[1] - range[0];
        // Values are taken relative to the middle of the range, so that variances keep their digits.
        const double middle = 0.5 * (range[0] + range[1]);
        double *s = m_rows[0].data(), *t = m_rows[1].data(), *ss = m_rows[2].data(), *tt = m_rows[3].data(),
               *st = m_rows[4].data();
        for (int64_t y = 0; y < rows; ++y) {
            const int64_t line = tile.core.y - ssim_radius + y - tile.window.y;
            for (auto& row : m_rows)
                std::fill_n(row.begin(), width, 0.0);
            if (line >= 0 && line < tile.window.h) {
                const BandLine sv(in, plan.parts, b, line), tv(in, plan.parts, plan.bands + b, line);
                const uint8_t* mask = m_mask.data() + y * width;
                for (int64_t x = left; x < right; ++x) {
                    s[x] = mask[x] ? sv[x - left] - middle : 0.0;
                    t[x] = mask[x] ? tv[x - left] - middle : 0.0;
                }
                for (int64_t x = left; x < right; ++x) {
                    ss[x] = s[x] * s[x];
                    tt[x] = t[x] * t[x];
                    st[x] = s[x] * t[x];
                }
            }
            for (size_t k = 0; k < m_rows.size(); ++k)
                along_line(k, k + 1, y, w);
        }
        const double c1 = 0.01 * length * (0.01 * length), c2 = 0.03 * length * (0.03 * length);
        const double* planes[6];
        for (size_t p = 0; p < m_filtered.size(); ++p)
            planes[p] = m_filtered[p].data();
        for (int64_t y = 0; y < h; ++y) {
            for (size_t p = 0; p < m_planes.size(); ++p)
                correlate(m_planes[p].data() + y * w, w, m_taps.data(), static_cast<size_t>(w),
                          m_filtered[p].data());
            ssim_values(planes, middle, c1, c2, static_cast<size_t>(w), m_values.data());
            const uint8_t* mask = m_mask.data() + (y + ssim_radius) * width + ssim_radius;
            double* mean = m_mean.data() + y * w;
            // The core begins at the start of a run.
            for (int64_t x = 0; x < w; x += static_cast<int64_t>(run_pixels)) {
                double sum = 0;
                for (int64_t i = x; i < std::min(w, x + static_cast<int64_t>(run_pixels)); ++i) {
                    if (!mask[i]) continue;
                    sum += m_values[static_cast<size_t>(i)];
                    mean[i] += m_values[static_cast<size_t>(i)] / plan.bands;
                }
                to.ssim[static_cast<size_t>(b)].add(sum);
            }
        }
    }
    void along_line(size_t row, size_t plane, int64_t y, int64_t w) {
        correlate(m_rows[row].data(), 1, m_taps.data(), static_cast<size_t>(w),
                  m_planes[plane].data() + y * w);
    }
    std::vector<uint8_t> m_mask;
    std::vector<double> m_mean, m_values;
    std::array<std::vector<double>, 5> m_rows;
    std::array<std::vector<double>, 6> m_planes, m_filtered;
    std::array<double, ssim_taps> m_taps{};
};

class Lane final : public stream::Worker {
  public:
    Lane(const Plan& plan, const stream::TileLimits& limits)
        : m_plan(plan), m_valid(static_cast<size_t>(limits.window_samples * limits.window_lines)) {
        const auto bands = static_cast<size_t>(plan.bands);
        gathered.resize(plan.spectral.size(), plan.ssim_map >= 0 ? bands : 0, plan.squares ? bands : 0);
        m_squares.resize(plan.squares ? bands : 0);
        if (plan.ssim_map >= 0) m_ssim = std::make_unique<SsimTile>(limits);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const Rect& core = tile.core;
        const Rect& window = tile.window;
        if (m_plan.map)
            for (int b = 0; b < out[0].bands; ++b)
                for (int64_t y = 0; y < core.h; ++y)
                    std::fill_n(out[0].row(b, y), core.w, std::numeric_limits<float>::quiet_NaN());
        for (int64_t y = window.y; y < window.bottom(); ++y) {
            const bool own_line = y >= core.y && y < core.bottom();
            if (!own_line && !m_ssim) continue;
            // Runs begin at the core's first sample, which is a multiple of run_pixels. In the halo, only the
            // validity of pixels is needed, so runs may begin anywhere.
            const auto judge = [&](int64_t from, int64_t to) {
                for (int64_t x = from; x < to; x += static_cast<int64_t>(run_pixels))
                    run(in, window, y, x, std::min(to - x, static_cast<int64_t>(run_pixels)));
            };
            judge(window.x, core.x);
            for (int64_t x = core.x; x < core.right(); x += static_cast<int64_t>(run_pixels)) {
                const int64_t n = std::min(core.right() - x, static_cast<int64_t>(run_pixels));
                run(in, window, y, x, n);
                if (own_line) gather(tile, in, y, x, n, out);
            }
            judge(core.right(), window.right());
        }
        if (!m_ssim) return;
        const auto valid = [&](int64_t x, int64_t y) {
            return m_valid[static_cast<size_t>((y - window.y) * window.w + x - window.x)] != 0;
        };
        m_ssim->process(m_plan, tile, in, valid, gathered);
        if (m_plan.map)
            for (int64_t y = 0; y < core.h; ++y)
                for (int64_t x = 0; x < core.w; ++x)
                    if (valid(core.x + x, core.y + y))
                        out[0].at(m_plan.ssim_map, y, x) = static_cast<float>(m_ssim->mean(core.w, x, y));
    }

    Gathered gathered;

  private:
    /// Computes the sums of a run and the validity of its pixels.
    void run(const CubeView<float>& in, const Rect& window, int64_t y, int64_t x, int64_t n) {
        const float* s = in.row(0, y - window.y) + (x - window.x);
        const float* t = in.row(m_plan.bands * m_plan.parts, y - window.y) + (x - window.x);
        first_sums(s, t, in.band_stride, m_plan.parts, m_plan.bands, static_cast<size_t>(n), m_sums);
        uint8_t* valid = m_valid.data() + (y - window.y) * window.w + (x - window.x);
        for (int64_t i = 0; i < n; ++i) {
            m_first[i] = is_valid_sum(m_sums.square_s[i], m_plan.bands > 1);
            m_second[i] = is_valid_sum(m_sums.square_t[i], m_plan.bands > 1);
            valid[i] = m_first[i] & m_second[i];
        }
    }
    void gather(const Tile& tile, const CubeView<float>& in, int64_t y, int64_t x, int64_t n,
                const std::vector<CubeView<float>>& out) {
        const Rect& window = tile.window;
        if (m_plan.second)
            second_sums(in.row(0, y - window.y) + (x - window.x),
                        in.row(m_plan.bands * m_plan.parts, y - window.y) + (x - window.x), in.band_stride,
                        m_plan.parts, m_plan.bands, static_cast<size_t>(n), m_sums);
        for (int64_t i = 0; i < n; ++i) {
            PixelCounts& c = gathered.counts;
            ++(m_first[i]    ? m_second[i] ? c.compared : c.only_first
               : m_second[i] ? c.only_second
                             : c.neither);
        }
        if (m_plan.squares) add_squares(in, window, y, x, n);
        for (size_t k = 0; k < m_plan.spectral.size(); ++k) {
            double sum = 0;
            for (int64_t i = 0; i < n; ++i) {
                if (!(m_first[i] & m_second[i])) continue;
                const double v =
                    pixel_metric(m_plan.spectral[k], m_sums, static_cast<size_t>(i), m_plan.bands);
                if (std::isinf(v))
                    gathered.infinite[k] = 1;
                else
                    sum += v;
                if (Gathered::better({0, v, y, x + i}, gathered.best[k])) gathered.best[k] = {0, v, y, x + i};
                if (m_plan.map)
                    out[0].at(m_plan.spectral_map[k], y - tile.core.y, x + i - tile.core.x) =
                        static_cast<float>(v);
            }
            gathered.sums[k].add(sum);
        }
    }

    /// Adds the squared differences of the compared pixels of a run to the sums of the bands.
    void add_squares(const CubeView<float>& in, const Rect& window, int64_t y, int64_t x, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
            m_weight[i] = m_first[i] & m_second[i];
        std::fill(m_weight.begin() + n, m_weight.end(), 0.0);
        band_squares(in.row(0, y - window.y) + (x - window.x),
                     in.row(m_plan.bands * m_plan.parts, y - window.y) + (x - window.x), in.band_stride,
                     m_plan.parts, m_plan.bands, static_cast<size_t>(n), m_weight.data(), m_squares.data());
        for (size_t b = 0; b < m_squares.size(); ++b)
            gathered.squares[b].add(m_squares[b]);
    }

    const Plan& m_plan;
    RunSums m_sums{};
    std::array<double, run_pixels> m_weight{};
    std::vector<double> m_squares;
    std::array<uint8_t, run_pixels> m_first{}, m_second{};
    std::vector<uint8_t> m_valid;
    std::unique_ptr<SsimTile> m_ssim;
};

class Comparison final : public Scan<Compared> {
  public:
    explicit Comparison(Plan plan) : m_plan(std::move(plan)) {
        const auto bands = static_cast<size_t>(m_plan.bands);
        m_all.resize(m_plan.spectral.size(), m_plan.ssim_map >= 0 ? bands : 0, m_plan.squares ? bands : 0);
    }
    int64_t halo() const override { return m_plan.ssim_map >= 0 ? ssim_radius : 0; }
    int64_t align_samples() const override { return static_cast<int64_t>(run_pixels); }
    std::vector<int> output_bands() const override {
        return m_plan.map ? std::vector<int>{static_cast<int>(m_plan.metrics.size())} : std::vector<int>{};
    }
    uint64_t scratch_bytes(const stream::TileLimits& t) const override {
        return static_cast<uint64_t>(t.window_samples * t.window_lines) +
               (m_plan.ssim_map >= 0 ? SsimTile::bytes(t) : 0);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<Lane>(m_plan, limits);
    }
    void stop(stream::Worker& worker) override { m_all.add(static_cast<Lane&>(worker).gathered); }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        Gathered whole;
        whole.resize(m_all.sums.size(), m_all.ssim.size(), m_all.squares.size());
        for (const std::string& bytes : ranks.all("comparison", m_all.packed())) {
            Gathered part;
            part.unpack(bytes);
            whole.add(part);
        }
        m_all = std::move(whole);
    }
    Compared result() const override {
        Compared found;
        found.counts = m_all.counts;
        const auto n = static_cast<double>(m_all.counts.compared);
        for (size_t k = 0; k < m_all.sums.size(); ++k) {
            Summary s = m_all.best[k];
            s.mean = n == 0 ? nan : m_all.infinite[k] ? infinity : m_all.sums[k].value() / n;
            if (n == 0) s.maximum = nan;
            found.summaries.push_back(s);
        }
        for (const auto& s : m_all.ssim)
            found.ssim.push_back(n == 0 ? nan : s.value() / n);
        math::ExactSum all;
        for (const auto& s : m_all.squares) {
            all.add(s);
            found.band_rmse.push_back(n == 0 ? nan : std::sqrt(s.value() / n));
        }
        if (m_plan.squares)
            found.rmse = n == 0 ? nan : std::sqrt(all.value() / (n * static_cast<double>(m_plan.bands)));
        return found;
    }

  private:
    Plan m_plan;
    Gathered m_all;
};

} // namespace

const char* metric_name(Metric metric) { return names[static_cast<size_t>(metric)]; }

Metric parse_metric(const std::string& name) {
    for (size_t i = 0; i < names.size(); ++i)
        if (name == names[i]) return static_cast<Metric>(i);
    throw UsageError("-metric " + name + " is unknown",
                     "Metrics are nrmse, maxsde, sad, rmse, maxabs, ssim and sr.");
}

bool is_spectral(Metric metric) { return metric != Metric::ssim && metric != Metric::sr; }

std::unique_ptr<Scan<Compared>> make_comparison(int bands, const std::vector<Metric>& metrics, bool map,
                                                const Ranges& ranges, int parts) {
    Plan plan;
    plan.bands = bands;
    plan.parts = parts;
    plan.metrics = metrics;
    plan.map = map;
    plan.ranges = ranges;
    for (size_t k = 0; k < metrics.size(); ++k) {
        if (is_spectral(metrics[k])) {
            plan.spectral.push_back(metrics[k]);
            plan.spectral_map.push_back(static_cast<int>(k));
        } else if (metrics[k] == Metric::ssim) {
            plan.ssim_map = static_cast<int>(k);
        } else {
            throw Error("internal: a comparison cannot count zones");
        }
        plan.squares = plan.squares || metrics[k] == Metric::rmse;
        plan.second = plan.second || metrics[k] == Metric::nrmse || metrics[k] == Metric::sad;
    }
    if (plan.ssim_map >= 0 && ranges.first.size() != static_cast<size_t>(bands))
        throw Error("internal: ssim needs the range of every band");
    return std::make_unique<Comparison>(std::move(plan));
}

} // namespace hsi::compare
