// SPDX-License-Identifier: MIT
// The pass that applies regression models to pixels on the processor.
#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"
#include "regression/regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::regression {
namespace {

constexpr float no_estimate = std::numeric_limits<float>::quiet_NaN();

const double* given(const std::vector<double>& list) { return list.empty() ? nullptr : list.data(); }

class EstimateWorker final : public stream::Worker {
  public:
    EstimateWorker(std::shared_ptr<const std::vector<Part>> parts, size_t count)
        : counts(count), m_parts(std::move(parts)), m_buffers(m_parts->size()) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        // The pixels are packed, since the window equals the core.
        const int64_t pixels = in.lines * in.samples;
        const auto width = static_cast<int64_t>(Fitted::width());
        counts[0] += pixels;
        for (int64_t first = 0; first < pixels; first += width)
            for (size_t m = 0; m < m_parts->size(); ++m)
                block(m, in, first, static_cast<size_t>(std::min(width, pixels - first)), out.front());
    }

    std::vector<int64_t> counts;

  private:
    void block(size_t m, const CubeView<float>& in, int64_t first, size_t count, const CubeView<float>& out) {
        const Part& part = (*m_parts)[m];
        Fitted::Buffers& b = m_buffers[m];
        m_pixels.start(count);
        for (const size_t source : part.sources)
            m_pixels.look(in.data + static_cast<int64_t>(source) * in.band_stride + first);
        if (m_pixels.judge() > 0) {
            b.x.resize(part.inputs.bands.size() * Fitted::width());
            math::row_kernels().load(part.inputs.bands, given(part.inputs.scale), given(part.inputs.offset),
                                     in.data + first, in.band_stride, count, b.x.data());
            part.fitted.evaluate(b);
        }
        for (size_t i = 0; i < count; ++i) {
            const bool valid = m_pixels.is_valid(i), made = valid && b.defined[i] != 0;
            float* const to =
                out.data + static_cast<int64_t>(3 * m) * out.band_stride + first + static_cast<int64_t>(i);
            to[0] = made ? static_cast<float>(b.estimate[i]) : no_estimate;
            to[out.band_stride] = made ? static_cast<float>(b.deviation[i]) : no_estimate;
            to[2 * out.band_stride] = made ? static_cast<float>(b.outside[i]) : no_estimate;
            int64_t* const of_model = counts.data() + 1 + 4 * m;
            of_model[0] += made;
            of_model[1] += valid && !made;
            of_model[2] += made && b.outside[i] > 0;
            of_model[3] += made && b.outside[i] > 1 &&
                           part.fitted.is_of_another_scale(m_pixels.greatest(i) * part.scale);
        }
    }

    const std::shared_ptr<const std::vector<Part>> m_parts;
    std::vector<Fitted::Buffers> m_buffers;
    PixelRow m_pixels;
};

class CpuEstimation final : public Estimation {
  public:
    using Estimation::Estimation;
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        uint64_t bytes = 0;
        for (const Part& part : *m_parts)
            bytes += part.fitted.buffer_bytes();
        return bytes;
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<EstimateWorker>(m_parts, count_of(*m_parts));
    }
    void stop(stream::Worker& worker) override { add(static_cast<const EstimateWorker&>(worker).counts); }
};

} // namespace

Part::Part(Applied applied, int bands) : fitted(applied.model), inputs(std::move(applied.inputs)) {
    std::vector<char> used(static_cast<size_t>(bands));
    for (const auto& band : inputs.bands)
        for (const size_t source : band.sources) {
            if (source >= used.size()) throw Error("internal: a band of a regression model has no source");
            used[source] = 1;
        }
    for (size_t b = 0; b < used.size(); ++b) {
        if (used[b] == 0) continue;
        sources.push_back(b);
        if (!inputs.scale.empty()) scale = std::max(scale, std::fabs(inputs.scale[b]));
    }
    if (inputs.scale.empty()) scale = 1;
}

Estimation::Estimation(int inputs, std::vector<Applied> models) {
    auto parts = std::make_shared<Parts>();
    for (Applied& one : models)
        parts->emplace_back(std::move(one), inputs);
    m_counts.assign(count_of(*parts), 0);
    m_parts = std::move(parts);
}

void Estimation::add(const std::vector<int64_t>& counts) {
    for (size_t k = 0; k < m_counts.size(); ++k)
        m_counts[k] += counts[k];
}

void Estimation::exchange(parallel::Group& ranks) { ranks.add_up("estimated pixels", m_counts); }

std::unique_ptr<Estimation> make_estimation(int inputs, std::vector<Applied> models) {
    return std::make_unique<CpuEstimation>(inputs, std::move(models));
}

const char* simd_target() { return math::row_kernels().target; }

} // namespace hsi::regression
