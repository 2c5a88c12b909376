// SPDX-License-Identifier: MIT
// Scores pixels on the processor.
#include "core/error.h"
#include "core/valid_pixel.h"
#include "detect/block_worker.h"
#include "detect/decide.h"
#include "detect/detect_simd.h"
#include "detect/pixel/pixel.h"
#include "math/elementary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace hsi::detect {
namespace {

/// The detector in the kernels' layout.
struct Factors {
    explicit Factors(Detector all)
        : detector(std::move(all)), place(static_cast<size_t>(detector.bands), -1),
          height(static_cast<int>(detector.used.size())), rows(detector.rows, height),
          log_rows(detector.log_rows, height), factor(detector.factor, detector.deviation, single_length) {
        for (size_t r = 0; r < detector.used.size(); ++r)
            place[static_cast<size_t>(detector.used[r])] = static_cast<int>(r);
    }
    const Detector detector;
    std::vector<int> place; ///< [band]: index among the used bands; -1 if not used
    const int height;       ///< number of used bands
    const Panels rows, log_rows, factor;
};

class DetectWorker final : public BlockWorker {
  public:
    DetectWorker(const Factors& factors, const Decider& decider)
        : BlockWorker(factors.detector.bands), m_simd(simd_kernels()), m_factors(factors), m_decider(decider),
          m_method(factors.detector.method), m_targets(static_cast<size_t>(factors.detector.scores())),
          m_z(static_cast<size_t>(factors.height) * block_pixels),
          m_logs(factors.detector.log_rows.empty() ? 0 : m_z.size()),
          m_singles(factors.detector.factor.empty() ? 0 : m_z.size()),
          m_products(static_cast<size_t>(factors.rows.count() * Panels::height) * block_pixels),
          m_log_products(m_logs.empty() ? 0 : m_products.size()), m_magnitude(block_pixels),
          m_squared(block_pixels), m_greatest(block_pixels), m_sum(block_pixels), m_entropy(block_pixels),
          m_scores(m_targets) {}

    static uint64_t bytes(const Factors& f) {
        const auto rows = static_cast<uint64_t>(f.rows.count() * Panels::height);
        const bool logs = !f.detector.log_rows.empty();
        return static_cast<uint64_t>(block_pixels) *
               (static_cast<uint64_t>(f.height) * (logs ? 16 : 12) + rows * (logs ? 16 : 8) + 40 +
                static_cast<uint64_t>(f.detector.bands) * 4);
    }

  private:
    void process_block(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count,
                       const std::vector<CubeView<float>>& out) override {
        const Block block = whole_block(in, line, sample, count);
        const Detector& d = m_factors.detector;
        m_simd.take(block.first, block.band_stride, in.bands, m_factors.place.data(), d.centre.data(),
                    m_factors.height, m_z.data(), m_singles.empty() ? nullptr : m_singles.data(),
                    m_magnitude.data());
        if (m_method == Method::sid)
            m_simd.take_logs(m_z.data(), m_factors.height, least_part, m_logs.data(), m_greatest.data(),
                             m_sum.data(), m_entropy.data());
        if (m_method == Method::sam) m_simd.square(m_z.data(), m_factors.height, m_squared.data());
        if (!d.factor.empty())
            m_simd.quadratic(m_z.data(), m_singles.data(), m_factors.height, m_factors.factor,
                             m_squared.data());
        m_simd.multiply(m_z.data(), m_factors.height, m_factors.rows, m_products.data());
        if (!m_logs.empty())
            m_simd.multiply(m_logs.data(), m_factors.height, m_factors.log_rows, m_log_products.data());
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
            const bool is_valid =
                is_valid_sum(m_magnitude[i]) && (m_method != Method::sid || m_greatest[i] > 0);
            ++(is_valid ? valid : invalid);
            for (size_t k = 0; k < m_targets && is_valid; ++k)
                m_scores[k] = score(k, i);
            write_decision(m_decider, m_scores.data(), m_targets, is_valid, line,
                           sample + static_cast<int64_t>(i), out);
        }
    }

