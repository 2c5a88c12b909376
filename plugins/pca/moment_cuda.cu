// SPDX-License-Identifier: MIT
#include "pca/moment_cuda.cuh"

#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "pca/moment_cuda_kernels.cuh"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace hsi::pca {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using stream::TileLimits;

/// Results of the blocks of one tile, in one piece of memory so that they are copied at once.
class Results {
  public:
    Results(int bands, size_t blocks) : m_bands(static_cast<size_t>(bands)), m_blocks(blocks) {}
    size_t bytes() const { return m_blocks * (lower() * 16 + m_bands * 16 + 8); }
    gpu::MomentResults at(unsigned char* memory) const {
        gpu::MomentResults r;
        r.scatter = reinterpret_cast<double*>(memory);
        r.differences = r.scatter + m_blocks * lower();
        r.total = r.differences + m_blocks * lower();
        r.centre = reinterpret_cast<float*>(r.total + m_blocks * m_bands);
        r.finite = reinterpret_cast<int*>(r.centre + m_blocks * m_bands);
        r.count = r.finite + m_blocks * m_bands;
        r.pairs = r.count + m_blocks;
        return r;
    }
    size_t lower() const { return gpu::lower_size(static_cast<int>(m_bands)); }

  private:
    size_t m_bands, m_blocks;
};

class MomentWorker final : public stream::Worker {
  public:
    /// Made while `ordinal` is the current device.
    MomentWorker(int ordinal, int bands, const TileLimits& limits, std::shared_ptr<HeldScene> scene,
                 stream::BorderColumns& columns, int64_t scene_samples)
        : sums(bands, true), m_ordinal(ordinal), m_bands(bands), m_scene(scene),
          m_tile(std::move(scene), bands, limits), m_valid(window_pixels(limits)),
          m_results(Results(bands, most_blocks(limits)).bytes()),
          m_host(std::make_shared<cuda::PinnedAllocator>(ordinal), m_results.size()),
          m_run(stream::BorderPairs::run_size(bands)), m_scatter(stream::BorderPairs::scatter_size(bands)),
          m_borders(columns, scene_samples, bands, m_run.data(), m_scatter.data()) {
        std::fill_n(m_run.data(), m_run.size(), 0.0);
    }
    static uint64_t device_bytes(bool held, int bands, const TileLimits& l) {
        return LaneTile::bytes(held, bands, l) + window_pixels(l) + Results(bands, most_blocks(l)).bytes();
    }
    /// Beside what a worker of the CPU has.
    static uint64_t host_bytes(int bands, const TileLimits& l) {
        return Results(bands, most_blocks(l)).bytes();
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        const auto place = m_tile.place(tile.window);
        cuda::copy_cube(place, in, cudaMemcpyHostToDevice, stream);
        const auto view = LaneTile::view(place);
        gpu::launch_valid(view, true, m_valid.data(), stream);
        const auto blocks = static_cast<size_t>(gpu::block_count(view));
        const Results results(m_bands, blocks);
        gpu::launch_moments(view, m_valid.data(), results.at(m_results.data()), stream);
        m_results.download(m_host.data(), results.bytes(), stream);
        m_done.record(stream);
        add_borders(tile, in); // beside the device
        m_done.wait();
        if (m_scene) m_scene->pixels += tile.window.area();
        add(results, blocks, tile.window.area());
    }

    stream::MomentSums sums;

  private:
    void add_borders(const Tile& tile, const CubeView<float>& in) {
        for (int64_t y = 0; y < tile.window.h; y += gpu::block_lines)
            for (int64_t x = 0; x < tile.window.w; x += gpu::block_samples)
                m_borders.add(in.cut(x, y, std::min<int64_t>(gpu::block_samples, tile.window.w - x),
                                     std::min<int64_t>(gpu::block_lines, tile.window.h - y)),
                              tile.window.x + x, tile.window.y + y, sums);
    }
    void add(const Results& results, size_t blocks, int64_t pixels) {
        const auto r = results.at(m_host.data());
        const auto bands = static_cast<size_t>(m_bands);
        int64_t valid = 0;
        for (size_t k = 0; k < blocks; ++k) {
            for (size_t b = 0; b < bands; ++b)
                sums.finite[b] += r.finite[k * bands + b];
            valid += r.count[k];
            if (r.count[k] > 0)
                sums.add_pixels(r.count[k], r.centre + k * bands, r.total + k * bands,
                                {r.scatter + k * results.lower(), 0});
            if (r.pairs[k] > 0) sums.add_pairs(r.pairs[k], {r.differences + k * results.lower(), 0});
        }
        sums.valid += valid;
        sums.invalid += pixels - valid;
    }

    const int m_ordinal, m_bands;
    const std::shared_ptr<HeldScene> m_scene;
    cuda::Stream m_stream;
    cuda::Event m_done;
    const LaneTile m_tile;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<unsigned char> m_results;
    HostBuffer<unsigned char> m_host;
    HostBuffer<double> m_run;
    std::vector<double> m_scatter;
    stream::BorderPairs m_borders;
};

class CudaMoments final : public cuda::LaneOperation<stream::MomentScan> {
  public:
    CudaMoments(std::vector<CudaDevice> devices, const stream::CubeShape& scene,
                std::shared_ptr<HeldScene> held)
        : LaneOperation(std::move(devices), scene, true), m_scene(std::move(held)) {}
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t scratch_bytes(const TileLimits& l) const override {
        return MomentScan::scratch_bytes(l) + MomentWorker::host_bytes(bands(), l);
    }
    uint64_t device_bytes(const TileLimits& l) const override {
        return MomentWorker::device_bytes(m_scene != nullptr, bands(), l);
    }
    void stop(stream::Worker& worker) override {
        merge_moments(static_cast<const MomentWorker&>(worker).sums);
    }
    /// A rank that keeps the scene wants all of it.
    bool divides() const override { return m_scene == nullptr; }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<MomentWorker>(on.ordinal, bands(), l, m_scene, columns(), scene_samples());
    }
    int64_t most_pixels() const override { return std::numeric_limits<int>::max(); }

    const std::shared_ptr<HeldScene> m_scene;
};

} // namespace

std::unique_ptr<stream::MomentScan> make_cuda_moments(const std::vector<CudaDevice>& devices,
                                                      const stream::CubeShape& scene,
                                                      std::shared_ptr<HeldScene> held) {
    return std::make_unique<CudaMoments>(devices, scene, std::move(held));
}

} // namespace hsi::pca
