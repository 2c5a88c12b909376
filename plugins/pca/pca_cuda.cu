// SPDX-License-Identifier: MIT
// hsi_cuda_pca.so: statistics and projection on GPUs. Each worker has a stream and its own buffers, which are
// allocated once. Workers are distributed over the devices. A scene that fits stays on the device between the
// two passes.
#include "core/error.h"
#include "core/process_owner.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/exact_sums.cuh"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "pca/pca.h"
#include "pca/pca_cuda_kernels.cuh"
#include "pca/pca_cuda_scene.cuh"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <atomic>
#include <cstring>
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

/// The results of the blocks of one tile, in contiguous memory, so that one copy transfers them.
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

/// The sums to which all workers of a device add.
class DeviceSums {
  public:
    /// Precondition: the device is the current device.
    DeviceSums(int bands, Statistics what)
        : m_bands(static_cast<size_t>(bands)), m_sum(m_bands, m_stream.get()),
          m_product(what == Statistics::means ? 0 : gpu::lower_size(bands), m_stream.get()),
          m_difference(what == Statistics::differences ? gpu::lower_size(bands) : 0, m_stream.get()),
          m_counts(m_bands + 2), m_level(m_bands), m_varies(m_bands) {
        m_counts.clear(m_stream.get());
        m_varies.clear(m_stream.get());
        static_assert(gpu::no_level == ~0u);
        HSI_CUDA_CHECK(cudaMemsetAsync(m_level.data(), 0xff, m_level.bytes(), m_stream.get()));
        m_stream.synchronize();
    }
    static uint64_t bytes(int bands, Statistics what) {
        const uint64_t matrices = what == Statistics::means ? 0 : what == Statistics::differences ? 2 : 1;
        return matrices * cuda::ExactDeviceSums::bytes(gpu::lower_size(bands)) +
               cuda::ExactDeviceSums::bytes(static_cast<size_t>(bands)) + static_cast<uint64_t>(bands) * 16 +
               16;
    }
    gpu::SceneSums view() const {
        return {m_sum.view(),    m_product.view(), m_difference.view(),
                m_counts.data(), m_level.data(),   m_varies.data()};
    }
    void expect(int64_t blocks) const { m_blocks += blocks; }
    /// Adds the sums to the host's sums, once after all workers have ended. `ordinal` is the device of these
    /// sums.
    void add_to(stream::StatisticsSums& sums, int ordinal) const {
        if (std::exchange(m_taken, true)) return;
        const auto memory = host_memory(ordinal);
        const auto stream = m_stream.get();
        HostBuffer<unsigned long long> counts(memory, m_counts.size());
        HostBuffer<unsigned> level(memory, m_bands), varies(memory, m_bands);
        m_counts.download(counts.data(), counts.size(), stream);
        m_level.download(level.data(), m_bands, stream);
        m_varies.download(varies.data(), m_bands, stream);
        // A block adds three terms to a product, two terms to a sum and one term to a difference. Borders add
        // further terms.
        const int64_t terms = std::min(4 * m_blocks, exact::most_terms - 1);
        m_sum.add_to(sums.sum, terms, *memory, stream); // This call waits for the stream.
        m_product.add_to(sums.product, terms, *memory, stream);
        m_difference.add_to(sums.difference, terms, *memory, stream);
        std::vector<int64_t> finite;
        std::vector<float> levels;
        std::vector<char> different;
        for (size_t b = 0; b < m_bands; ++b) {
            finite.push_back(static_cast<int64_t>(counts[b + 2]));
            different.push_back(varies[b] != 0);
            float centre = 0;
            std::memcpy(&centre, &level[b], sizeof centre);
            if (level[0] != gpu::no_level) levels.push_back(centre);
        }
        const auto valid = static_cast<int64_t>(counts[0]);
        sums.add_counts(valid, static_cast<int64_t>(counts[1]), finite, levels, different);
        sums.invalid -= valid; // Workers counted all pixels as invalid.
    }

  private:
    /// Returns pageable memory if the process belongs to a tool, because pinning would take longer than
    /// copying.
    static std::shared_ptr<HostAllocator> host_memory(int ordinal) {
        if (process_is_ours()) return paged_allocator();
        return std::make_shared<cuda::PinnedAllocator>(ordinal);
    }
    const size_t m_bands;
    mutable cuda::Stream m_stream;
    const cuda::ExactDeviceSums m_sum, m_product, m_difference;
    DeviceBuffer<unsigned long long> m_counts;
    DeviceBuffer<unsigned> m_level, m_varies;
    mutable std::atomic<int64_t> m_blocks{0};
    mutable bool m_taken = false;
};

