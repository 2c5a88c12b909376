// SPDX-License-Identifier: MIT
// hsi_cuda_pca.so: covariance and projection on GPUs. A lane is a stream with its own buffers, made once;
// lanes take turns on the devices.
#include "core/error.h"
#include "cuda/cublas.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "pca/pca.h"
#include "pca/pca_cuda_kernels.cuh"

#include <algorithm>
#include <limits>
#include <utility>

namespace hsi::pca {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

size_t window_pixels(const TileLimits& l) { return static_cast<size_t>(l.window_samples * l.window_lines); }

/// Pixel indices of a tile are 32 bit on the device.
void check_pixels(const TileLimits& l) {
    if (window_pixels(l) > static_cast<size_t>(std::numeric_limits<int>::max()))
        throw Error("a tile of " + std::to_string(l.window_samples) + "x" + std::to_string(l.window_lines) +
                        " pixels is too large for the GPU",
                    "Use a smaller -tile.");
}

void copy_in(float* to, const CubeView<float>& in, cudaStream_t stream) {
    const size_t row = static_cast<size_t>(in.samples) * sizeof(float), lines = static_cast<size_t>(in.lines);
    for (int b = 0; b < in.bands; ++b)
        HSI_CUDA_CHECK(cudaMemcpy2DAsync(
            to + static_cast<size_t>(b) * lines * static_cast<size_t>(in.samples), row, in.row(b, 0),
            static_cast<size_t>(in.line_stride) * sizeof(float), row, lines, cudaMemcpyHostToDevice, stream));
}

class CovarianceWorker final : public stream::Worker {
  public:
    /// Made while `ordinal` is the current device.
    CovarianceWorker(int ordinal, int bands, const TileLimits& limits)
        : sums(bands), m_ordinal(ordinal), m_bands(bands), m_blas(m_stream.get()),
          m_cube(static_cast<size_t>(bands) * window_pixels(limits)), m_valid(window_pixels(limits)),
          m_packed(static_cast<size_t>(bands) * gpu::block_pixels), m_products(square() * gpu::batches),
          m_scatter(square()), m_sum(static_cast<size_t>(bands)), m_finite(static_cast<size_t>(bands)),
          m_count(1), m_centre(static_cast<size_t>(bands)),
          m_pinned(std::make_shared<cuda::PinnedAllocator>(ordinal)), m_host_scatter(m_pinned, square()),
          m_host_sum(m_pinned, m_sum.size()), m_host_finite(m_pinned, m_sum.size() + 1),
          m_host_centre(m_pinned, m_sum.size()) {
        HSI_CUBLAS_CHECK(
            cublasSetMathMode(m_blas.get(), CUBLAS_PEDANTIC_MATH)); // single precision is single precision
    }
    static uint64_t device_bytes(int bands, const TileLimits& l) {
        const auto b = static_cast<uint64_t>(bands);
        return window_pixels(l) * (4 * b + 1) + b * gpu::block_pixels * 4 + b * b * (4 * gpu::batches + 8) +
               b * 32;
    }
    static uint64_t host_bytes(int bands) {
        const auto b = static_cast<uint64_t>(bands);
        return stream::CovarianceSums::bytes(bands) + b * b * 8 + b * 24;
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        copy_in(m_cube.data(), in, stream);
        gpu::launch_valid(m_cube.data(), m_bands, static_cast<size_t>(in.samples * in.lines), true,
                          m_valid.data(), stream);
        for (int64_t y = 0; y < tile.window.h; y += stream::covariance_block_lines)
            for (int64_t x = 0; x < tile.window.w; x += stream::covariance_block_samples) {
                gpu::BlockWork work{
                    m_cube.data(),
                    m_bands,
                    static_cast<int>(in.samples),
                    static_cast<int>(in.lines),
                    static_cast<int>(x),
                    static_cast<int>(y),
                    static_cast<int>(std::min(stream::covariance_block_samples, tile.window.w - x)),
                    static_cast<int>(std::min(stream::covariance_block_lines, tile.window.h - y))};
                add_block(work);
            }
    }

    stream::CovarianceSums sums;

  private:
    size_t square() const { return static_cast<size_t>(m_bands) * static_cast<size_t>(m_bands); }

    void add_block(const gpu::BlockWork& work) {
        const auto stream = m_stream.get();
        const auto bands = static_cast<size_t>(m_bands);
        gpu::launch_block_sums(work, m_valid.data(), m_sum.data(), m_finite.data(), m_count.data(),
                               m_centre.data(), stream);
        gpu::launch_pack(work, m_valid.data(), m_centre.data(), m_packed.data(), stream);
        gpu::multiply_batches(m_blas.get(), m_packed.data(), m_bands, gpu::block_pixels, gpu::batch_pixels,
                              gpu::batches, m_products.data());
        gpu::launch_add_products(m_products.data(), m_bands, gpu::batches, m_scatter.data(), stream);
        m_scatter.download(m_host_scatter.data(), square(), stream);
        m_sum.download(m_host_sum.data(), bands, stream);
        m_finite.download(m_host_finite.data(), bands, stream);
        m_count.download(m_host_finite.data() + bands, 1, stream);
        m_centre.download(m_host_centre.data(), bands, stream);
        m_done.record(stream);
        m_done.wait();
        const int64_t count = m_host_finite[bands];
        sums.valid += count;
        sums.invalid += static_cast<int64_t>(work.w) * work.h - count;
        for (size_t b = 0; b < bands; ++b)
            sums.finite[b] += m_host_finite[b];
        if (count > 0)
            sums.add_block(count, m_host_sum.data(), m_host_centre.data(), m_host_scatter.data(), m_bands);
    }

