// SPDX-License-Identifier: MIT
// hsi_cuda_pca.so: statistics and projection on GPUs. A lane is a stream with its own buffers, made
// once; lanes take turns on the devices. A scene that fits stays on the device between the two passes.
#include "core/error.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "pca/pca.h"
#include "pca/pca_cuda_kernels.cuh"
#include "pca/pca_cuda_scene.cuh"
#include "stream/statistics_sums.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::pca {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

using stream::Statistics;

constexpr auto block_shape = stream::block_shape(Statistics::covariance);
static_assert(gpu::block_samples == block_shape.samples && gpu::block_lines == block_shape.lines);

/// Results of the blocks of one tile, in one piece of memory so that they are copied at once.
class Results {
  public:
    Results(int bands, Statistics what, size_t blocks)
        : m_differences(what == Statistics::differences), m_means(what == Statistics::means),
          m_bands(static_cast<size_t>(bands)), m_blocks(blocks) {}
    size_t bytes() const { return m_blocks * ((m_differences ? 2 : 1) * lower() * 8 + m_bands * 16 + 8); }
    gpu::BlockResults at(unsigned char* memory) const {
        gpu::BlockResults r;
        r.scatter = reinterpret_cast<double*>(memory);
        r.sum = r.scatter + m_blocks * lower();
        if (m_differences) r.differences = std::exchange(r.sum, r.sum + m_blocks * lower());
        if (m_means) r.scatter = nullptr;
        r.centre = reinterpret_cast<float*>(r.sum + m_blocks * m_bands);
        r.finite = reinterpret_cast<int*>(r.centre + m_blocks * m_bands);
        r.count = r.finite + m_blocks * m_bands;
        r.pairs = r.count + m_blocks;
        return r;
    }
    size_t lower() const { return m_means ? 0 : gpu::lower_size(static_cast<int>(m_bands)); }

  private:
    bool m_differences, m_means;
    size_t m_bands, m_blocks;
};

class ScanWorker final : public stream::StatisticsWorker {
  public:
    /// Made while `ordinal` is the current device. scene: where to keep what is read; may be null.
    ScanWorker(int ordinal, int bands, Statistics what, const TileLimits& limits,
               std::shared_ptr<HeldScene> scene, stream::BorderPairs& borders)
        : StatisticsWorker(bands, what), m_ordinal(ordinal), m_bands(bands), m_scene(scene),
          m_borders(borders), m_tile(std::move(scene), bands, limits), m_valid(window_pixels(limits)),
          m_results(result_bytes(bands, what, limits)),
          m_host(std::make_shared<cuda::PinnedAllocator>(ordinal), m_results.size()) {}
    static uint64_t result_bytes(int bands, Statistics what, const TileLimits& l) {
        return Results(bands, what, most_blocks(l)).bytes();
    }
    static uint64_t device_bytes(bool held, int bands, Statistics what, const TileLimits& l) {
        return LaneTile::bytes(held, bands, l) + window_pixels(l) + result_bytes(bands, what, l);
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const auto view = m_tile.taken(tile.window, in, stream);
        gpu::launch_valid(view, true, m_valid.data(), stream);
        const auto blocks = static_cast<size_t>(gpu::block_count(view));
        const Results results(m_bands, sums.what, blocks);
        gpu::launch_statistics(view, m_valid.data(), results.at(m_results.data()), stream);
        m_results.download(m_host.data(), results.bytes(), stream);
        m_done.record(stream);
        if (sums.what == Statistics::differences) // beside the device
            stream::for_each_block(block_shape, tile, in, [this](const auto& block, int64_t x, int64_t y) {
                m_borders.add(block, x, y, sums);
            });
        m_done.wait();
        if (m_scene) m_scene->pixels += tile.window.area();
        add(results, blocks, tile.window.area());
    }

