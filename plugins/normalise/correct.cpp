// SPDX-License-Identifier: MIT
// Corrects pixels for topography and BRDF.
#include "core/cube_view.h"
#include "math/elementary.h"
#include "normalise/pixels.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace hsi::normalise {
namespace {

/// The BRDF model at the centre of a bin, and the difference to the next bin.
struct Node {
    double volume = 0, geometric = 0, isotropic = 0, nadir = 0;
    double to_volume = 0, to_geometric = 0, to_isotropic = 0, to_nadir = 0;
};

/// Data shared by all workers.
struct CorrectionTask {
    SceneTask scene;
    Method method;
    Terrain terrain;
    std::vector<double> centres;          ///< centres of the used bins, in rising order
    std::vector<std::vector<Node>> nodes; ///< bands x intervals between centres; empty: no BRDF correction
    std::optional<OfHyTools> hytools;     ///< null: the model is not from HyTools and has no separate limits

    bool brdf() const { return !nodes.empty(); }
};

CorrectionTask task_of(const SceneTask& scene, const Method& method, const Terrain& terrain,
                       const std::vector<Bin>& bins, double common_zenith) {
    CorrectionTask task{scene, method, terrain, {}, {}, {}};
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
    explicit CorrectionWorker(const CorrectionTask& task)
        : m_task(task), m_pixels(m_task.scene, m_task.method) {}
    static uint64_t bytes(int64_t samples) {
        return Pixels::bytes(samples) + static_cast<uint64_t>(samples) * sizeof(InRange);
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
    /// A pixel in range, with the values that all bands share. `a` and `cos_i` are 1 if terrain is not
    /// corrected.
    struct InRange {
        size_t at;
        /// Index of the two bin centres around the pixel's NDVI. Beyond the outer centres, the nearest two
        /// are used.
        int interval;
        bool turns; ///< true if the pixel's BRDF is corrected
        double between, a, cos_i, volume, geometric, factor[2];
    };

    void look() {
        const auto& p = m_pixels;
        m_in_range.clear();
        m_all_usable = true;
        const bool terrain = m_task.method.topography != Topography::none &&
                             !(m_task.method.fits_topography() && m_task.terrain.slope.empty());
        for (size_t i = 0; i < p.count(); ++i) {
            ++(p.is(i, is_valid) ? counts.valid : counts.invalid);
            const bool usable = p.is(i, is_usable);
            counts.without_angles += p.is(i, is_valid) && !usable;
            m_all_usable = m_all_usable && usable;
            const auto& own = m_task.hytools;
            const bool flat =
                terrain && (own ? usable && within(own->topography, i) : p.is(i, is_in_range | is_lit));
            const bool turns = m_task.brdf() && (own ? usable && within(own->brdf, i) : p.is(i, is_in_range));
            if (!flat && !turns) continue;
            InRange one{i,
                        0,
                        turns,
                        0,
                        1,
                        1,
                        static_cast<double>(p.volume[i]),
                        static_cast<double>(p.geometric[i]),
                        {1, 1}};
            if (flat) {
                one.a = p.a[i];
                one.cos_i = p.cos_i[i];
                one.factor[0] = p.factor[0][i];
                one.factor[1] = p.factor[1][i];
            }
            place(one, p.ndvi[i]);
            m_in_range.push_back(one);
            counts.terrain += flat;
            counts.brdf += turns;
        }
    }
    bool within(const std::vector<Limit>& limits, size_t i) const {
        const auto& p = m_pixels;
        return std::all_of(limits.begin(), limits.end(), [&](const Limit& limit) {
            const double v = limit.of == Limit::ndvi    ? p.ndvi[i]
                             : limit.of == Limit::slope ? p.tilt[i]
                             : limit.of == Limit::cos_i ? p.cos_i[i]
                                                        : p.zenith[i];
            return v >= limit.least && v <= limit.most;
        });
    }
    void place(InRange& pixel, double ndvi) const {
        const auto& c = m_task.centres;
        if (c.size() < 2) return;
        const auto after = std::upper_bound(c.begin() + 1, c.end() - 1, ndvi);
        const auto k = static_cast<size_t>(after - c.begin()) - 1;
        pixel.interval = static_cast<int>(k);
        pixel.between = (ndvi - c[k]) / (c[k + 1] - c[k]);
    }

    void correct(int b, const float* in, float* out) {
        if (m_all_usable)
            std::copy_n(in, m_pixels.count(), out);
        else
            for (size_t i = 0; i < m_pixels.count(); ++i)
                out[i] = m_pixels.is(i, is_usable) ? in[i] : no_value;
        const Scaling scaling = scaling_of(m_task.scene, b);
        for (const InRange& pixel : m_in_range) {
            const float before = scaling.value(in[pixel.at]);
            const float flat = static_cast<float>(static_cast<double>(before) * terrain_factor(b, pixel));
            const float after = pixel.turns ? turned(b, pixel, flat) : flat;
            if (after != before) out[pixel.at] = scaling.stored(static_cast<double>(after));
        }
    }
    double terrain_factor(int b, const InRange& pixel) const {
        const auto band = static_cast<size_t>(b);
        if (!m_task.method.fits_topography())
            return pixel.factor[static_cast<size_t>(m_task.scene.below_720[band])];
        if (m_task.terrain.slope.empty() || m_task.terrain.slope[band] == 0) return 1;
        const double m = m_task.terrain.slope[band], q = m_task.terrain.intercept[band];
        return (m * pixel.a + q) / (m * pixel.cos_i + q);
    }
    /// Returns r' converted to a nadir view and the common solar zenith.
    float turned(int b, const InRange& pixel, float flat) {
        const Node& n = m_task.nodes[static_cast<size_t>(b)][static_cast<size_t>(pixel.interval)];
        const double t = pixel.between;
        const double there = (n.volume + t * n.to_volume) * pixel.volume +
                             (n.geometric + t * n.to_geometric) * pixel.geometric +
                             (n.isotropic + t * n.to_isotropic);
        const double nadir = n.nadir + t * n.to_nadir;
        if (there > 0 && nadir > 0) return static_cast<float>(static_cast<double>(flat) * (nadir / there));
        ++counts.without_model;
        return flat;
    }

    const CorrectionTask& m_task;
    Pixels m_pixels;
    std::vector<InRange> m_in_range;
    bool m_all_usable = true;
};

class CpuCorrection final : public Correction {
  public:
    explicit CpuCorrection(CorrectionTask task) : m_task(std::move(task)) {}
    std::vector<int> output_bands() const override { return {m_task.scene.shape.bands}; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return CorrectionWorker::bytes(limits.window_samples);
    }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<CorrectionWorker>(m_task);
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

/// Writes the angles that the correction uses.
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
                                            double zenith, const OfHyTools* hytools) {
    auto made = task_of(task, method, terrain, bins, zenith);
    if (hytools != nullptr) made.hytools = *hytools;
    return std::make_unique<CpuCorrection>(std::move(made));
}

std::unique_ptr<stream::Operation> make_angles(const AngleInputs& angles, const std::vector<Angle>& wanted) {
    return std::make_unique<Angles>(angles, wanted);
}

} // namespace hsi::normalise
