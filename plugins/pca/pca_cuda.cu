// SPDX-License-Identifier: MIT
// hsi_cuda_pca.so: covariance, moments and projection on GPUs. A lane is a stream with its own buffers, made
// once; lanes take turns on the devices. A scene that fits stays on the device between the two passes.
#include "core/error.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "pca/moment_cuda.cuh"
#include "pca/pca.h"
#include "pca/pca_cuda_kernels.cuh"
#include "pca/pca_cuda_scene.cuh"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::pca {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

static_assert(gpu::block_samples == stream::covariance_block_samples &&
              gpu::block_lines == stream::covariance_block_lines);

/// Results of the blocks of one tile, in one piece of memory so that they are copied at once.
class Results {
  public:
    Results(int bands, size_t blocks) : m_bands(static_cast<size_t>(bands)), m_blocks(blocks) {}
    size_t bytes() const { return m_blocks * (square() * 8 + m_bands * 16 + 8); }
    gpu::BlockResults at(unsigned char* memory) const {
        gpu::BlockResults r;
        r.scatter = reinterpret_cast<double*>(memory);
        r.sum = r.scatter + m_blocks * square();
        r.centre = reinterpret_cast<float*>(r.sum + m_blocks * m_bands);
        r.finite = reinterpret_cast<int*>(r.centre + m_blocks * m_bands);
        r.count = r.finite + m_blocks * m_bands;
        return r;
    }

  private:
    size_t square() const { return m_bands * m_bands; }
    size_t m_bands, m_blocks;
};

class CovarianceWorker final : public stream::Worker {
  public:
    /// Made while `ordinal` is the current device.
    CovarianceWorker(int ordinal, int bands, const TileLimits& limits, std::shared_ptr<HeldScene> scene)
        : sums(bands), m_ordinal(ordinal), m_bands(bands), m_scene(scene),
          m_tile(std::move(scene), bands, limits), m_valid(window_pixels(limits)),
          m_results(Results(bands, most_blocks(limits)).bytes()),
          m_host(std::make_shared<cuda::PinnedAllocator>(ordinal), m_results.size()) {}
    static uint64_t device_bytes(bool held, int bands, const TileLimits& l) {
        return LaneTile::bytes(held, bands, l) + window_pixels(l) + Results(bands, most_blocks(l)).bytes();
    }
    static uint64_t host_bytes(int bands, const TileLimits& l) {
        return stream::CovarianceSums::bytes(bands) + Results(bands, most_blocks(l)).bytes();
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const auto place = m_tile.place(tile.window);
        cuda::copy_cube(place, in, cudaMemcpyHostToDevice, stream);
        const auto view = LaneTile::view(place);
        gpu::launch_valid(view, true, m_valid.data(), stream);
        const auto blocks = static_cast<size_t>(gpu::block_count(view)), bands = static_cast<size_t>(m_bands);
        const Results results(m_bands, blocks);
        gpu::launch_covariance(view, m_valid.data(), results.at(m_results.data()), stream);
        m_results.download(m_host.data(), results.bytes(), stream);
        m_done.record(stream);
        m_done.wait();
        if (m_scene) m_scene->pixels += tile.window.area();
        const auto r = results.at(m_host.data());
        int64_t valid = 0;
        for (size_t k = 0; k < blocks; ++k) {
            for (size_t b = 0; b < bands; ++b)
                sums.finite[b] += r.finite[k * bands + b];
            valid += r.count[k];
            if (r.count[k] > 0)
                sums.add_block(r.count[k], r.sum + k * bands, r.centre + k * bands,
                               r.scatter + k * bands * bands, m_bands);
        }
        sums.valid += valid;
        sums.invalid += tile.window.area() - valid;
    }

    stream::CovarianceSums sums;

  private:
    const int m_ordinal, m_bands;
    const std::shared_ptr<HeldScene> m_scene;
    cuda::Stream m_stream;
    cuda::Event m_done;
    const LaneTile m_tile;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<unsigned char> m_results;
    HostBuffer<unsigned char> m_host;
};

class CudaCovariance final : public cuda::LaneOperation<stream::CovarianceScan> {
  public:
    /// scene: where to keep what is read; may be null.
    CudaCovariance(std::vector<CudaDevice> devices, int bands, std::shared_ptr<HeldScene> scene)
        : LaneOperation(std::move(devices), bands), m_scene(std::move(scene)) {}
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override {
        return CovarianceWorker::host_bytes(bands(), l);
    }
    uint64_t device_bytes(const TileLimits& l) const override {
        return CovarianceWorker::device_bytes(m_scene != nullptr, bands(), l);
    }
    void stop(stream::Worker& worker) override { merge(static_cast<const CovarianceWorker&>(worker).sums); }
    /// A rank that keeps the scene wants all of it.
    bool divides() const override { return m_scene == nullptr; }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<CovarianceWorker>(on.ordinal, bands(), l, m_scene);
    }
    int64_t most_pixels() const override { return std::numeric_limits<int>::max(); }

    const std::shared_ptr<HeldScene> m_scene;
};

