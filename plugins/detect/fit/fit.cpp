// SPDX-License-Identifier: MIT
#include "detect/fit/fit.h"

#include "core/counted.h"
#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "detect/block_worker.h"
#include "detect/decide.h"
#include "detect/detect_simd.h"
#include "detect/fit/fit_plan.h"
#include "math/continuum.h"
#include "parallel/group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::detect {

FitFeature feature_to_fit(const FitRange& range, const std::vector<double>& spectrum,
                          const std::string& what) {
    const size_t n = range.x.size();
    if (n < least_fit_bands)
        throw Error(what + " has " + counted(n, "good band") + ", but a fit needs at least " +
                        std::to_string(least_fit_bands),
                    "Use a wider range.");
    FitFeature feature;
    feature.removed.resize(n);
    if (!math::Continuum(range.x).remove(spectrum.data(), feature.removed.data()))
        throw Error(what +
                        ": the target has no continuum, since its first or last value there is not above 0",
                    "Use a range where the target is above 0 at both ends.");
    const auto& removed = feature.removed;
    if (1 - *std::min_element(removed.begin(), removed.end()) < least_fit_depth)
        throw Error(what +
                        ": the target has no feature there: the depth below its continuum is less than 0.001",
                    "Use a range where the target absorbs.");
    for (size_t i = 1; i < n; ++i)
        feature.weight += (1 - removed[i - 1] + 1 - removed[i]) / 2 * (range.x[i] - range.x[i - 1]);
    return feature;
}

namespace {

class FitWorker final : public BlockWorker {
  public:
    FitWorker(const FitPlan& plan, const Decider& decider)
        : BlockWorker(0), m_simd(simd_kernels()), m_plan(plan), m_decider(decider),
          m_targets(plan.task.targets.size()), m_spectra(plan.longest * pixels), m_z(plan.longest * pixels),
          m_products((plan.most + Panels::height) * pixels), m_scores(m_targets * pixels),
          m_depths(m_targets * pixels), m_open(plan.parts.size() * pixels), m_judged(m_targets) {
        for (const auto& part : plan.parts) {
            m_continua.emplace_back(part.range.x);
            m_rows.emplace_back(part.matrix, static_cast<int>(part.range.x.size()));
        }
    }

    static uint64_t bytes(const FitPlan& plan) {
        const uint64_t targets = plan.task.targets.size();
        return pixels * 8 *
                   (2 * plan.longest + plan.most + Panels::height + 2 * targets + plan.parts.size() + 4) +
               8 * targets + 24 * plan.longest * plan.parts.size();
    }

    int64_t open = 0;

  private:
    static constexpr auto pixels = static_cast<size_t>(block_pixels);

    void process_block(const CubeView<float>& in, int64_t line, int64_t first, int64_t count,
                       const std::vector<CubeView<float>>& out) override {
        m_count = static_cast<size_t>(count);
        m_row.start(m_count);
        for (int b = 0; b < in.bands; ++b)
            m_row.look(in.row(b, line) + first);
        const int64_t good = m_row.judge();
        valid += good;
        invalid += count - good;
        std::fill(m_scores.begin(), m_scores.end(), 0.0);
        std::fill(m_depths.begin(), m_depths.end(), 0.0);
        for (size_t r = 0; r < m_plan.parts.size(); ++r)
            fit_range(r, in, line, first);
        hand_out(line, first, out);
    }

    void fit_range(size_t r, const CubeView<float>& in, int64_t line, int64_t first) {
        const RangeToFit& part = m_plan.parts[r];
        const size_t n = part.range.x.size();
        double* const spectra = m_spectra.data();
        for (size_t b = 0; b < n; ++b) {
            const float* const row = in.row(static_cast<int>(part.range.bands[b]), line) + first;
            for (size_t i = 0; i < m_count; ++i)
                spectra[i * n + b] = static_cast<double>(row[i]);
        }
        double* const is_open = m_open.data() + r * pixels;
        for (size_t i = 0; i < pixels; ++i) {
            const bool closed =
                i < m_count && m_row.is_valid(i) && m_continua[r].remove(spectra + i * n, spectra + i * n);
            is_open[i] = closed ? 0 : 1;
            if (!closed) std::fill_n(spectra + i * n, n, 1.0);
        }
        m_simd.centre(spectra, static_cast<int>(n), m_z.data(), m_inverse.data());
        m_simd.multiply(m_z.data(), static_cast<int>(n), m_rows[r], m_products.data());
        const auto how = static_cast<int>(m_plan.task.score);
        for (size_t k = 0; k < part.features.size(); ++k) {
            const auto& feature = part.features[k];
            m_simd.add_fit(m_products.data() + k * pixels, m_inverse.data(), feature.line, how,
                           m_scores.data() + feature.target * pixels,
                           m_depths.data() + feature.target * pixels);
        }
    }

