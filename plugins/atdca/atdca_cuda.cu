// SPDX-License-Identifier: MIT
// hsi_cuda_atdca.so: reads the scene onto a GPU once and searches it there.
#include "atdca/atdca.h"
#include "atdca/atdca_cuda_kernels.cuh"
#include "atdca/classify_cuda.h"
#include "atdca/ending.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"

#include <algorithm>
#include <chrono>

namespace hsi::atdca {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;

gpu::SearchShape shape_of(const stream::CubeShape& scene, const Options& options) {
    gpu::SearchShape s;
    s.bands = scene.bands;
    s.pixels = scene.pixels();
    s.targets = options.targets;
    s.gs = options.method == Method::gs;
    s.sign = s.gs && options.score == Score::sign;
    return s;
}

/// Copies tiles through pinned memory to the device, and there to their positions in the cube that is
/// searched.
class Upload final : public stream::Operation {
  public:
    static constexpr uint64_t tile_bytes = uint64_t{16} << 20;
    Upload(int ordinal, const gpu::SearchWork& work, int64_t scene_samples)
        : m_ordinal(ordinal), m_work(work), m_scene_samples(scene_samples),
          m_allocator(std::make_shared<cuda::PinnedAllocator>(ordinal)) {}
    int takes_from() const override { return m_ordinal; }
    uint64_t preferred_bytes() const override { return tile_bytes; }
    std::shared_ptr<HostAllocator> allocator() const override { return m_allocator; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        const DeviceGuard guard(m_ordinal);
        return std::make_unique<Lane>(*this);
    }