    double score(size_t k, size_t i) const {
        const size_t at = k * block_pixels + i;
        const auto& constants = m_factors.detector.constants;
        switch (m_method) {
        case Method::sam: {
            // |u - v|^2 = 2 - 2 u'v, |u + v|^2 = 2 + 2 u'v
            const double cosine = m_products[at] / std::sqrt(m_squared[i]);
            if (1 - cosine <= m_sam_rounding) return 0;
            return 2 *
                   math::atan2(std::sqrt(std::max(0.0, 1 - cosine)), std::sqrt(std::max(0.0, 1 + cosine)));
        }
        case Method::sid: // ln(sum x+) cancels in the sum over the bands, since p and q both add up to 1.
            return std::max(0.0,
                            (m_entropy[i] - m_products[at]) / m_sum[i] - m_log_products[at] + constants[k]);
        case Method::mf:
        case Method::cem:
            return m_products[at];
        case Method::ace: {
            const double s = m_products[at]; // d / (t-m)'C^-1(t-m)
            return m_squared[i] > 0 ? std::clamp(s * std::fabs(s) * constants[k] / m_squared[i], -1.0, 1.0)
                                    : 0.0;
        }
        case Method::rx:
            break;
        }
        return m_squared[i];
    }

    const SimdKernels& m_simd;
    const Factors& m_factors;
    const Decider& m_decider;
    const Method m_method;
    const size_t m_targets;
    const double m_sam_rounding = sam_rounding(m_factors.detector.used.size());
    std::vector<double> m_z, m_logs;                ///< used bands x block_pixels, in strips
    std::vector<float> m_singles;                   ///< m_z in single precision
    std::vector<double> m_products, m_log_products; ///< rows x block_pixels
    std::vector<double> m_magnitude, m_squared, m_greatest, m_sum, m_entropy;
    std::vector<double> m_scores; ///< scores of the current pixel
};

class CpuDetection final : public OfBlocks<Detection> {
  public:
    CpuDetection(const Detector& detector, const Decision& decision)
        : m_factors(detector), m_decider(is_small_at_target(detector.method), decision) {}
    std::vector<int> output_bands() const override {
        std::vector<int> bands{m_factors.detector.scores()};
        if (m_decider.map()) bands.push_back(1);
        return bands;
    }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return DetectWorker::bytes(m_factors);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<DetectWorker>(m_factors, m_decider);
    }

  private:
    const Factors m_factors;
    const Decider m_decider;
};

} // namespace

DetectorSizes sizes_of(Method method, size_t used, size_t targets) {
    const bool whitens = method == Method::ace || method == Method::rx;
    const size_t rows = used * targets;
    return {used,
            rows,
            method == Method::sid ? rows : 0,
            method == Method::sam ? 0 : targets,
            whitens ? used * used : 0,
            whitens ? used : 0};
}

void check_detector(const Detector& d) {
    const DetectorSizes sizes = sizes_of(d.method, d.used.size(), static_cast<size_t>(d.targets));
    const bool lists = d.centre.size() == sizes.centre && d.rows.size() == sizes.rows &&
                       d.log_rows.size() == sizes.log_rows && d.constants.size() == sizes.constants &&
                       d.factor.size() == sizes.factor && d.deviation.size() == sizes.deviation;
    const bool bands =
        std::all_of(d.used.begin(), d.used.end(), [&](int b) { return b >= 0 && b < d.bands; });
    if (d.used.empty() || !lists || !bands || (d.targets > 0) != has_target(d.method))
        throw Error("internal: the parts of a detector do not fit together");
}

std::unique_ptr<Detection> make_detection(const Detector& detector, const Decision& decision) {
    check_detector(detector);
    return std::make_unique<CpuDetection>(detector, decision);
}

} // namespace hsi::detect
