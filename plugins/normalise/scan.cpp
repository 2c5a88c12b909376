// SPDX-License-Identifier: MIT
// Sums over fitted pixels. The sums of a block are doubles, added in the order of its pixels. The sums of
// blocks are added without rounding.
#include "core/error.h"
#include "math/exact_sum.h"
#include "normalise/pixels.h"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace hsi::normalise {
namespace {

constexpr stream::BlockShape block{128, 16};
constexpr size_t block_pixels = static_cast<size_t>(block.samples * block.lines);
constexpr size_t degrees = 91;

enum class Sums { terrain, brdf };

/// Data shared by all workers.
struct FitTask {
    SceneTask scene;
    Method method;
    Terrain terrain; ///< terrain correction that precedes the BRDF sums; may be empty
    Sums what = Sums::terrain;

    size_t bands() const { return static_cast<size_t>(scene.shape.bands); }
    size_t cells() const { return static_cast<size_t>(method.cells()); }
    /// Returns the number of sums. A terrain scan has c, c^2, and r and rc of each band. A BRDF scan has the
    /// shared sums of each cell, and four sums per band and cell.
    size_t sums() const {
        return what == Sums::terrain ? 2 + 2 * bands() : cells() * CellSums::width(bands());
    }
};

class FitWorker final : public stream::Worker {
  public:
    explicit FitWorker(const FitTask& task)
        : sums(task.sums()), count(task.what == Sums::brdf ? task.cells() : 1), m_task(task),
          m_pixels(m_task.scene, m_task.method), m_cells(task.what == Sums::brdf ? 4 * task.cells() : 0),
          m_shared(task.what == Sums::brdf ? CellSums::shared * task.cells() : 0) {
        m_fitted.reserve(block_pixels);
    }
    static uint64_t bytes(const FitTask& task) {
        return math::ExactSums::most_bytes(task.sums(), -200, 200) + block_pixels * sizeof(Fitted) +
               Pixels::bytes(block.samples);
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        stream::for_each_block(block, tile, in,
                               [&](const CubeView<float>& view, int64_t, int64_t) { take(view); });
    }

    math::ExactSums sums;
    std::vector<int64_t> count;
    PixelCounts counts;
    std::array<int64_t, degrees> slopes{};

  private:
    struct Fitted {
        ptrdiff_t at = 0; ///< offset from the first value of a band
        int cell = 0;
        float volume = 0, geometric = 0;
        double cos_i = 0, a = 0, factor[2] = {};
    };

    void take(const CubeView<float>& view) {
        m_fitted.clear();
        for (int64_t y = 0; y < view.lines; ++y) {
            m_pixels.look(view, y, m_task.what == Sums::brdf);
            for (size_t i = 0; i < m_pixels.count(); ++i)
                look_at(y * view.line_stride + static_cast<ptrdiff_t>(i), i);
        }
        if (m_fitted.empty()) return;
        if (m_task.what == Sums::terrain)
            add_terrain(view);
        else
            add_cells(view);
    }

    void look_at(ptrdiff_t at, size_t i) {
        const auto& p = m_pixels;
        ++(p.is(i, is_valid) ? counts.valid : counts.invalid);
        if (!p.is(i, is_usable)) {
            counts.without_angles += p.is(i, is_valid);
            return;
        }
        ++slopes[static_cast<size_t>(std::lround(p.tilt[i]))];
        counts.low_suns += p.zenith[i] > radians_limit;
        if (!p.is(i, is_in_range | is_lit)) return;
        const bool terrain = m_task.what == Sums::terrain;
        if (terrain && !(p.tilt[i] >= m_task.method.min_slope)) return;
        Fitted one{at, p.cell[i], p.volume[i], p.geometric[i], p.cos_i[i], p.a[i], {}};
        for (size_t k = 0; k < 2; ++k)
            one.factor[k] = p.factor[k][i];
        m_fitted.push_back(one);
        ++counts.fitted;
        ++count[terrain ? 0 : static_cast<size_t>(one.cell)];
        if (!terrain) add_shared(one, p.zenith[i]);
    }

