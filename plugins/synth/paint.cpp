// SPDX-License-Identifier: MIT
// Synthetic scenes and their label maps as sources and operations.
#include "synth/synth.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::synth {
namespace {

class SceneReader final : public stream::CubeReader {
  public:
    explicit SceneReader(std::shared_ptr<const MadeScene> scene) : m_scene(std::move(scene)) {}
    void read(const Rect& window, const CubeView<float>& dst) override {
        m_scene->paint(window, dst, {});
        const Options& o = m_scene->options();
        // The nodata stripe; readers see nodata as NaN.
        const Rect stripe = intersect(window, Rect{o.stripe_first, window.y, o.stripe_width, window.h});
        for (int b = 0; !stripe.empty() && b < dst.bands; ++b)
            for (int64_t line = 0; line < window.h; ++line) {
                float* row = dst.row(b, line) + (stripe.x - window.x);
                std::fill(row, row + stripe.w, std::numeric_limits<float>::quiet_NaN());
            }
    }

  private:
    std::shared_ptr<const MadeScene> m_scene;
};

class EmptyReader final : public stream::CubeReader {
  public:
    void read(const Rect&, const CubeView<float>&) override {}
};

class Painter final : public stream::Operation {
  public:
    Painter(std::shared_ptr<const MadeScene> scene, bool labels, bool trait)
        : m_scene(std::move(scene)), m_labels(labels), m_trait(trait) {}
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override {
        std::vector<int> bands{m_scene->options().bands};
        if (m_labels) bands.push_back(1);
        if (m_trait) bands.push_back(1);
        return bands;
    }
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        struct Lane final : stream::Worker {
            explicit Lane(const Painter& p) : owner(p) {}
            void process(const Tile& tile, const CubeView<float>&,
                         const std::vector<CubeView<float>>& out) override {
                owner.m_scene->paint(tile.core, out[0], owner.m_labels ? out[1] : CubeView<float>{},
                                     owner.m_trait ? out.back() : CubeView<float>{});
            }
            const Painter& owner;
        };
        return std::make_unique<Lane>(*this);
    }

  private:
    std::shared_ptr<const MadeScene> m_scene;
    bool m_labels, m_trait;
};

} // namespace

std::unique_ptr<stream::CubeReader> SceneSource::open_reader() const {
    return std::make_unique<SceneReader>(m_scene);
}
std::unique_ptr<stream::CubeReader> Canvas::open_reader() const { return std::make_unique<EmptyReader>(); }

std::unique_ptr<stream::Operation> make_painter(std::shared_ptr<const MadeScene> scene, bool labels,
                                                bool trait) {
    return std::make_unique<Painter>(std::move(scene), labels, trait);
}

} // namespace hsi::synth