class ScanWorker final : public stream::StatisticsWorker {
  public:
    /// Precondition: `ordinal` is the current device. `scene` receives the pixels that are read; it may be
    /// null. `samples` is the width of the whole scene.
    ScanWorker(int ordinal, int bands, int64_t samples, Statistics what, const TileLimits& limits,
               std::shared_ptr<HeldScene> scene, stream::BorderPairs& borders,
               std::shared_ptr<const DeviceSums> sums)
        : StatisticsWorker(bands, what), m_ordinal(ordinal), m_bands(bands), m_samples(samples),
          m_scene(scene), m_borders(borders), m_sums(std::move(sums)),
          m_tile(std::move(scene), bands, limits), m_valid(window_pixels(limits)),
          m_results(result_bytes(bands, what, limits)), m_scratch(scratch_bytes(bands, what, limits)) {}
    static uint64_t device_bytes(bool held, int bands, Statistics what, const TileLimits& l) {
        return LaneTile::bytes(held, bands, l) + window_pixels(l) + result_bytes(bands, what, l) +
               scratch_bytes(bands, what, l) + DeviceSums::bytes(bands, what);
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const auto view = m_tile.taken(tile.window, in, stream);
        const auto blocks = static_cast<size_t>(gpu::block_count(view));
        const auto results = Results(m_bands, sums.what, blocks).at(m_results.data());
        if (sums.what == Statistics::double_covariance) {
            gpu::launch_chunked_statistics(view, m_scratch.data(), results, stream);
        } else {
            gpu::launch_valid(view, true, m_valid.data(), stream);
            gpu::launch_statistics(view, m_valid.data(), results, stream);
        }
        const auto all = m_sums->view();
        gpu::launch_adding(results, m_bands, static_cast<int>(blocks), all, stream);
        const bool pairs = sums.what == Statistics::differences, whole = tile.window.w == m_samples;
        if (pairs && whole) gpu::launch_borders(view, m_valid.data(), all, stream);
        m_done.record(stream);
        if (pairs && !whole) add_borders(tile, in); // This runs on the host while the device computes.
        m_done.wait();
        m_sums->expect(static_cast<int64_t>(2 * blocks));
        if (m_scene) m_scene->pixels += tile.window.area();
        sums.invalid += tile.window.area();
    }
    /// Call this function after all workers have ended.
    void finish() {
        const DeviceGuard guard(m_ordinal);
        m_sums->add_to(sums, m_ordinal);
    }

  private:
    static uint64_t result_bytes(int bands, Statistics what, const TileLimits& l) {
        return Results(bands, what, most_blocks(l)).bytes();
    }
    static uint64_t scratch_bytes(int bands, Statistics what, const TileLimits& l) {
        return what == Statistics::double_covariance
                   ? gpu::chunked_scratch(bands, most_blocks(l), window_pixels(l))
                   : 0;
    }
    /// Adds the pairs at the borders of a tile that is narrower than the scene. The first and last columns of
    /// the tile are kept until the neighbouring tile is processed.
    void add_borders(const Tile& tile, const CubeView<float>& in) {
        const auto add = [&](const CubeView<float>& values) {
            stream::for_each_block(
                block_shape, tile, values,
                [this](const auto& block, int64_t x, int64_t y) { m_borders.add(block, x, y, sums); });
        };
        if (!cuda::on_device(in)) return add(in);
        HostBuffer<float> copy(std::make_shared<cuda::PinnedAllocator>(m_ordinal),
                               static_cast<size_t>(in.bands * in.lines * in.samples));
        const auto here = CubeView<float>::packed(copy.data(), in.bands, in.lines, in.samples);
        cuda::copy_cube(here, in, m_stream.get());
        m_stream.synchronize();
        add(here);
    }

    const int m_ordinal, m_bands;
    const int64_t m_samples;
    const std::shared_ptr<HeldScene> m_scene;
    stream::BorderPairs& m_borders;
    const std::shared_ptr<const DeviceSums> m_sums;
    cuda::Stream m_stream;
    cuda::Event m_done;
    LaneTile m_tile;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<unsigned char> m_results, m_scratch;
};

