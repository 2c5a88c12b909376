// SPDX-License-Identifier: MIT
// Common parts of the CUDA modules of all detection methods. Each worker has a CUDA stream and its own
// buffers, which are allocated once. Workers are distributed over the devices.
#pragma once

#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "detect/detect.h"
#include "detect/detect_cuda_kernels.cuh"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::detect {

using stream::TileLimits;

inline constexpr size_t count_kinds = 4;

/// Returns the bands of the outputs of a detection with `scores` scores.
inline std::vector<int> output_list(int scores, const Decision& decision) {
    return decision.map ? std::vector<int>{scores, 1} : std::vector<int>{scores};
}

inline size_t window_pixels(const TileLimits& l) {
    return static_cast<size_t>(l.window_samples * l.window_lines);
}
inline size_t core_pixels(const TileLimits& l) { return static_cast<size_t>(l.core_samples * l.core_lines); }

/// A worker with its CUDA stream, tile, outputs and counts.
class CudaWorker : public stream::Worker {
  public:
    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const cuda::DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        m_raw = m_input.packed(in, stream);
        m_device_counts.clear(stream);
        m_clock.start(stream);
        gpu::Output to;
        std::vector<float*> places;
        for (size_t k = 0; k < m_outputs.size(); ++k)
            places.push_back(m_outputs[k].begin(out[k]));
        to.scores = places[0];
        to.map = m_decision.map ? places[1] : nullptr;
        to.depths = places.size() > (m_decision.map ? 2 : 1) ? places.back() : nullptr;
        to.has_threshold = m_decision.threshold.has_value();
        to.threshold = m_decision.threshold.value_or(0);
        to.counts = m_device_counts.data();
        launch(tile, in, to, stream);
        if (m_tallies) {
            gpu::launch_tally(to.scores, to.map, static_cast<int>(m_best.size()),
                              static_cast<int>(tile.core.area()),
                              {m_best.data(), m_mapped.data(), to.small_is_best}, stream);
            m_small_is_best = to.small_is_best;
        }
        m_clock.stop(stream);
        for (auto& one : m_outputs)
            one.end(stream);
        m_device_counts.download(m_host_counts.data(), count_kinds, stream);
        m_stream.synchronize();
        for (size_t i = 0; i < count_kinds; ++i)
            counts[i] += static_cast<int64_t>(m_host_counts[i]);
        kernel_seconds += m_clock.seconds();
    }

    /// Adds this worker's best scores and counts of the map to `all`. Call this function after the last tile,
    /// and only if the worker was made with `tallies`.
    void add_to(ScoreCounts& all) {
        const cuda::DeviceGuard guard(m_ordinal);
        std::vector<unsigned> best(m_best.size());
        std::vector<unsigned long long> mapped(m_mapped.size());
        m_best.download(best.data(), best.size(), m_stream.get());
        if (!mapped.empty()) m_mapped.download(mapped.data(), mapped.size(), m_stream.get());
        m_stream.synchronize();
        all.best.resize(best.size(), std::numeric_limits<float>::quiet_NaN());
        all.mapped.resize(best.size());
        for (size_t k = 0; k < best.size(); ++k) {
            if (!mapped.empty()) all.mapped[k] += static_cast<int64_t>(mapped[k]);
            if (best[k] == 0) continue; // no pixel has a score
            const float score = gpu::score_of(best[k], m_small_is_best);
            if (std::isnan(all.best[k]) || (m_small_is_best ? score < all.best[k] : score > all.best[k]))
                all.best[k] = score;
        }
        if (!mapped.empty()) all.pixels += static_cast<int64_t>(mapped.back());
    }

    std::array<int64_t, count_kinds> counts{}; ///< in the order of gpu::Output::counts
    double kernel_seconds = 0;

  protected:
    /// outputs: the number of bands of each output. tallies: the worker summarises its scores for add_to();
    /// each band of the first output must then be the score of a target. `ordinal` must be the current
    /// device.
    CudaWorker(int ordinal, int bands, const std::vector<int>& outputs, const Decision& decision,
               const TileLimits& l, bool tallies = false)
        : m_ordinal(ordinal), m_decision(decision), m_tallies(tallies),
          m_best(tallies ? static_cast<size_t>(outputs.front()) : 0),
          m_mapped(tallies && decision.map ? m_best.size() + 1 : 0),
          m_input(static_cast<size_t>(bands) * window_pixels(l)), m_device_counts(count_kinds),
          m_host_counts(std::make_shared<cuda::PinnedAllocator>(ordinal), count_kinds) {
        for (const int all : outputs)
            m_outputs.emplace_back(static_cast<size_t>(all) * core_pixels(l));
        m_best.clear(m_stream.get());
        m_mapped.clear(m_stream.get());
    }
    static uint64_t common_bytes(int bands, const std::vector<int>& outputs, const TileLimits& l) {
        uint64_t all = 0;
        for (const int of_one : outputs)
            all += static_cast<uint64_t>(of_one);
        return 4 * (static_cast<uint64_t>(bands) * window_pixels(l) + all * core_pixels(l)) +
               8 * count_kinds + 12 * static_cast<uint64_t>(outputs.front()) + 8;
    }
    /// Launches the kernels that compute the outputs from the tile in m_raw.
    virtual void launch(const Tile& tile, const CubeView<float>& in, gpu::Output& to,
                        cudaStream_t stream) = 0;

    const float* m_raw = nullptr; ///< values of the tile on the device, packed
    cuda::Stream m_stream;

  private:
    const int m_ordinal;
    const Decision m_decision;
    const bool m_tallies;
    bool m_small_is_best = false;
    cuda::DeviceBuffer<unsigned> m_best;
    cuda::DeviceBuffer<unsigned long long> m_mapped;
    cuda::TileInput m_input;
    std::vector<cuda::TileOutput> m_outputs;
    cuda::DeviceBuffer<unsigned long long> m_device_counts;
    HostBuffer<unsigned long long> m_host_counts;
    cuda::KernelClock m_clock;
};

/// A detection on devices. Base: the class of the detection on the CPU.
template <class Base>
class CudaDetectionOf : public cuda::LaneOperation<Base> {
  public:
    int takes_from() const override { return this->only_device(); }
    int puts_on() const override { return this->only_device(); }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const CudaWorker&>(worker);
        this->m_valid += w.counts[0];
        this->m_invalid += w.counts[1];
        this->m_few += w.counts[2];
        this->m_flat += w.counts[3];
        m_kernel_seconds += w.kernel_seconds;
    }

  protected:
    CudaDetectionOf(std::vector<CudaDevice> devices, const Decision& decision, double& kernel_seconds)
        : cuda::LaneOperation<Base>(std::move(devices)), m_decision(decision),
          m_kernel_seconds(kernel_seconds) {}
    const Decision m_decision;

  private:
    double& m_kernel_seconds;
};

/// A detection whose workers summarise their scores: the best score of each target, and the number of its
/// pixels in the map.
class TalliedDetection : public CudaDetectionOf<Detection> {
  public:
    using CudaDetectionOf::CudaDetectionOf;
    void stop(stream::Worker& worker) override {
        static_cast<CudaWorker&>(worker).add_to(m_score_counts);
        CudaDetectionOf::stop(worker);
    }
    const ScoreCounts* score_counts() const override { return &m_score_counts; }

  private:
    ScoreCounts m_score_counts;
};

} // namespace hsi::detect