    /// Writes the scores and depths of the block. Scores below 0 mark features that are too weak.
    void hand_out(int64_t line, int64_t first, const std::vector<CubeView<float>>& out) {
        std::array<bool, pixels> incomplete{};
        size_t last = out.size();
        const bool depths = m_plan.task.depths;
        if (depths) --last;
        for (size_t k = 0; k < m_targets; ++k) {
            double *const scores = m_scores.data() + k * pixels, *const deep = m_depths.data() + k * pixels;
            for (size_t i = 0; i < m_count; ++i) {
                if (!(deep[i] >= 0)) scores[i] = deep[i] = 0;
                if (!m_row.is_valid(i)) scores[i] = deep[i] = no_score;
            }
            for (const auto& feature : m_plan.task.targets[k].features) {
                const double* const is_open = m_open.data() + feature.range * pixels;
                for (size_t i = 0; i < m_count; ++i)
                    if (is_open[i] != 0) {
                        scores[i] = deep[i] = no_score;
                        incomplete[i] = true;
                    }
            }
            store(scores, out[0].row(static_cast<int>(k), line) + first);
            if (depths) store(deep, out[last].row(static_cast<int>(k), line) + first);
        }
        for (size_t i = 0; i < m_count; ++i) {
            open += incomplete[i] && m_row.is_valid(i);
            if (m_decider.map()) out[1].row(0, line)[first + static_cast<int64_t>(i)] = best(i);
        }
    }

    void store(const double* from, float* to) const {
        for (size_t i = 0; i < m_count; ++i)
            to[i] = static_cast<float>(from[i]);
    }

    /// Returns the map's value at a pixel of the block.
    float best(size_t i) {
        bool any = false;
        for (size_t k = 0; k < m_targets; ++k) {
            const double score = m_scores[k * pixels + i];
            any = any || !std::isnan(score);
            m_judged[k] = std::isnan(score) ? -1 : score;
        }
        if (!any) return no_value;
        const float found = m_decider.best(m_judged.data(), m_targets);
        return found > 0 && m_judged[static_cast<size_t>(found) - 1] > 0 ? found : 0.0f;
    }

    static constexpr double no_score = std::numeric_limits<double>::quiet_NaN();

    const SimdKernels& m_simd;
    const FitPlan& m_plan;
    const Decider& m_decider;
    const size_t m_targets;
    std::vector<math::Continuum> m_continua;
    std::vector<Panels> m_rows; ///< one per range
    std::vector<double> m_spectra, m_z, m_products;
    std::array<double, pixels> m_inverse{};
    std::vector<double> m_scores, m_depths; ///< targets x pixels
    std::vector<double> m_open;             ///< ranges x pixels: 1 without a continuum
    std::vector<double> m_judged;           ///< scores of the current pixel; -1 where it has no score
    PixelRow m_row;
    size_t m_count = 0;
};

class CpuFeatureFit final : public OfBlocks<FeatureFit> {
  public:
    CpuFeatureFit(FitTask task, const Decision& decision)
        : m_plan(std::move(task)), m_decider(false, decision) {}
    std::vector<int> output_bands() const override { return m_plan.output_bands(m_decider.map()); }
    uint64_t scratch_bytes(const stream::TileLimits&) const override { return FitWorker::bytes(m_plan); }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<FitWorker>(m_plan, m_decider);
    }
    void stop(stream::Worker& worker) override {
        OfBlocks::stop(worker);
        m_open += static_cast<const FitWorker&>(worker).open;
    }

  private:
    const FitPlan m_plan;
    const Decider m_decider;
};

void check_fit_task(const FitTask& task) {
    bool fits = !task.targets.empty();
    for (const auto& range : task.ranges) {
        fits = fits && range.bands.size() == range.x.size() && range.x.size() >= least_fit_bands;
        for (const size_t b : range.bands)
            fits = fits && b < static_cast<size_t>(task.inputs);
    }
    for (const auto& target : task.targets) {
        double sum = 0;
        for (const auto& feature : target.features) {
            sum += feature.weight;
            fits = fits && feature.range < task.ranges.size() && feature.weight >= 0 &&
                   feature.removed.size() == task.ranges[feature.range].x.size();
        }
        fits = fits && sum > 0;
    }
    if (!fits) throw Error("internal: the parts of a fit of features do not go together");
}

} // namespace

FitPlan::FitPlan(FitTask all) : task(std::move(all)) {
    check_fit_task(task);
    for (size_t r = 0; r < task.ranges.size(); ++r)
        add_range(r);
}

void FitPlan::add_range(size_t r) {
    const FitRange& range = task.ranges[r];
    const size_t n = range.x.size();
    std::vector<FeatureToFit> features;
    std::vector<double> matrix;
    for (size_t k = 0; k < task.targets.size(); ++k) {
        double sum = 0;
        for (const auto& one : task.targets[k].features)
            sum += one.weight;
        for (const auto& one : task.targets[k].features) {
            if (one.range != r) continue;
            double mean = 0, squares = 0;
            for (const double v : one.removed)
                mean += v / static_cast<double>(n);
            for (const double v : one.removed) {
                matrix.push_back(v - mean);
                squares += (v - mean) * (v - mean);
            }
            const double depth = 1 - *std::min_element(one.removed.begin(), one.removed.end());
            features.push_back({k,
                                {one.weight / sum, 1 / std::sqrt(squares), depth / squares, one.least_fit,
                                 one.least_depth}});
        }
    }
    longest = std::max(longest, n);
    most = std::max(most, features.size());
    parts.push_back({range, std::move(features), std::move(matrix)});
}

std::vector<int> FitPlan::output_bands(bool map) const {
    const auto targets = static_cast<int>(task.targets.size());
    std::vector<int> bands{targets};
    if (map) bands.push_back(1);
    if (task.depths) bands.push_back(targets);
    return bands;
}

void FeatureFit::exchange(parallel::Group& ranks) {
    Detection::exchange(ranks);
    m_open = ranks.sum("pixels without a continuum", m_open);
}

std::unique_ptr<FeatureFit> make_feature_fit(FitTask task, const Decision& decision) {
    return std::make_unique<CpuFeatureFit>(std::move(task), decision);
}

} // namespace hsi::detect
