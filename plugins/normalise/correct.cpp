// SPDX-License-Identifier: MIT
#include "math/elementary.h"
#include "normalise/pixels.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::normalise {
namespace {

constexpr float no_value = std::numeric_limits<float>::quiet_NaN();

/// A BRDF model at the centre of a bin, and what it differs by at the centre of the next.
struct Node {
    double volume = 0, geometric = 0, isotropic = 0, nadir = 0;
    double to_volume = 0, to_geometric = 0, to_isotropic = 0, to_nadir = 0;
};

/// What all workers share.
struct CorrectionTask {
    SceneTask scene;
    Method method;
    Terrain terrain;
    std::vector<double> centres;          ///< of used bins, rising
    std::vector<std::vector<Node>> nodes; ///< bands x intervals between centres; empty: no BRDF

    bool brdf() const { return !nodes.empty(); }
};

CorrectionTask task_of(const SceneTask& scene, const Method& method, const Terrain& terrain,
                       const std::vector<Bin>& bins, double common_zenith) {
    CorrectionTask task{scene, method, terrain, {}, {}};
    if (method.brdf == Brdf::none) return task;
    std::vector<const Bin*> used;
    for (const Bin& bin : bins)
        if (bin.used) {
            used.push_back(&bin);
            task.centres.push_back(bin.centre());
        }
    const auto nadir = kernels(method, common_zenith * degree, 0, 0);
    for (size_t b = 0; b < static_cast<size_t>(scene.shape.bands); ++b) {
        const auto node_of = [&](const Bin& bin) {
            Node node{bin.volume[b], bin.geometric[b], bin.isotropic[b]};
            node.nadir = node.volume * nadir[0] + node.geometric * nadir[1] + node.isotropic;
            return node;
        };
        std::vector<Node> list;
        for (size_t k = 0; k < std::max<size_t>(used.size() - 1, 1); ++k) {
            Node node = node_of(*used[k]);
            if (used.size() > 1) {
                const Node next = node_of(*used[k + 1]);
                node.to_volume = next.volume - node.volume;
                node.to_geometric = next.geometric - node.geometric;
                node.to_isotropic = next.isotropic - node.isotropic;
                node.to_nadir = next.nadir - node.nadir;
            }
            list.push_back(node);
        }
        task.nodes.push_back(std::move(list));
    }
    return task;
}

class CorrectionWorker final : public stream::Worker {
  public:
    CorrectionWorker(const CorrectionTask& task, int64_t samples)
        : m_task(task), m_pixels(m_task.scene, m_task.method), m_interval(static_cast<size_t>(samples)),
          m_between(m_interval.size()) {}
    static uint64_t bytes(int64_t samples) {
        return Pixels::bytes(samples) + static_cast<uint64_t>(samples) * 16;
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        for (int64_t y = 0; y < in.lines; ++y) {
            m_pixels.look(in, y, m_task.brdf());
            look();
            for (int b = 0; b < m_task.scene.shape.bands; ++b)
                correct(b, in.row(b, y), out[0].row(b, y));
        }
    }
    PixelCounts counts;

  private:
    /// What a pixel gets: the same for all bands.
    void look() {
        const auto& p = m_pixels;
        m_terrain.clear();
        m_brdf.clear();
        const bool any_terrain = m_task.method.topography != Topography::none &&
                                 !(m_task.method.fits_topography() && m_task.terrain.slope.empty());
        for (size_t i = 0; i < p.count(); ++i) {
            ++(p.is(i, is_valid) ? counts.valid : counts.invalid);
            counts.without_angles += p.is(i, is_valid) && !p.is(i, is_usable);
            if (!p.is(i, is_in_range)) continue;
            if (any_terrain && p.is(i, is_lit)) m_terrain.push_back(i);
            if (!m_task.brdf()) continue;
            m_brdf.push_back(i);
            place(i);
        }
        counts.terrain += static_cast<int64_t>(m_terrain.size());
        counts.brdf += static_cast<int64_t>(m_brdf.size());
    }
    /// Between which centres of bins NDVI lies, beyond the outer ones the last two.
    void place(size_t i) {
        const auto& c = m_task.centres;
        m_interval[i] = 0;
        m_between[i] = 0;
        if (c.size() < 2) return;
        const auto after = std::upper_bound(c.begin() + 1, c.end() - 1, m_pixels.ndvi[i]);
        const auto k = static_cast<size_t>(after - c.begin()) - 1;
        m_interval[i] = static_cast<int>(k);
        m_between[i] = (m_pixels.ndvi[i] - c[k]) / (c[k + 1] - c[k]);
    }