    /// Adds the sums that all bands share.
    void add_shared(const Fitted& p, double zenith) {
        const double v = static_cast<double>(p.volume), g = static_cast<double>(p.geometric);
        const double terms[] = {v, g, v * v, v * g, g * g, zenith};
        double* const s = m_shared.data() + static_cast<size_t>(p.cell) * CellSums::shared;
        for (size_t j = 0; j < CellSums::shared; ++j)
            s[j] += terms[j];
    }

    /// Collects the band's values of fitted pixels as reflectance.
    void gather(const CubeView<float>& view, int b) {
        const Scaling scaling = scaling_of(m_task.scene, b);
        const float* const row = view.row(b, 0);
        m_values.resize(m_fitted.size());
        for (size_t i = 0; i < m_fitted.size(); ++i)
            m_values[i] = scaling.value(row[m_fitted[i].at]);
    }

    void add_terrain(const CubeView<float>& view) {
        double c = 0, cc = 0;
        m_cosines.resize(m_fitted.size());
        for (size_t i = 0; i < m_fitted.size(); ++i) {
            m_cosines[i] = static_cast<double>(static_cast<float>(m_fitted[i].cos_i));
            c += m_cosines[i];
            cc += m_cosines[i] * m_cosines[i];
        }
        std::vector<double> all{c, cc};
        for (int b = 0; b < m_task.scene.shape.bands; ++b) {
            gather(view, b);
            constexpr size_t lanes = 8;
            double r[lanes] = {}, rc[lanes] = {};
            size_t i = 0;
            for (; i + lanes <= m_values.size(); i += lanes)
                for (size_t k = 0; k < lanes; ++k) {
                    const double v = static_cast<double>(m_values[i + k]);
                    r[k] += v;
                    rc[k] += v * m_cosines[i + k];
                }
            for (size_t k = 0; i < m_values.size(); ++i, ++k) {
                const double v = static_cast<double>(m_values[i]);
                r[k] += v;
                rc[k] += v * m_cosines[i];
            }
            for (size_t k = 1; k < lanes; ++k) {
                r[0] += r[k];
                rc[0] += rc[k];
            }
            all.push_back(r[0]);
            all.push_back(rc[0]);
        }
        sums.add(0, all.data(), all.size());
    }

    /// Corrects r for terrain, which gives r'.
    void correct(int b) {
        const auto method = m_task.method.topography;
        if (method == Topography::none) return;
        if (!m_task.method.fits_topography()) {
            const size_t part = static_cast<size_t>(m_task.scene.below_720[static_cast<size_t>(b)]);
            for (size_t i = 0; i < m_values.size(); ++i)
                m_values[i] = static_cast<float>(static_cast<double>(m_values[i]) * m_fitted[i].factor[part]);
            return;
        }
        if (m_task.terrain.slope.empty()) return;
        const double m = m_task.terrain.slope[static_cast<size_t>(b)],
                     q = m_task.terrain.intercept[static_cast<size_t>(b)];
        if (m == 0) return;
        for (size_t i = 0; i < m_values.size(); ++i)
            m_values[i] = static_cast<float>(static_cast<double>(m_values[i]) *
                                             ((m * m_fitted[i].a + q) / (m * m_fitted[i].cos_i + q)));
    }

    void add_cells(const CubeView<float>& view) {
        const auto [low, high] =
            std::minmax_element(m_fitted.begin(), m_fitted.end(),
                                [](const Fitted& x, const Fitted& y) { return x.cell < y.cell; });
        const auto first = static_cast<size_t>(low->cell), end = static_cast<size_t>(high->cell) + 1;
        sums.add(first * CellSums::shared, m_shared.data() + first * CellSums::shared,
                 (end - first) * CellSums::shared);
        std::fill(m_shared.begin(), m_shared.end(), 0.0);
        for (int b = 0; b < m_task.scene.shape.bands; ++b) {
            gather(view, b);
            correct(b);
            std::fill(m_cells.begin(), m_cells.end(), 0.0);
            for (size_t i = 0; i < m_values.size(); ++i) {
                const Fitted& p = m_fitted[i];
                const double r = static_cast<double>(m_values[i]);
                double* const s = m_cells.data() + 4 * p.cell;
                s[0] += r;
                s[1] += r * static_cast<double>(p.volume);
                s[2] += r * static_cast<double>(p.geometric);
                s[3] += r * r;
            }
            sums.add(m_task.cells() * CellSums::shared +
                         (static_cast<size_t>(b) * m_task.cells() + first) * CellSums::per_band,
                     m_cells.data() + 4 * first, 4 * (end - first));
        }
    }

