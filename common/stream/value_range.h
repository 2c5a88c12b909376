// SPDX-License-Identifier: MIT
// What values a scene has, seen beside a pass that reads it: on a grid of pixels, so that it costs next to
// nothing.
#pragma once

#include "stream/cube_source.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace hsi::parallel {
class Group;
}

namespace hsi::stream {

/// Of the values that something was made from, a band each. All empty, or `mean` alone: unknown.
struct ValueRange {
    std::vector<double> minimum, maximum, mean;
};

/// A source beside which the pixels of a grid are looked at, each once, as lanes read their tiles. The grid
/// depends on the scene's size alone: every n-th pixel of every n-th line, the largest n for which it has
/// 4096 pixels or more. So what is found is the same for every tiling and number of threads.
///
/// A valid pixel (core/valid_pixel.h) lies far outside of a known range when more than half of the
/// bands that vary lie outside of it after it was widened by its own width on both sides; or when every value
/// is nearer to 0 than a twentieth of the band's mean, in scenes whose values are amounts (a widened range
/// holds 0 then).
class RangeWatch final : public CubeSource {
  public:
    /// `from` must outlive this. `known`: the range to compare with, in the order of `from`'s bands; may be
    /// empty.
    explicit RangeWatch(const CubeSource& from, ValueRange known = {});
    /// What finds the least and the greatest value, a band each, of the valid pixels among every step-th one,
    /// from `first` on, of every step-th line of a scene that lies on a device; it returns how many these
    /// are, or -1 where it cannot. With it the grid of a scene that goes through in one piece is looked at
    /// there, where there is no range to compare with. Before the pass.
    using FindExtremes = std::function<int64_t(const CubeView<float>& scene, int64_t first, int64_t step,
                                               float* low, float* high)>;
    void find_with(FindExtremes find) { m_find = std::move(find); }
    ~RangeWatch() override;

    CubeShape shape() const override { return m_from.shape(); }
    BlockLayout layout() const override { return m_from.layout(); }
    std::unique_ptr<CubeReader> open_reader() const override;
    int device() const override { return m_from.device(); }
    int computes_on() const override { return m_from.computes_on(); }
    uint64_t device_bytes(int64_t samples, int64_t lines) const override {
        return m_from.device_bytes(samples, lines);
    }
    uint64_t reader_bytes() const override { return m_from.reader_bytes(); }
    uint64_t window_bytes(int64_t samples, int64_t lines) const override {
        return m_from.window_bytes(samples, lines);
    }
    uint64_t stored_bytes_per_pixel() const override { return m_from.stored_bytes_per_pixel(); }

    /// Looks at the pixels of the grid by itself, line by line: for a scene that is read in another way.
    void look() const;

    /// All ranks together, after the pass, whether they have shared it or not: what they have seen becomes
    /// the whole.
    void exchange(parallel::Group& ranks) const;

    // Complete when all readers are gone.
    int64_t valid() const { return m_valid; }             ///< valid pixels of the grid
    int64_t far_outside() const { return m_far_outside; } ///< of these
    /// Of the valid pixels of the grid, a band each; empty when there are none.
    const std::vector<float>& minimum() const { return m_minimum; }
    const std::vector<float>& maximum() const { return m_maximum; }

  private:
    class Reader;
    struct Limits; ///< what a value is compared with
    const CubeSource& m_from;
    std::unique_ptr<const Limits> m_limits;
    FindExtremes m_find; ///< may be null
    int64_t m_step = 1, m_first = 0, m_across = 0;
    /// A Seen of each pixel of the grid: windows of tiles overlap.
    mutable std::vector<std::atomic<uint8_t>> m_seen;
    mutable std::mutex m_mutex; ///< guards what follows
    mutable int64_t m_valid = 0, m_far_outside = 0;
    mutable std::vector<float> m_minimum, m_maximum;
};

} // namespace hsi::stream