  private:
    void add(const Results& results, size_t blocks, int64_t pixels) {
        const auto r = results.at(m_host.data());
        const auto bands = static_cast<size_t>(m_bands);
        int64_t valid = 0;
        for (size_t k = 0; k < blocks; ++k) {
            for (size_t b = 0; b < bands; ++b)
                sums.finite[b] += r.finite[k * bands + b];
            valid += r.count[k];
            if (r.count[k] == 0) continue;
            const float* const centre = r.centre + k * bands;
            const double* const sum = r.sum + k * bands;
            if (r.scatter == nullptr) {
                sums.add_sums(sum);
                continue;
            }
            const stream::LowerRows scatter{r.scatter + k * results.lower(), 0};
            if (r.differences == nullptr) {
                sums.add_block(r.count[k], centre, sum, scatter);
                continue;
            }
            sums.add_centred_block(r.count[k], centre, sum, scatter);
            if (r.pairs[k] > 0) sums.add_pairs(r.pairs[k], {r.differences + k * results.lower(), 0});
        }
        sums.valid += valid;
        sums.invalid += pixels - valid;
    }

    const int m_ordinal, m_bands;
    const std::shared_ptr<HeldScene> m_scene;
    stream::BorderPairs& m_borders;
    cuda::Stream m_stream;
    cuda::Event m_done;
    LaneTile m_tile;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<unsigned char> m_results;
    HostBuffer<unsigned char> m_host;
};

class CudaScan final : public cuda::LaneOperation<stream::StatisticsScan> {
  public:
    /// held: where to keep what is read; may be null.
    CudaScan(std::vector<CudaDevice> devices, const stream::CubeShape& scene, Statistics what,
             std::shared_ptr<HeldScene> held)
        : LaneOperation(std::move(devices), scene, what), m_scene(std::move(held)) {}
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override {
        return gathered_bytes(l) + ScanWorker::result_bytes(bands(), what(), l);
    }
    uint64_t device_bytes(const TileLimits& l) const override {
        return ScanWorker::device_bytes(m_scene != nullptr, bands(), what(), l);
    }
    /// Differences are counted across the borders of blocks on the host.
    int takes_from() const override { return what() == Statistics::differences ? -1 : only_device(); }
    // The device's blocks are the same for means.
    int64_t align_samples() const override { return block_shape.samples; }
    int64_t align_lines() const override { return block_shape.lines; }
    /// A rank that keeps the scene wants all of it.
    bool divides() const override { return m_scene == nullptr; }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<ScanWorker>(on.ordinal, bands(), what(), l, m_scene, borders());
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
        const auto view =
            m_held ? LaneTile::view(m_tile.place(tile.window)) : m_tile.taken(tile.window, in, stream);
        gpu::launch_valid(view, m_transform.zero_is_invalid, m_valid.data(), stream);
        gpu::launch_transform(view, m_matrix.data(), m_offset.data(), m_transform.outputs, m_valid.data(),
                              m_out.begin(out[0]), stream);
        m_out.end(stream);
        m_done.record(stream);
        m_done.wait();
    }

  private:
    const int m_ordinal;
    const Transform& m_transform;
    const bool m_held;
    cuda::Stream m_stream;
    cuda::Event m_done;
    LaneTile m_tile;
    DeviceBuffer<uint8_t> m_valid;
    cuda::TileOutput m_out;
    DeviceBuffer<double> m_matrix, m_offset;
};

class CudaTransform final : public cuda::LaneOperation<stream::Operation> {
  public:
    CudaTransform(std::vector<CudaDevice> devices, Transform transform, std::shared_ptr<HeldScene> scene)
        : LaneOperation(std::move(devices)), m_transform(std::move(transform)), m_scene(std::move(scene)) {}
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override { return {m_transform.outputs}; }
    int takes_from() const override { return only_device(); }
    int puts_on() const override { return only_device(); }
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
    std::unique_ptr<stream::StatisticsScan> make_scan(const stream::CubeShape& scene, Statistics what,
                                                      uint64_t device_memory) override {
        if (what != Statistics::covariance && what != Statistics::differences && what != Statistics::means)
            throw Error("internal: no such scan on devices");
        hold(scene, device_memory);
        return std::make_unique<CudaScan>(m_devices, scene, what, m_scene);
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
