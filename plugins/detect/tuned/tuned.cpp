// SPDX-License-Identifier: MIT
#include "detect/tuned/tuned.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "detect/block_worker.h"
#include "detect/decide.h"
#include "detect/detect_simd.h"
#include "detect/tuned/tuned_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace hsi::detect {
namespace {

class TunedWorker final : public BlockWorker {
  public:
    TunedWorker(const TunedPlan& plan, const Decider& decider)
        : BlockWorker(plan.bands), m_simd(simd_kernels()), m_plan(plan), m_decider(decider),
          m_rows(plan.loadings, plan.height), m_z(static_cast<size_t>(plan.height) * pixels),
          m_products(static_cast<size_t>(m_rows.count() * Panels::height) * pixels),
          m_scores(2 * plan.targets * pixels), m_judged(plan.targets) {}

    static uint64_t bytes(const TunedPlan& plan) {
        const auto height = static_cast<uint64_t>(plan.height),
                   rows = static_cast<uint64_t>(plan.components + Panels::height);
        return pixels * (8 * (height + rows + 2 * plan.targets + 1) + 4 * static_cast<uint64_t>(plan.bands)) +
               8 * (plan.targets + rows * height);
    }

  private:
    static constexpr auto pixels = static_cast<size_t>(block_pixels);

    void process_block(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count,
                       const std::vector<CubeView<float>>& out) override {
        const Block block = whole_block(in, line, sample, count);
        const auto components = static_cast<size_t>(m_plan.components);
        m_simd.take(block.first, block.band_stride, in.bands, m_plan.place.data(), m_plan.mean.data(),
                    m_plan.height, m_z.data(), nullptr, m_magnitude.data());
        m_simd.multiply(m_z.data(), m_plan.height, m_rows, m_products.data());
        for (size_t k = 0; k < m_plan.targets; ++k) {
            double* const scores = m_scores.data() + 2 * k * pixels;
            m_simd.tune(m_products.data(), m_plan.components, m_plan.places.data() + k * components,
                        m_plan.weights.data() + k * components, m_plan.signal.data(), scores,
                        scores + pixels);
        }
        hand_out(line, sample, static_cast<size_t>(count), out);
    }

    void hand_out(int64_t line, int64_t sample, size_t count, const std::vector<CubeView<float>>& out) {
        for (size_t i = 0; i < count; ++i)
            ++(is_valid_sum(m_magnitude[i]) ? valid : invalid);
        for (size_t k = 0; k < 2 * m_plan.targets; ++k) {
            float* const row = out[0].row(static_cast<int>(k), line) + sample;
            for (size_t i = 0; i < count; ++i)
                row[i] =
                    is_valid_sum(m_magnitude[i]) ? static_cast<float>(m_scores[k * pixels + i]) : no_value;
        }
        if (!m_decider.map()) return;
        float* const map = out[1].row(0, line) + sample;
        for (size_t i = 0; i < count; ++i)
            map[i] = is_valid_sum(m_magnitude[i]) ? best(i) : no_value;
    }

    /// Returns the map's value at a pixel of the block.
    float best(size_t i) {
        bool any = false;
        for (size_t k = 0; k < m_plan.targets; ++k) {
            const double apart = m_scores[(2 * k + 1) * pixels + i];
            const bool feasible = !m_plan.most_infeasible || apart <= *m_plan.most_infeasible;
            any = any || feasible;
            m_judged[k] = feasible ? m_scores[2 * k * pixels + i] : -std::numeric_limits<double>::infinity();
        }
        return any ? m_decider.best(m_judged.data(), m_plan.targets) : 0.0f;
    }

    const SimdKernels& m_simd;
    const TunedPlan& m_plan;
    const Decider& m_decider;
    const Panels m_rows; ///< the loadings
    std::vector<double> m_z, m_products;
    std::vector<double> m_scores; ///< targets x (MF, infeasibility) x pixels
    std::vector<double> m_judged; ///< MF of the current pixel; minus infinity for infeasible targets
    std::array<double, pixels> m_magnitude{};
};

class CpuTunedFilter final : public OfBlocks<Detection> {
  public:
    CpuTunedFilter(const TunedTask& task, const Decision& decision)
        : m_plan(task), m_decider(false, decision) {}
    std::vector<int> output_bands() const override { return m_plan.output_bands(m_decider.map()); }
    uint64_t scratch_bytes(const stream::TileLimits&) const override { return TunedWorker::bytes(m_plan); }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<TunedWorker>(m_plan, m_decider);
    }

  private:
    const TunedPlan m_plan;
    const Decider m_decider;
};

} // namespace

TunedPlan::TunedPlan(const TunedTask& task)
    : bands(task.bands), height(static_cast<int>(task.used.size())), components(task.components()),
      targets(task.targets.names.size()), used(task.used), place(static_cast<size_t>(task.bands), -1),
      mean(task.mean), loadings(task.loadings), most_infeasible(task.most_infeasible) {
    bool fits = !task.used.empty() && task.mean.size() == task.used.size() && !task.eigenvalues.empty() &&
                task.loadings.size() == task.used.size() * task.eigenvalues.size() &&
                !task.targets.spectra.empty() && task.targets.names.size() == task.targets.spectra.size();
    for (const int b : task.used)
        fits = fits && b >= 0 && b < task.bands;
    for (const auto& spectrum : task.targets.spectra)
        fits = fits && spectrum.size() == static_cast<size_t>(task.bands);
    for (const double l : task.eigenvalues)
        fits = fits && l > 0;
    if (!fits) throw Error("internal: the parts of a tuned filter do not go together");
    for (size_t r = 0; r < task.used.size(); ++r)
        place[static_cast<size_t>(task.used[r])] = static_cast<int>(r);
    for (const double l : task.eigenvalues)
        signal.push_back(std::max(l - 1, 0.0));
    for (size_t k = 0; k < targets; ++k)
        add_target(task, k);
}

void TunedPlan::add_target(const TunedTask& task, size_t k) {
    const auto& spectrum = task.targets.spectra[k];
    std::vector<double> t, w;
    double contrast = 0;
    for (size_t c = 0; c < task.eigenvalues.size(); ++c) {
        double sum = 0;
        for (size_t r = 0; r < task.used.size(); ++r)
            sum += task.loadings[c * task.used.size() + r] *
                   (spectrum[static_cast<size_t>(task.used[r])] - task.mean[r]);
        t.push_back(sum);
        w.push_back(sum / task.eigenvalues[c]);
        contrast += sum * sum / task.eigenvalues[c];
    }
    const std::string name = "target '" + task.targets.names[k] + "' ";
    if (!std::isfinite(contrast)) throw Error(name + "has values that are not numbers");
    if (!(contrast >= least_contrast))
        throw TargetIsMean(name + "equals the mean of the scene in these components",
                           "Leave it out, or use another spectrum or more components (-nc).");
    for (double& v : w)
        v /= contrast;
    places.insert(places.end(), t.begin(), t.end());
    weights.insert(weights.end(), w.begin(), w.end());
}

std::vector<int> TunedPlan::output_bands(bool map) const {
    std::vector<int> all{2 * static_cast<int>(targets)};
    if (map) all.push_back(1);
    return all;
}

std::unique_ptr<Detection> make_tuned_filter(const TunedTask& task, const Decision& decision) {
    return std::make_unique<CpuTunedFilter>(task, decision);
}

} // namespace hsi::detect