  private:
    struct Lane final : stream::Worker {
        explicit Lane(Upload& u) : upload(u) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>&) override {
            const DeviceGuard guard(upload.m_ordinal);
            auto from = in;
            if (!cuda::on_device(in)) {
                const auto needed = static_cast<size_t>(in.samples * in.lines * in.bands);
                if (staging.size() < needed) staging = DeviceBuffer<float>(needed);
                from = CubeView<float>::packed(staging.data(), in.bands, in.lines, in.samples);
                cuda::copy_cube(from, in, stream.get());
            }
            gpu::PrepareTile t;
            t.data = from.data;
            t.samples = from.samples;
            t.lines = from.lines;
            t.line_stride = from.line_stride;
            t.band_stride = from.band_stride;
            t.x = tile.window.x;
            t.y = tile.window.y;
            t.scene_samples = upload.m_scene_samples;
            gpu::launch_prepare(upload.m_work, t, stream.get());
            done.record(stream.get());
            done.wait();
        }
        Upload& upload;
        cuda::Stream stream;
        cuda::Event done;
        DeviceBuffer<float> staging;
    };
    int m_ordinal;
    const gpu::SearchWork& m_work;
    int64_t m_scene_samples;
    std::shared_ptr<HostAllocator> m_allocator;
};

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(const std::vector<CudaDevice>& devices) : m_device(devices.at(0)) {}
    bool fits(uint64_t device_memory, const stream::CubeShape& scene, const Options& options) const override {
        const auto shape = shape_of(scene, options);
        const uint64_t free = cuda::free_memory(m_device.ordinal);
        const uint64_t room = device_memory > 0 ? std::min(device_memory, free) : free / 5 * 4;
        // The tiles of all workers together hold at most one scene, and seldom more than 32 tiles of this
        // size.
        const uint64_t staging = std::min(shape.cube_bytes(), 32 * Upload::tile_bytes);
        return shape.cube_bytes() + gpu::SearchWork::state_bytes(shape) + staging <= room;
    }

    uint64_t free_memory() const override { return cuda::free_memory(m_device.ordinal); }

    Detection detect(const stream::CubeSource& source, const Options& options,
                     const stream::PassOptions& pass) override {
        if (options.targets < 1)
            throw UsageError("-t: " + std::to_string(options.targets) + " is not a number of targets",
                             "Use 1 or more.");
        const DeviceGuard guard(m_device.ordinal);
        const auto scene = source.shape();
        gpu::SearchWork work;
        work.shape = shape_of(scene, options);
        const auto& shape = work.shape;
        const auto pixels = static_cast<size_t>(shape.pitch()), groups = static_cast<size_t>(shape.groups()),
                   targets = static_cast<size_t>(shape.targets), bands = static_cast<size_t>(shape.bands);
        DeviceBuffer<float> cube(static_cast<size_t>(shape.cube_bytes() / sizeof(float)));
        DeviceBuffer<double> norm(pixels), score(pixels), greatest(groups), basis(targets * bands),
            found_score(targets);
        DeviceBuffer<int> applied(pixels);
        DeviceBuffer<unsigned char> scratch(static_cast<size_t>(gpu::SearchWork::scratch_bytes(shape)));
        DeviceBuffer<int64_t> found(targets);
        DeviceBuffer<gpu::SearchResult> result(1);
        work.cube = cube.data();
        work.norm = norm.data();
        work.score = score.data();
        work.greatest = greatest.data();
        work.applied = applied.data();
        work.basis = basis.data();
        work.scratch = scratch.data();
        work.found = found.data();
        work.found_score = found_score.data();
        work.result = result.data();

        Detection d;
        Upload upload(m_device.ordinal, work, scene.samples);
        auto reading = pass;
        reading.name = "read";
        reading.only = nullptr;
        if (pass.progress) reading.progress = [&](double share) { pass.progress(0.9 * share); };
        d.passes.push_back(stream::run_pass(source, upload, {}, reading));

        const auto begin = std::chrono::steady_clock::now();
        cuda::Stream stream;
        gpu::launch_search(work, stream.get());
        gpu::SearchResult outcome{};
        std::vector<int64_t> at(targets);
        std::vector<double> scores(targets);
        result.download(&outcome, 1, stream.get());
        stream.synchronize();
        found.download(at.data(), static_cast<size_t>(outcome.found), stream.get());
        found_score.download(scores.data(), static_cast<size_t>(outcome.found), stream.get());
        stream.synchronize();
        for (int k = 0; k < outcome.found; ++k) {
            const auto i = static_cast<size_t>(k);
            Target t;
            t.line = at[i] / scene.samples;
            t.sample = at[i] % scene.samples;
            t.score = scores[i];
            t.spectrum.resize(bands);
            HSI_CUDA_CHECK(cudaMemcpyAsync(t.spectrum.data(), cube.data() + at[i] * shape.row(),
                                           bands * sizeof(float), cudaMemcpyDeviceToHost, stream.get()));
            stream.synchronize();
            d.targets.push_back(std::move(t));
        }
        stream::PassReport search;
        search.name = "search (on the device)";
        search.lanes = 1;
        search.seconds = search.compute_seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        d.passes.push_back(search);
        d.valid_pixels = static_cast<int64_t>(outcome.valid);
        d.invalid_pixels = scene.pixels() - d.valid_pixels;
        if (d.valid_pixels > 0)
            d.warning = ending_text(static_cast<Ending>(outcome.end), d.targets.size(), options.targets);
        d.cost.device = true;
        d.cost.in_memory = true;
        d.cost.passes = 2;
        d.cost.tiles = d.cost.tile_visits = d.passes.front().tiles;
        d.cost.scan_equivalents =
            // The 1 stands for the first visit of every pixel, which computes the norms.
            1 + static_cast<double>(outcome.visits) / static_cast<double>(scene.pixels());
        if (pass.progress) pass.progress(1.0);
        return d;
    }

    std::unique_ptr<stream::Operation> make_classification(const std::vector<std::vector<float>>& spectra,
                                                           const ClassifyOptions& options) override {
        return make_cuda_classification(m_device.ordinal, Classifier(spectra, options));
    }

  private:
    const CudaDevice m_device;
};

} // namespace
} // namespace hsi::atdca

extern "C" __attribute__((visibility("default"))) hsi::atdca::Backend*
hsi_cuda_atdca(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::atdca::CudaBackend(devices);
}