    const FitTask& m_task;
    Pixels m_pixels;
    std::vector<Fitted> m_fitted;
    std::vector<float> m_values;
    std::vector<double> m_cosines, m_cells;
    std::vector<double> m_shared; ///< one set of shared sums per cell of the block
};

class Scan final : public FitScan {
  public:
    explicit Scan(FitTask task)
        : m_task(std::move(task)), m_sums(m_task.sums()),
          m_count(m_task.what == Sums::brdf ? m_task.cells() : 1) {}
    int64_t align_samples() const override { return block.samples; }
    int64_t align_lines() const override { return block.lines; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override { return FitWorker::bytes(m_task); }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<FitWorker>(m_task);
    }
    void stop(stream::Worker& worker) override {
        const auto& one = static_cast<const FitWorker&>(worker);
        m_sums.add(one.sums);
        m_counts.add(one.counts);
        for (size_t k = 0; k < m_count.size(); ++k)
            m_count[k] += one.count[k];
        for (size_t k = 0; k < degrees; ++k)
            m_slopes[k] += one.slopes[k];
    }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        stream::unite(ranks, "sums of normalisation", m_sums);
        exchange_counts(ranks, m_counts);
        for (auto& n : m_count)
            n = ranks.sum("pixels of a cell", n);
        for (auto& n : m_slopes)
            n = ranks.sum("pixels of a slope", n);
    }
    static void exchange_counts(parallel::Group& ranks, PixelCounts& c) {
        for (int64_t* n : {&c.valid, &c.invalid, &c.without_angles, &c.fitted, &c.low_suns})
            *n = ranks.sum("pixels of normalisation", *n);
    }
    const PixelCounts& counts() const override { return m_counts; }
    const std::array<int64_t, degrees>& slopes() const override { return m_slopes; }

    TerrainSums terrain() const override {
        TerrainSums t;
        t.pixels = m_count[0];
        t.c = m_sums.value(0);
        t.cc = m_sums.value(1);
        for (size_t b = 0; b < m_task.bands(); ++b) {
            t.r.push_back(m_sums.value(2 + 2 * b));
            t.rc.push_back(m_sums.value(3 + 2 * b));
        }
        return t;
    }
    CellSums cells() const override {
        CellSums made;
        made.count = m_count;
        made.sums.resize(m_task.cells());
        for (size_t k = 0; k < m_task.cells(); ++k) {
            if (m_count[k] == 0) continue;
            for (size_t j = 0; j < CellSums::shared; ++j)
                made.sums[k].push_back(m_sums.value(k * CellSums::shared + j) + 0.0);
            const size_t base = m_task.cells() * CellSums::shared;
            for (size_t b = 0; b < m_task.bands(); ++b)
                for (size_t j = 0; j < CellSums::per_band; ++j)
                    made.sums[k].push_back(
                        m_sums.value(base + (b * m_task.cells() + k) * CellSums::per_band + j) + 0.0);
        }
        return made;
    }

  private:
    const FitTask m_task;
    math::ExactSums m_sums;
    std::vector<int64_t> m_count;
    PixelCounts m_counts;
    std::array<int64_t, degrees> m_slopes{};
};

} // namespace

void PixelCounts::add(const PixelCounts& o) {
    valid += o.valid;
    invalid += o.invalid;
    without_angles += o.without_angles;
    fitted += o.fitted;
    terrain += o.terrain;
    brdf += o.brdf;
    without_model += o.without_model;
    low_suns += o.low_suns;
}

std::unique_ptr<FitScan> make_terrain_scan(const SceneTask& task, const Method& method) {
    return std::make_unique<Scan>(FitTask{task, method, {}, Sums::terrain});
}
std::unique_ptr<FitScan> make_brdf_scan(const SceneTask& task, const Method& method, const Terrain& terrain) {
    return std::make_unique<Scan>(FitTask{task, method, terrain, Sums::brdf});
}

} // namespace hsi::normalise
