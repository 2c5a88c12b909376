// SPDX-License-Identifier: MIT
// Class probabilities by multinomial logistic regression (MLR) on the processor.
#include "core/cube_view.h"
#include "core/error.h"
#include "math/rbf_sums.h"
#include "parallel/group.h"
#include "sahic/sahic.h"
#include "sahic/sahic_simd.h"
#include "sahic/spatial_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi::sahic {
namespace {

/// The regressors in the layout of the kernels.
struct MlrPanels {
    explicit MlrPanels(const MlrModel& model);
    int features() const { return sums.features(); }
    /// Returns the number of classes minus 1.
    int outputs() const { return sums.outputs(); }

    math::RbfPanels sums;         ///< sums over the scaled anchors
    std::vector<double> constant; ///< constant of each output
};

MlrPanels::MlrPanels(const MlrModel& model) : sums(model.features(), model.class_count() - 1, model.gamma()) {
    const auto n = static_cast<size_t>(features()), count = static_cast<size_t>(model.anchor_count());
    sums.append(
        count,
        [&](size_t a, size_t f) { return static_cast<double>(model.anchors[a * n + f]) / model.scale; },
        [&](size_t o, size_t a) { return model.weights[o * (count + 1) + 1 + a]; });
    for (size_t o = 0; o < static_cast<size_t>(outputs()); ++o)
        constant.push_back(model.weights[o * (count + 1)]);
}

/// The scratch memory of one thread.
struct Scratch {
    std::vector<double> x, x2, logits, p;
    Scratch(const MlrPanels& panels, int width)
        : x(static_cast<size_t>(panels.features()) * static_cast<size_t>(width)),
          x2(static_cast<size_t>(width)), logits(static_cast<size_t>(panels.outputs() * width)),
          p(static_cast<size_t>((panels.outputs() + 1) * width)) {}
};

/// Computes probabilities of the pixels [first, first + count) of a line into scratch.p; count <= width.
void evaluate(const MlrPanels& panels, double scale, const CubeView<const float>& in, int64_t line,
              int64_t first, int count, const unsigned char* valid, Scratch& s) {
    const auto& rbf = math::rbf_kernels();
    const int width = rbf.width;
    std::fill(s.x2.begin(), s.x2.end(), 0.0);
    for (int f = 0; f < panels.features(); ++f) {
        const float* v = in.row(f, line) + first;
        double* x = s.x.data() + static_cast<int64_t>(f) * width;
        for (int i = 0; i < count; ++i) {
            x[i] = valid[first + i] ? static_cast<double>(v[i]) / scale : 0.0;
            s.x2[static_cast<size_t>(i)] += x[i] * x[i];
        }
        for (int i = count; i < width; ++i)
            x[i] = 0;
    }
    for (size_t o = 0; o < panels.constant.size(); ++o)
        std::fill_n(s.logits.begin() + static_cast<ptrdiff_t>(o) * width, width, panels.constant[o]);
    rbf.add_sums(panels.sums, 0, panels.sums.groups(), s.x.data(), s.x2.data(), s.logits.data());
    softmax(panels.outputs(), width, s.logits.data(), s.p.data());
}

bool any(const unsigned char* valid, int count) {
    return std::any_of(valid, valid + count, [](unsigned char v) { return v != 0; });
}

struct Shared {
    std::shared_ptr<const MlrModel> model;
    SpectralOptions options;
    MlrPanels panels;
    int64_t samples = 0, lines = 0;
};

class SpectralWorker final : public stream::Worker {
  public:
    explicit SpectralWorker(std::shared_ptr<const Shared> shared)
        : by_class(shared->model->classes.size(), 0), m_shared(std::move(shared)),
          m_width(math::rbf_kernels().width), m_scratch(m_shared->panels, m_width),
          m_weights(m_shared->samples, m_shared->lines, m_shared->model->scale, m_shared->options.first_line,
                    m_shared->options.first_sample) {}

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const SpectralOptions& o = m_shared->options;
        size_t next = 0;
        m_map = o.map ? &out[next++] : nullptr;
        m_probabilities = o.probabilities ? &out[next++] : nullptr;
        m_confidence = o.confidence ? &out[next++] : nullptr;
        const CubeView<float>* weight = o.weight ? &out[next++] : nullptr;
        const int64_t dy = tile.core.y - tile.window.y, dx = tile.core.x - tile.window.x;
        for (int64_t line = 0; line < tile.core.h; ++line) {
            if (weight)
                m_weights.weigh(tile, in, line, weight->row(0, line));
            else
                m_weights.find_valid(in, line + dy);
            for (int64_t first = 0; first < tile.core.w; first += m_width)
                block(in, line, first, static_cast<int>(std::min<int64_t>(m_width, tile.core.w - first)), dy,
                      dx);
        }
    }