class TransformWorker final : public stream::Worker {
  public:
    /// Made while `ordinal` is the current device. scene: where the pixels lie already; may be null.
    TransformWorker(int ordinal, const Transform& transform, const TileLimits& limits,
                    std::shared_ptr<HeldScene> scene)
        : m_ordinal(ordinal), m_transform(transform), m_held(scene != nullptr),
          m_tile(std::move(scene), transform.inputs, limits), m_valid(window_pixels(limits)),
          m_out(static_cast<size_t>(transform.outputs) * window_pixels(limits)),
          m_matrix(transform.matrix.size()), m_offset(transform.offset.size()) {
        m_matrix.upload(transform.matrix.data(), transform.matrix.size(), m_stream.get());
        m_offset.upload(transform.offset.data(), transform.offset.size(), m_stream.get());
    }
    static uint64_t device_bytes(bool held, const Transform& t, const TileLimits& l) {
        return LaneTile::bytes(held, t.inputs, l) +
               window_pixels(l) * (4 * static_cast<uint64_t>(t.outputs) + 1) +
               (t.matrix.size() + t.offset.size()) * 8;
    }
    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const auto place = m_tile.place(tile.window);
        if (!m_held) cuda::copy_cube(place, in, cudaMemcpyHostToDevice, stream);
        const auto view = LaneTile::view(place);
        gpu::launch_valid(view, m_transform.zero_is_invalid, m_valid.data(), stream);
        gpu::launch_transform(view, m_matrix.data(), m_offset.data(), m_transform.outputs, m_valid.data(),
                              m_out.data(), stream);
        const auto made = CubeView<float>::packed(m_out.data(), m_transform.outputs, in.lines, in.samples);
        cuda::copy_cube(out[0], made, cudaMemcpyDeviceToHost, stream);
        m_done.record(stream);
        m_done.wait();
    }

  private:
    const int m_ordinal;
    const Transform& m_transform;
    const bool m_held;
    cuda::Stream m_stream;
    cuda::Event m_done;
    const LaneTile m_tile;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<float> m_out;
    DeviceBuffer<double> m_matrix, m_offset;
};

class CudaTransform final : public cuda::LaneOperation<stream::Operation> {
  public:
    CudaTransform(std::vector<CudaDevice> devices, Transform transform, std::shared_ptr<HeldScene> scene)
        : LaneOperation(std::move(devices)), m_transform(std::move(transform)), m_scene(std::move(scene)) {}
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override { return {m_transform.outputs}; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return TransformWorker::device_bytes(m_scene != nullptr, m_transform, l);
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<TransformWorker>(on.ordinal, m_transform, l, m_scene);
    }
    int64_t most_pixels() const override { return std::numeric_limits<int>::max(); }

    const Transform m_transform;
    const std::shared_ptr<HeldScene> m_scene;
};

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(std::vector<CudaDevice> devices) : m_devices(std::move(devices)) {}
    std::unique_ptr<stream::CovarianceScan> make_covariance(const stream::CubeShape& scene,
                                                            uint64_t device_memory) override {
        hold(scene, device_memory);
        return std::make_unique<CudaCovariance>(m_devices, scene.bands, m_scene);
    }
    std::unique_ptr<stream::MomentScan> make_moments(const stream::CubeShape& scene,
                                                     uint64_t device_memory) override {
        hold(scene, device_memory);
        return make_cuda_moments(m_devices, scene, m_scene);
    }
    std::unique_ptr<stream::Operation> make_transform(Transform transform) override {
        const bool held = m_scene && m_scene->complete() && transform.inputs == m_scene->shape.bands;
        return std::make_unique<CudaTransform>(m_devices, std::move(transform), held ? m_scene : nullptr);
    }
    uint64_t free_memory() const override { return cuda::least_free_memory(m_devices); }
    uint64_t held_bytes() const override { return m_scene ? m_scene->values.bytes() : 0; }
    bool holds_scene() const override { return m_scene && m_scene->complete(); }
    void release() override { m_scene.reset(); }

  private:
    /// A place for the scene on the device, when it takes no more than half of the memory there.
    void hold(const stream::CubeShape& scene, uint64_t device_memory) {
        m_scene.reset();
        // As much again for the lanes and for what follows.
        if (m_devices.size() != 1 || scene.float_bytes() > device_memory / 2) return;
        const DeviceGuard guard(m_devices.front().ordinal);
        try {
            m_scene = std::make_shared<HeldScene>(m_devices.front().ordinal, scene);
        } catch (const Error&) {
            // Somebody else has taken the memory since: the scene goes through the device tile by tile.
        }
    }

    const std::vector<CudaDevice> m_devices;
    std::shared_ptr<HeldScene> m_scene;
};

} // namespace
} // namespace hsi::pca

extern "C" __attribute__((visibility("default"))) hsi::pca::Backend*
hsi_cuda_pca(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::pca::CudaBackend(devices);
}
