// SPDX-License-Identifier: MIT
// An operation whose results are also counted or summed (tallied) on their way to the sinks, on any device.
#pragma once

#include "core/host_memory.h"
#include "stream/operation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::tools {

/// Runs `operation` and also passes each tile of its results to a Tally, which counts or sums them. Each
/// worker has its own Tally, a class with these members:
///   Tally fresh() const;                                                  returns an empty tally
///   void add(const Rect& core, const std::vector<CubeView<float>>& out);  adds all outputs of a tile
///   void merge(const Tally& other);                                       adds another tally
///   void exchange(parallel::Group& ranks);                                as Operation::exchange()
/// The result must not depend on the order of additions or on the division into tiles. The sinks receive the
/// first `outputs` outputs. The other outputs are only for the Tally.
template <class Tally>
class TalliedOperation final : public stream::Operation {
  public:
    /// `operation` must outlive this object.
    TalliedOperation(stream::Operation& operation, Tally none, size_t outputs)
        : m_operation(operation), m_sum(std::move(none)), m_outputs(outputs) {}
    const Tally& tally() const { return m_sum; } ///< complete only after the pass

    int64_t halo() const override { return m_operation.halo(); }
    std::vector<int> output_bands() const override {
        auto bands = m_operation.output_bands();
        bands.resize(m_outputs);
        return bands;
    }
    int64_t align_samples() const override { return m_operation.align_samples(); }
    int64_t align_lines() const override { return m_operation.align_lines(); }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        uint64_t floats = 0;
        for (const int bands : hidden_bands())
            floats += size_of(bands, limits);
        return m_operation.scratch_bytes(limits) + floats * sizeof(float);
    }
    uint64_t device_bytes(const stream::TileLimits& limits) const override {
        return m_operation.device_bytes(limits);
    }
    uint64_t preferred_bytes() const override { return m_operation.preferred_bytes(); }
    double line_share() const override { return m_operation.line_share(); }
    /// A device may provide the input, but puts_on() remains -1, because the Tally reads the outputs in host
    /// memory.
    int takes_from() const override { return m_operation.takes_from(); }
    bool reads_in_place() const override { return m_operation.reads_in_place(); }
    std::shared_ptr<HostAllocator> allocator() const override { return m_operation.allocator(); }
    /// Does not change m_sum, because several workers start at the same time.
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override {
        auto worker = std::make_unique<TallyWorker>(m_operation.start(lane, limits), m_sum.fresh());
        for (const int bands : hidden_bands()) {
            worker->bands.push_back(bands);
            worker->hidden.emplace_back(allocator(), static_cast<size_t>(size_of(bands, limits)));
        }
        return worker;
    }
    void stop(stream::Worker& worker) override {
        auto& w = static_cast<TallyWorker&>(worker);
        m_operation.stop(*w.worker);
        m_sum.merge(w.tally);
    }
    bool divides() const override { return m_operation.divides(); }
    void exchange(parallel::Group& ranks) override {
        m_operation.exchange(ranks);
        m_sum.exchange(ranks);
    }

  private:
    struct TallyWorker final : stream::Worker {
        TallyWorker(std::unique_ptr<stream::Worker> w, Tally t) : worker(std::move(w)), tally(std::move(t)) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            auto all = out;
            for (size_t k = 0; k < bands.size(); ++k)
                all.push_back(CubeView<float>::packed(hidden[k].data(), bands[k], tile.core.h, tile.core.w));
            worker->process(tile, in, all);
            tally.add(tile.core, all);
        }
        std::unique_ptr<stream::Worker> worker;
        Tally tally;
        std::vector<int> bands; ///< number of bands of each output without a sink
        std::vector<HostBuffer<float>> hidden;
    };

    std::vector<int> hidden_bands() const {
        const auto bands = m_operation.output_bands();
        return {bands.begin() + static_cast<std::ptrdiff_t>(m_outputs), bands.end()};
    }
    static uint64_t size_of(int bands, const stream::TileLimits& limits) {
        return static_cast<uint64_t>(bands) * static_cast<uint64_t>(limits.core_samples * limits.core_lines);
    }

    stream::Operation& m_operation;
    Tally m_sum;
    const size_t m_outputs;
};

} // namespace hsi::tools
