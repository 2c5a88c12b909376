// SPDX-License-Identifier: MIT
// The part of each pixel that the targets do not explain.
#include "atdca/atdca.h"
#include "atdca/atdca_simd.h"
#include "atdca/basis.h"
#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::atdca {
namespace {

/// Returns the orthonormalised targets; each must add a new direction.
Basis basis_of(int bands, const std::vector<std::vector<float>>& targets) {
    Basis basis(bands);
    for (size_t k = 0; k < targets.size(); ++k) {
        const auto& x = targets[k];
        if (x.size() != static_cast<size_t>(bands))
            throw Error("internal: a target has " + std::to_string(x.size()) + " values for " +
                        std::to_string(bands) + " bands");
        const double squared = Basis::squared_norm(x.data(), bands);
        // Values in single precision have relative errors of up to 6e-8, so a residual shorter than 3e-7 of
        // the spectrum is not a new direction.
        if (!(squared > 0) || !(basis.squared_residual(x.data()) > 1e-13 * squared))
            throw Error("target " + std::to_string(k + 1) +
                            " is zero, or a combination of the targets before it",
                        "Leave it out.");
        basis.add(x.data());
    }
    return basis;
}

class ResidualWorker final : public stream::Worker {
  public:
    ResidualWorker(const Basis& basis, bool squared)
        : m_simd(simd_kernels()), m_basis(basis), m_squared(squared),
          m_spectra(static_cast<size_t>(strip) * static_cast<size_t>(basis.bands())), m_norm(strip) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t first = 0; first < in.samples; first += strip) {
                const int64_t count = std::min(strip, in.samples - first);
                m_simd.pack(in.row(0, line) + first, in.band_stride, in.bands, count, m_spectra.data(),
                            m_norm.data());
                for (int64_t g = 0; g < count; g += group)
                    finish(g, std::min<int64_t>(group, count - g), out[0].row(0, line) + first + g);
            }
    }

  private:
    void finish(int64_t at, int64_t count, float* out) {
        double c[vectors * group];
        const float* const spectra =
            m_spectra.data() + static_cast<size_t>(at) * static_cast<size_t>(m_basis.bands());
        double left[group];
        std::copy_n(m_norm.data() + at, group, left);
        for (int k = 0; k < m_basis.size(); k += vectors) {
            const double* q[vectors] = {};
            const int some = std::min(vectors, m_basis.size() - k);
            for (int j = 0; j < some; ++j)
                q[j] = m_basis.q(k + j);
            m_simd.dots(spectra, m_basis.bands(), q, some, c);
            for (int j = 0; j < some; ++j)
                for (int i = 0; i < group; ++i)
                    left[i] -= c[j * group + i] * c[j * group + i];
        }
        for (int64_t i = 0; i < count; ++i) {
            const double rest = std::max(left[i], 0.0);
            out[i] = m_norm[static_cast<size_t>(at + i)] > 0
                         ? static_cast<float>(m_squared ? rest : std::sqrt(rest))
                         : std::numeric_limits<float>::quiet_NaN();
        }
    }

    const SimdKernels& m_simd;
    const Basis& m_basis;
    const bool m_squared;
    std::vector<float> m_spectra;
    std::vector<double> m_norm;
};

class Residual final : public stream::Operation {
  public:
    Residual(Basis basis, bool squared) : m_basis(std::move(basis)), m_squared(squared) {}
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override { return {1}; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return static_cast<uint64_t>(strip) * (static_cast<uint64_t>(m_basis.bands()) * 4 + 8);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<ResidualWorker>(m_basis, m_squared);
    }

  private:
    const Basis m_basis;
    const bool m_squared;
};

} // namespace

std::unique_ptr<stream::Operation> make_residual(int bands, const std::vector<std::vector<float>>& targets,
                                                 bool squared) {
    return std::make_unique<Residual>(basis_of(bands, targets), squared);
}

std::vector<double> gs_projector(int bands, const std::vector<std::vector<float>>& targets) {
    return basis_of(bands, targets).p();
}

} // namespace hsi::atdca