    const int m_ordinal, m_bands;
    cuda::Stream m_stream;
    cuda::Event m_done;
    cuda::Cublas m_blas;
    DeviceBuffer<float> m_cube;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<float> m_packed, m_products;
    DeviceBuffer<double> m_scatter, m_sum;
    DeviceBuffer<int> m_finite, m_count;
    DeviceBuffer<float> m_centre;
    std::shared_ptr<HostAllocator> m_pinned;
    HostBuffer<double> m_host_scatter, m_host_sum;
    HostBuffer<int> m_host_finite;
    HostBuffer<float> m_host_centre;
};

class CudaCovariance final : public stream::CovarianceScan {
  public:
    CudaCovariance(std::vector<CudaDevice> devices, int bands)
        : CovarianceScan(bands), m_devices(std::move(devices)) {}
    uint64_t preferred_bytes() const override { return uint64_t{64} << 20; }
    uint64_t scratch_bytes(const TileLimits&) const override { return CovarianceWorker::host_bytes(bands()); }
    uint64_t device_bytes(const TileLimits& l) const override {
        return CovarianceWorker::device_bytes(bands(), l);
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_devices.front().ordinal);
    }
    std::unique_ptr<stream::Worker> start(int lane, const TileLimits& l) override {
        check_pixels(l);
        const int ordinal = m_devices[static_cast<size_t>(lane) % m_devices.size()].ordinal;
        const DeviceGuard guard(ordinal);
        return std::make_unique<CovarianceWorker>(ordinal, bands(), l);
    }
    void stop(stream::Worker& worker) override { merge(static_cast<const CovarianceWorker&>(worker).sums); }

  private:
    const std::vector<CudaDevice> m_devices;
};

class TransformWorker final : public stream::Worker {
  public:
    /// Made while `ordinal` is the current device.
    TransformWorker(int ordinal, const Transform& transform, const TileLimits& limits)
        : m_ordinal(ordinal), m_transform(transform),
          m_cube(static_cast<size_t>(transform.inputs) * window_pixels(limits)),
          m_valid(window_pixels(limits)),
          m_out(static_cast<size_t>(transform.outputs) * window_pixels(limits)),
          m_matrix(transform.matrix.size()), m_offset(transform.offset.size()) {
        m_matrix.upload(transform.matrix.data(), transform.matrix.size(), m_stream.get());
        m_offset.upload(transform.offset.data(), transform.offset.size(), m_stream.get());
    }
    static uint64_t device_bytes(const Transform& t, const TileLimits& l) {
        return window_pixels(l) * (4 * static_cast<uint64_t>(t.inputs + t.outputs) + 1) + t.matrix.size() * 8;
    }
    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const auto pixels = static_cast<size_t>(in.samples * in.lines);
        copy_in(m_cube.data(), in, stream);
        gpu::launch_valid(m_cube.data(), m_transform.inputs, pixels, m_transform.zero_is_invalid,
                          m_valid.data(), stream);
        gpu::launch_transform(m_cube.data(), m_transform.inputs, pixels, m_matrix.data(), m_offset.data(),
                              m_transform.outputs, m_valid.data(), m_out.data(), stream);
        const size_t row = static_cast<size_t>(in.samples) * sizeof(float);
        for (int o = 0; o < m_transform.outputs; ++o)
            HSI_CUDA_CHECK(cudaMemcpy2DAsync(out[0].row(o, 0),
                                             static_cast<size_t>(out[0].line_stride) * sizeof(float),
                                             m_out.data() + static_cast<size_t>(o) * pixels, row, row,
                                             static_cast<size_t>(in.lines), cudaMemcpyDeviceToHost, stream));
        m_done.record(stream);
        m_done.wait();
    }

  private:
    const int m_ordinal;
    const Transform& m_transform;
    cuda::Stream m_stream;
    cuda::Event m_done;
    DeviceBuffer<float> m_cube;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<float> m_out;
    DeviceBuffer<double> m_matrix, m_offset;
};

class CudaTransform final : public stream::Operation {
  public:
    CudaTransform(std::vector<CudaDevice> devices, Transform transform)
        : m_devices(std::move(devices)), m_transform(std::move(transform)) {}
    std::vector<int> output_bands() const override { return {m_transform.outputs}; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return TransformWorker::device_bytes(m_transform, l);
    }
    std::shared_ptr<HostAllocator> allocator() const override {
        return std::make_shared<cuda::PinnedAllocator>(m_devices.front().ordinal);
    }
    std::unique_ptr<stream::Worker> start(int lane, const TileLimits& l) override {
        check_pixels(l);
        const int ordinal = m_devices[static_cast<size_t>(lane) % m_devices.size()].ordinal;
        const DeviceGuard guard(ordinal);
        return std::make_unique<TransformWorker>(ordinal, m_transform, l);
    }

  private:
    const std::vector<CudaDevice> m_devices;
    const Transform m_transform;
};

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(std::vector<CudaDevice> devices) : m_devices(std::move(devices)) {}
    std::unique_ptr<stream::CovarianceScan> make_covariance(int bands) override {
        return std::make_unique<CudaCovariance>(m_devices, bands);
    }
    std::unique_ptr<stream::Operation> make_transform(Transform transform) override {
        return std::make_unique<CudaTransform>(m_devices, std::move(transform));
    }
    uint64_t free_memory() const override { return cuda::least_free_memory(m_devices); }

  private:
    const std::vector<CudaDevice> m_devices;
};

} // namespace
} // namespace hsi::pca

extern "C" __attribute__((visibility("default"))) hsi::pca::Backend*
hsi_cuda_pca(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::pca::CudaBackend(devices);
}
