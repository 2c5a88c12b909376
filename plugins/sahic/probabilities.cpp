// SPDX-License-Identifier: MIT
#include "sahic/probabilities.h"

#include "core/cube_view.h"
#include "sahic/spatial_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi::sahic {
void ProbabilityFacts::add(const ProbabilityFacts& o) {
    if (o.valid > 0) {
        least = valid > 0 ? std::min(least, o.least) : o.least;
        greatest = valid > 0 ? std::max(greatest, o.greatest) : o.greatest;
    }
    valid += o.valid;
    invalid += o.invalid;
    off += o.off;
    whole = whole && o.whole;
}

class ProbabilityPass::PassWorker final : public stream::Worker {
  public:
    explicit PassWorker(const ProbabilityPass& owner) : m_owner(owner) {
        if (owner.m_scene)
            m_weights.emplace(owner.m_shape.samples, owner.m_shape.lines, owner.m_scene->scale,
                              owner.m_scene->first_line, owner.m_scene->first_sample);
    }
    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const int64_t dy = tile.core.y - tile.window.y, dx = tile.core.x - tile.window.x;
        for (int64_t line = 0; line < tile.core.h; ++line) {
            const unsigned char* there = nullptr;
            if (m_weights) {
                const CubeView<const float> scene(in.row(m_owner.m_bands, 0), m_owner.m_scene->bands,
                                                  in.lines, in.samples, in.line_stride, in.band_stride);
                m_weights->weigh(tile, scene, line, out[1].row(0, line));
                there = m_weights->valid() + dx;
            } else {
                std::fill_n(out[1].row(0, line), tile.core.w, 1.0f);
            }
            for (int64_t x = 0; x < tile.core.w; ++x)
                pixel(in, line + dy, x + dx, out[0], line, x, there == nullptr || there[x] != 0);
        }
    }

    ProbabilityFacts facts;

  private:
    void pixel(const CubeView<float>& in, int64_t y, int64_t x, const CubeView<float>& out, int64_t line,
               int64_t sample, bool there) {
        const int bands = m_owner.m_bands;
        ProbabilityFacts one;
        double sum = 0;
        bool finite = there;
        for (int k = 0; finite && k < bands; ++k) {
            const auto v = static_cast<double>(in.at(k, y, x));
            finite = std::isfinite(v);
            one.whole = one.whole && std::floor(v) == v;
            one.least = k == 0 ? v : std::min(one.least, v);
            one.greatest = k == 0 ? v : std::max(one.greatest, v);
            sum += std::max(v, 0.0);
        }
        if (!finite || (bands > 1 && !(sum > 0))) {
            ++facts.invalid;
            for (int k = 0; k < m_owner.classes(); ++k)
                out.at(k, line, sample) = no_value;
            return;
        }
        one.valid = 1;
        if (bands == 1) {
            const double p = std::clamp(one.least, 0.0, 1.0);
            one.off = std::fabs(one.least - p) > 1e-3;
            out.at(0, line, sample) = static_cast<float>(p);
            out.at(1, line, sample) = static_cast<float>(1 - p);
        } else {
            one.off = std::fabs(sum - 1) > 1e-3;
            for (int k = 0; k < bands; ++k)
                out.at(k, line, sample) =
                    static_cast<float>(std::max(static_cast<double>(in.at(k, y, x)), 0.0) / sum);
        }
        facts.add(one);
    }

    const ProbabilityPass& m_owner;
    std::optional<SpatialWeights> m_weights;
};

ProbabilityPass::ProbabilityPass(const stream::CubeShape& shape, int bands, std::optional<WeightScene> scene)
    : m_shape(shape), m_bands(bands), m_scene(std::move(scene)) {}

uint64_t ProbabilityPass::scratch_bytes(const stream::TileLimits& limits) const {
    return m_scene ? static_cast<uint64_t>(16 * limits.window_samples) : 0;
}

std::unique_ptr<stream::Worker> ProbabilityPass::start(int, const stream::TileLimits&) {
    return std::make_unique<PassWorker>(*this);
}

void ProbabilityPass::stop(stream::Worker& worker) {
    m_facts.add(static_cast<const PassWorker&>(worker).facts);
}

} // namespace hsi::sahic
