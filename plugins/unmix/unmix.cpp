// SPDX-License-Identifier: MIT
#include "unmix/unmix.h"

#include "core/cancel_scope.h"
#include "core/cube_view.h"
#include "core/valid_pixel.h"
#include "unmix/draws.h"
#include "unmix/mixture.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hsi::unmix {
namespace {

constexpr int64_t strip = 128; ///< number of pixels whose products are computed together

class UnmixWorker final : public stream::Worker {
  public:
    UnmixWorker(const Mixture& mixture, bool rmse)
        : m_mixture(mixture), m_solver(mixture), m_rmse(rmse), m_products(mixture.size() * strip),
          m_one(mixture.size()) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t first = 0; first < in.samples; first += strip) {
                check_cancelled();
                const auto count = static_cast<size_t>(std::min(strip, in.samples - first));
                multiply(in, line, first, count);
                for (size_t i = 0; i < count; ++i)
                    unmix(i, line, first + static_cast<int64_t>(i), out);
            }
    }

    int64_t valid = 0, invalid = 0;

  private:
    /// Computes E'x and x'x of a strip. The sums of a pixel add the bands in order.
    void multiply(const CubeView<float>& in, int64_t line, int64_t first, size_t count) {
        const size_t p = m_mixture.size();
        std::fill(m_products.begin(), m_products.end(), 0.0);
        m_squared.fill(0.0);
        for (size_t b = 0; b < m_mixture.bands(); ++b) {
            const float* const from = in.row(static_cast<int>(b), line) + first;
            for (size_t i = 0; i < count; ++i) {
                m_x[i] = from[i];
                m_squared[i] += m_x[i] * m_x[i];
            }
            for (size_t k = 0; k < p; ++k) {
                const double e = m_mixture.spectrum(k)[b];
                double* const to = m_products.data() + k * strip;
                for (size_t i = 0; i < count; ++i)
                    to[i] += e * m_x[i];
            }
        }
    }

    void unmix(size_t i, int64_t line, int64_t sample, const std::vector<CubeView<float>>& out) {
        const size_t p = m_mixture.size();
        const bool is_valid = is_valid_sum(m_squared[i]);
        ++(is_valid ? valid : invalid);
        double residual = 0;
        if (is_valid) {
            for (size_t k = 0; k < p; ++k)
                m_one[k] = m_products[k * strip + i];
            residual = m_solver.solve(m_one.data(), m_squared[i], m_rmse);
        }
        for (size_t k = 0; k < p; ++k)
            out[0].row(static_cast<int>(k), line)[sample] =
                is_valid ? static_cast<float>(m_solver.abundances()[k]) : no_value;
        if (!m_rmse) return;
        const auto bands = static_cast<double>(m_mixture.bands());
        out[1].row(0, line)[sample] = is_valid ? static_cast<float>(std::sqrt(residual / bands)) : no_value;
    }

    const Mixture& m_mixture;
    Solver m_solver;
    const bool m_rmse;
    std::vector<double> m_products, m_one;
    std::array<double, strip> m_x{}, m_squared{};
};

class CpuUnmixing final : public Unmixing {
  public:
    CpuUnmixing(const Endmembers& endmembers, const Options& options)
        : m_mixture(endmembers, options.method), m_rmse(options.rmse) {}
    std::vector<int> output_bands() const override {
        return bands_of(static_cast<int>(m_mixture.size()), m_rmse);
    }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        const uint64_t p = m_mixture.size();
        return (p * (strip + 8) + p * (p + 1) / 2 + 2 * strip) * sizeof(double);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<UnmixWorker>(m_mixture, m_rmse);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const UnmixWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
    }

  private:
    const Mixture m_mixture;
    const bool m_rmse;
};

class CpuBackend final : public Backend {
  public:
    std::unique_ptr<Unmixing> make_unmixing(const Endmembers& endmembers, const Options& options) override {
        return unmix::make_unmixing(endmembers, options);
    }
    std::unique_ptr<DrawUnmixing> make_draws(const Endmembers& library, const Classes& classes,
                                             const DrawOptions& options) override {
        return unmix::make_draws(library, classes, options);
    }
};

} // namespace

std::vector<int> bands_of(int size, bool rmse) {
    return rmse ? std::vector<int>{size, 1} : std::vector<int>{size};
}

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

std::unique_ptr<Unmixing> make_unmixing(const Endmembers& endmembers, const Options& options) {
    check_endmembers(endmembers, options.method);
    return std::make_unique<CpuUnmixing>(endmembers, options);
}

} // namespace hsi::unmix
