// SPDX-License-Identifier: MIT
// The transforms to components and back on the processor.
#include "core/error.h"
#include "core/valid_pixel.h"
#include "pca/pca.h"
#include "pca/pca_simd.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace hsi::pca {
static_assert(BlockTransform::pixels == block_pixels);

struct BlockTransform::State {
    explicit State(const Transform& transform)
        : simd(simd_kernels()),
          sum(static_cast<size_t>(transform.outputs) * static_cast<size_t>(block_pixels)),
          magnitude(static_cast<size_t>(block_pixels)),
          tail(static_cast<size_t>(group_inputs * block_pixels)) {}

    const SimdKernels& simd;
    std::vector<double> sum;       ///< outputs x block_pixels
    std::vector<double> magnitude; ///< block_pixels sums of |value|; sums of floats cannot overflow a double
    std::vector<float> tail;       ///< group_inputs x block_pixels
};

BlockTransform::BlockTransform(const Transform& transform)
    : m_transform(transform), m_state(std::make_unique<State>(transform)) {}

BlockTransform::~BlockTransform() = default;

uint64_t BlockTransform::bytes(const Transform& transform) {
    return static_cast<uint64_t>(block_pixels) *
           (static_cast<uint64_t>(transform.outputs) * 8 + 8 + group_inputs * 4);
}

double* BlockTransform::apply(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count) {
    auto& [simd, sum, magnitude, tail] = *m_state;
    const int inputs = m_transform.inputs, outputs = m_transform.outputs;
    for (int o = 0; o < outputs; ++o)
        std::fill_n(sum.begin() + o * block_pixels, block_pixels, m_transform.offset[static_cast<size_t>(o)]);
    std::fill(magnitude.begin(), magnitude.end(), 0.0);
    const int64_t whole = (count + 15) / 16 * 16;
    for (int b = 0; b < inputs; b += group_inputs) {
        const int group = std::min(group_inputs, inputs - b);
        const float* first = in.row(b, line) + sample;
        ptrdiff_t stride = in.band_stride;
        // Vectors must not read past the end of the tile.
        if (whole != count) {
            for (int k = 0; k < group; ++k) {
                float* const row = tail.data() + k * block_pixels;
                std::memcpy(row, in.row(b + k, line) + sample, static_cast<size_t>(count) * sizeof(float));
                std::fill(row + count, row + whole, 0.0f);
            }
            first = tail.data();
            stride = block_pixels;
        }
        simd.add_products(first, stride, group, m_transform.matrix.data() + b, inputs, outputs, whole,
                          sum.data(), magnitude.data());
    }
    for (int64_t i = 0; i < count; ++i)
        if (!is_valid_sum(magnitude[static_cast<size_t>(i)], m_transform.zero_is_invalid))
            for (int o = 0; o < outputs; ++o)
                sum[static_cast<size_t>(o * block_pixels + i)] = std::numeric_limits<double>::quiet_NaN();
    return sum.data();
}

namespace {

class TransformWorker final : public stream::Worker {
  public:
    explicit TransformWorker(const Transform& transform)
        : m_outputs(transform.outputs), m_transform(transform) {}

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < tile.core.h; ++line)
            for (int64_t sample = 0; sample < tile.core.w; sample += block_pixels) {
                const int64_t count = std::min(block_pixels, tile.core.w - sample);
                const double* const y = m_transform.apply(in, line, sample, count);
                for (int o = 0; o < m_outputs; ++o) {
                    const double* const from = y + o * block_pixels;
                    float* const to = out[0].row(o, line) + sample;
                    for (int64_t i = 0; i < count; ++i)
                        to[i] = static_cast<float>(from[i]);
                }
            }
    }

  private:
    const int m_outputs;
    BlockTransform m_transform;
};

class TransformOperation final : public stream::Operation {
  public:
    explicit TransformOperation(Transform transform) : m_transform(std::move(transform)) {
        const auto in = static_cast<size_t>(m_transform.inputs),
                   out = static_cast<size_t>(m_transform.outputs);
        if (m_transform.inputs < 1 || m_transform.outputs < 1 || m_transform.matrix.size() != in * out ||
            m_transform.offset.size() != out)
            throw Error("internal: a transform's matrix and offset do not fit together");
    }
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override { return {m_transform.outputs}; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return BlockTransform::bytes(m_transform);
    }
    /// A tile of this size fits into the last-level cache of a small computer.
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<TransformWorker>(m_transform);
    }

  private:
    const Transform m_transform;
};

} // namespace

std::unique_ptr<stream::Operation> make_transform(Transform transform) {
    return std::make_unique<TransformOperation>(std::move(transform));
}

const char* simd_target() { return simd_kernels().target; }

namespace {

class CpuBackend final : public Backend {
  public:
    bool has_scan(stream::Statistics) const override { return true; }
    std::unique_ptr<stream::StatisticsScan> make_scan(const stream::CubeShape& scene, stream::Statistics what,
                                                      uint64_t) override {
        return std::make_unique<stream::StatisticsScan>(scene, what);
    }
    std::unique_ptr<stream::Operation> make_transform(Transform transform) override {
        return pca::make_transform(std::move(transform));
    }
};

} // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

} // namespace hsi::pca