class CudaScan final : public cuda::LaneOperation<stream::StatisticsScan> {
  public:
    /// `held` receives the pixels that are read; it may be null.
    CudaScan(std::vector<CudaDevice> devices, const stream::CubeShape& scene, Statistics what,
             std::shared_ptr<HeldScene> held)
        : LaneOperation(std::move(devices), scene, what), m_samples(scene.samples), m_scene(std::move(held)),
          m_sums(this->devices().size()) {}
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override { return gathered_bytes(l); }
    uint64_t device_bytes(const TileLimits& l) const override {
        return ScanWorker::device_bytes(m_scene != nullptr, bands(), what(), l);
    }
    int takes_from() const override { return only_device(); }
    // Means also use this alignment, since the device computes them with the same blocks.
    int64_t align_samples() const override { return block_shape.samples; }
    int64_t align_lines() const override { return block_shape.lines; }
    /// A rank that keeps the scene must read the whole scene.
    bool divides() const override { return m_scene == nullptr; }
    void stop(stream::Worker& worker) override {
        static_cast<ScanWorker&>(worker).finish();
        StatisticsScan::stop(worker);
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        auto sums = m_sums.on(on, [&] { return std::make_shared<const DeviceSums>(bands(), what()); });
        return std::make_unique<ScanWorker>(on.ordinal, bands(), m_samples, what(), l, m_scene, borders(),
                                            std::move(sums));
    }
    int64_t most_pixels() const override { return std::numeric_limits<int>::max(); }

    const int64_t m_samples;
    const std::shared_ptr<HeldScene> m_scene;
    cuda::OncePerDevice<DeviceSums> m_sums;
};

class TransformWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device. `scene` already contains the pixels; it may be null.
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
    bool has_scan(Statistics what) const override {
        if (what == Statistics::double_covariance)
            return std::all_of(m_devices.begin(), m_devices.end(), [](const CudaDevice& device) {
                return gpu::has_chunked_statistics(device.ordinal);
            });
        return what != Statistics::moments;
    }
    std::unique_ptr<stream::StatisticsScan> make_scan(const stream::CubeShape& scene, Statistics what,
                                                      uint64_t device_memory) override {
        if (!has_scan(what)) throw Error("internal: no such scan on devices");
        hold(scene, device_memory);
        return std::make_unique<CudaScan>(m_devices, scene, what, m_scene);
    }
    std::unique_ptr<stream::Operation> make_transform(Transform transform) override {
        const bool held = m_scene && m_scene->complete() && transform.inputs == m_scene->shape.bands;
        return std::make_unique<CudaTransform>(m_devices, std::move(transform), held ? m_scene : nullptr);
    }
    int64_t find_extremes(const CubeView<float>& scene, int64_t first, int64_t step, float* low,
                          float* high) override {
        const DeviceGuard guard(m_devices.front().ordinal);
        cuda::Stream stream;
        const auto bands = static_cast<size_t>(scene.bands);
        const auto view = LaneTile::view(scene);
        const auto start = static_cast<int>(first), every = static_cast<int>(step);
        const HostBuffer<float> host(std::make_shared<cuda::PinnedAllocator>(m_devices.front().ordinal),
                                     2 * bands + 2);
        const DeviceBuffer<float> there(2 * bands);
        DeviceBuffer<unsigned long long> count(1);
        const DeviceBuffer<uint8_t> valid_places(gpu::grid_places(view, start, every));
        count.clear(stream.get());
        gpu::launch_extremes(view, start, every, valid_places.data(), there.data(), there.data() + bands,
                             count.data(), stream.get());
        there.download(host.data(), 2 * bands, stream.get());
        HSI_CUDA_CHECK(
            cudaMemcpyAsync(host.data() + 2 * bands, count.data(), 8, cudaMemcpyDeviceToHost, stream.get()));
        stream.synchronize();
        if (valid_places.size() == 0) return 0;
        std::copy_n(host.data(), bands, low);
        std::copy_n(host.data() + bands, bands, high);
        unsigned long long valid = 0;
        std::memcpy(&valid, host.data() + 2 * bands, sizeof valid);
        return static_cast<int64_t>(valid);
    }
    uint64_t free_memory() const override { return cuda::least_free_memory(m_devices); }
    uint64_t held_bytes() const override { return m_scene ? m_scene->values.bytes() : 0; }
    bool holds_scene() const override { return m_scene && m_scene->complete(); }
    void release() override { m_scene.reset(); }

  private:
    /// Allocates memory for the scene on the device if it takes at most half of the device's memory.
    void hold(const stream::CubeShape& scene, uint64_t device_memory) {
        m_scene.reset();
        // The other half is for the workers and later operations.
        if (m_devices.size() != 1 || scene.float_bytes() > device_memory / 2) return;
        const DeviceGuard guard(m_devices.front().ordinal);
        try {
            m_scene = std::make_shared<HeldScene>(m_devices.front().ordinal, scene);
        } catch (const Error&) {
            // Other programs have allocated the memory in the meantime, so the scene is transferred tile by
            // tile.
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