    std::vector<int64_t> by_class;
    int64_t invalid = 0;

  private:
    void block(const CubeView<float>& in, int64_t line, int64_t first, int count, int64_t dy, int64_t dx) {
        const unsigned char* valid = m_weights.valid() + dx + first;
        const int classes = m_shared->model->class_count(), width = m_width;
        if (any(valid, count))
            evaluate(m_shared->panels, m_shared->model->scale, in, line + dy, dx + first, count,
                     m_weights.valid(), m_scratch);
        const double* p = m_scratch.p.data();
        for (int i = 0; i < count; ++i) {
            const int64_t at = first + i;
            if (!valid[i]) {
                ++invalid;
                if (m_map) m_map->row(0, line)[at] = no_value;
                if (m_confidence) m_confidence->row(0, line)[at] = no_value;
                continue;
            }
            int best = 0;
            for (int c = 1; c < classes; ++c)
                if (p[c * width + i] > p[best * width + i]) best = c;
            ++by_class[static_cast<size_t>(best)];
            if (m_map)
                m_map->row(0, line)[at] =
                    static_cast<float>(m_shared->model->classes[static_cast<size_t>(best)].value);
            if (m_confidence) m_confidence->row(0, line)[at] = static_cast<float>(p[best * width + i]);
        }
        if (!m_probabilities) return;
        for (int c = 0; c < classes; ++c) {
            float* to = m_probabilities->row(c, line) + first;
            for (int i = 0; i < count; ++i)
                to[i] = valid[i] ? static_cast<float>(p[c * width + i]) : no_value;
        }
    }

    std::shared_ptr<const Shared> m_shared;
    const int m_width; ///< number of pixels that are evaluated together
    Scratch m_scratch;
    SpatialWeights m_weights;
    const CubeView<float>*m_map = nullptr, *m_probabilities = nullptr, *m_confidence = nullptr;
};

class CpuSpectralPass final : public SpectralPass {
  public:
    CpuSpectralPass(std::shared_ptr<const MlrModel> model, SpectralOptions options, int64_t samples,
                    int64_t lines)
        : SpectralPass(std::move(model), std::move(options), samples, lines) {
        m_shared =
            std::make_shared<const Shared>(Shared{m_model, m_options, MlrPanels(*m_model), samples, lines});
    }
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    uint64_t scratch_bytes(const stream::TileLimits& l) const override {
        return static_cast<uint64_t>(8 * math::rbf_kernels().width *
                                         (m_model->features() + 2 * m_model->class_count()) +
                                     32 * l.window_samples);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<SpectralWorker>(m_shared);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const SpectralWorker&>(worker);
        count(w.by_class, w.invalid);
    }

  private:
    std::shared_ptr<const Shared> m_shared;
};

} // namespace

SpectralPass::SpectralPass(std::shared_ptr<const MlrModel> model, SpectralOptions options, int64_t samples,
                           int64_t lines)
    : m_model(std::move(model)), m_options(std::move(options)), m_samples(samples), m_lines(lines),
      m_by_class(m_model->classes.size(), 0) {
    const auto bands = static_cast<size_t>(m_model->features());
    if (!m_options.first_line.empty() &&
        (m_options.first_line.size() != bands * static_cast<size_t>(samples) ||
         m_options.first_sample.size() != bands * static_cast<size_t>(lines)))
        throw Error("internal: the border of the scene has another size than the scene");
}

std::vector<int> SpectralPass::output_bands() const {
    std::vector<int> bands;
    if (m_options.map) bands.push_back(1);
    if (m_options.probabilities) bands.push_back(m_model->class_count());
    if (m_options.confidence) bands.push_back(1);
    if (m_options.weight) bands.push_back(1);
    return bands;
}

void SpectralPass::exchange(parallel::Group& ranks) {
    ranks.add_up("classes", m_by_class);
    m_invalid = ranks.sum("invalid pixels", m_invalid);
}

void SpectralPass::count(const std::vector<int64_t>& by_class, int64_t invalid) {
    for (size_t c = 0; c < m_by_class.size(); ++c)
        m_by_class[c] += by_class[c];
    m_invalid += invalid;
}

std::unique_ptr<SpectralPass> make_spectral_pass(std::shared_ptr<const MlrModel> model,
                                                 const SpectralOptions& options, int64_t samples,
                                                 int64_t lines) {
    return std::make_unique<CpuSpectralPass>(std::move(model), options, samples, lines);
}

const char* simd_target() { return math::rbf_kernels().target; }

} // namespace hsi::sahic