    void correct(int b, const float* in, float* out) {
        const auto& p = m_pixels;
        for (size_t i = 0; i < p.count(); ++i)
            out[i] = p.is(i, is_usable) ? in[i] : no_value;
        if (m_terrain.empty() && m_brdf.empty()) return;
        const Scaling scaling = scaling_of(m_task.scene, b);
        m_values.resize(p.count());
        for (size_t i = 0; i < p.count(); ++i)
            m_values[i] = scaling.value(in[i]);
        if (!m_terrain.empty()) flatten(b);
        if (!m_brdf.empty()) turn_to_nadir(b);
        // A pixel that is in m_terrain alone is not in range of BRDF, which cannot be: both ask for the
        // range.
        for (const size_t i : m_brdf.empty() ? m_terrain : m_brdf)
            if (const float v = m_values[i]; v != scaling.value(in[i]))
                out[i] = scaling.stored(static_cast<double>(v));
    }

    void flatten(int b) {
        const auto& p = m_pixels;
        if (!m_task.method.fits_topography()) {
            const auto& factor =
                p.factor[static_cast<size_t>(m_task.scene.below_720[static_cast<size_t>(b)])];
            for (const size_t i : m_terrain)
                m_values[i] = static_cast<float>(static_cast<double>(m_values[i]) * factor[i]);
            return;
        }
        const double m = m_task.terrain.slope[static_cast<size_t>(b)],
                     q = m_task.terrain.intercept[static_cast<size_t>(b)];
        if (m == 0) return;
        for (const size_t i : m_terrain)
            m_values[i] = static_cast<float>(static_cast<double>(m_values[i]) *
                                             ((m * p.a[i] + q) / (m * p.cos_i[i] + q)));
    }

    void turn_to_nadir(int b) {
        const auto& p = m_pixels;
        const Node* const nodes = m_task.nodes[static_cast<size_t>(b)].data();
        for (const size_t i : m_brdf) {
            const Node& n = nodes[m_interval[i]];
            const double t = m_between[i];
            const double there = (n.volume + t * n.to_volume) * static_cast<double>(p.volume[i]) +
                                 (n.geometric + t * n.to_geometric) * static_cast<double>(p.geometric[i]) +
                                 (n.isotropic + t * n.to_isotropic);
            const double nadir = n.nadir + t * n.to_nadir;
            if (there > 0 && nadir > 0)
                m_values[i] = static_cast<float>(static_cast<double>(m_values[i]) * (nadir / there));
            else
                ++counts.without_model;
        }
    }

    const CorrectionTask& m_task;
    Pixels m_pixels;
    std::vector<int> m_interval;
    std::vector<double> m_between;
    std::vector<size_t> m_terrain, m_brdf; ///< pixels that are corrected
    std::vector<float> m_values;
};

class CpuCorrection final : public Correction {
  public:
    explicit CpuCorrection(CorrectionTask task) : m_task(std::move(task)) {}
    std::vector<int> output_bands() const override { return {m_task.scene.shape.bands}; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return CorrectionWorker::bytes(limits.window_samples);
    }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<CorrectionWorker>(m_task, limits.window_samples);
    }
    void stop(stream::Worker& worker) override {
        m_counts.add(static_cast<const CorrectionWorker&>(worker).counts);
    }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        auto& c = m_counts;
        for (int64_t* n : {&c.valid, &c.invalid, &c.without_angles, &c.terrain, &c.brdf, &c.without_model})
            *n = ranks.sum("pixels of normalisation", *n);
    }

  private:
    const CorrectionTask m_task;
};

/// Angles as they are used.
class Angles final : public stream::Operation {
  public:
    Angles(AngleInputs inputs, std::vector<Angle> wanted)
        : m_inputs(std::move(inputs)), m_wanted(std::move(wanted)) {}
    std::vector<int> output_bands() const override { return {static_cast<int>(m_wanted.size())}; }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<AnglesWorker>(*this);
    }
    bool divides() const override { return true; }

  private:
    struct AnglesWorker final : stream::Worker {
        explicit AnglesWorker(const Angles& all) : m_all(all) {}
        void process(const Tile&, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            for (size_t k = 0; k < m_all.m_wanted.size(); ++k)
                for (int64_t y = 0; y < in.lines; ++y)
                    for (int64_t x = 0; x < in.samples; ++x) {
                        double v = value_of(m_all.m_inputs[m_all.m_wanted[k]], in, y, x, 0);
                        if (m_all.m_wanted[k] == view::aspect && std::isnan(v) &&
                            value_of(m_all.m_inputs[view::slope], in, y, x, 0) == 0)
                            v = 0;
                        out[0].row(static_cast<int>(k), y)[x] = static_cast<float>(v);
                    }
        }
        const Angles& m_all;
    };
    const AngleInputs m_inputs;
    const std::vector<Angle> m_wanted;
};

} // namespace

std::unique_ptr<Correction> make_correction(const SceneTask& task, const Method& method,
                                            const Terrain& terrain, const std::vector<Bin>& bins,
                                            double zenith) {
    return std::make_unique<CpuCorrection>(task_of(task, method, terrain, bins, zenith));
}

std::unique_ptr<stream::Operation> make_angles(const AngleInputs& angles, const std::vector<Angle>& wanted) {
    return std::make_unique<Angles>(angles, wanted);
}

} // namespace hsi::normalise
