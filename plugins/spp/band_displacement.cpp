// SPDX-License-Identifier: MIT
// The displacement of each band from the centroid.
#include "spp/spp.h"
#include "spp/spp_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::spp {
namespace {

constexpr int64_t strip = 1024; ///< number of pixels whose factors stay in the first-level cache

class BandWorker final : public stream::Worker {
  public:
    explicit BandWorker(double centroid)
        : m_simd(simd_kernels()), m_centroid(static_cast<float>(centroid)), m_inverse(strip) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t x = 0; x < in.samples; x += strip)
                run(in.row(0, line) + x, in.row(1, line) + x, std::min(strip, in.samples - x),
                    out[0].row(0, line) + x);
    }

  private:
    void run(const float* y, const float* alpha, int64_t count, float* out) {
        m_simd.inverse_rho(alpha, count, m_inverse.data());
        m_simd.displace_row(y, 0, m_inverse.data(), &m_centroid, 1, count, out, 0);
        for (int64_t i = 0; i < count; ++i)
            out[i] = std::isfinite(y[i]) ? out[i] : std::numeric_limits<float>::quiet_NaN();
    }

    const SimdKernels& m_simd;
    const float m_centroid;
    std::vector<float> m_inverse;
};

class BandDisplacement final : public stream::Operation {
  public:
    explicit BandDisplacement(double centroid) : m_centroid(centroid) {}
    std::vector<int> output_bands() const override { return {1}; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override { return strip * sizeof(float); }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<BandWorker>(m_centroid);
    }

  private:
    const double m_centroid;
};

} // namespace

std::unique_ptr<stream::Operation> make_band_displacement(double centroid) {
    return std::make_unique<BandDisplacement>(centroid);
}

} // namespace hsi::spp
