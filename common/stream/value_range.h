// SPDX-License-Identifier: MIT
// Observes the range of a scene's values during a pass that reads it, on a grid of pixels, so that the cost
// is negligible.
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

/// The range, by band, of the values that a model was made from. The range is unknown if all lists are empty,
/// or all except `mean`.
struct ValueRange {
    std::vector<double> minimum, maximum, mean;
};

/// A source that examines each pixel of a grid once, while workers read their tiles. The grid depends only on
/// the scene's size: every n-th pixel of every n-th line, with the largest n that gives at least 4096 pixels.
/// So the result is the same for every tiling and number of threads.
///
/// A valid pixel (core/valid_pixel.h) is far outside of a known range in two cases. Either more than half of
/// the bands that vary are outside of the range, after it was widened by its own width on both sides. Or, in
/// scenes whose values are amounts (the widened range then includes 0), the magnitude of every value is less
/// than a twentieth of the band's mean.
class RangeWatch final : public CubeSource {
  public:
    /// `from` must outlive this object. `known`: the range to compare with, in the order of `from`'s bands;
    /// may be empty.
    explicit RangeWatch(const CubeSource& from, ValueRange known = {});
    /// A function that finds the minimum and the maximum, by band, of the valid pixels on a grid of a scene
    /// in a device's memory: every step-th pixel, from `first` on, of every step-th line. It returns the
    /// number of these pixels, or -1 if it cannot examine the scene. It is used if a scene is processed in
    /// one piece on a device and there is no known range. Set the function before the pass.
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

    /// Examines the pixels of the grid line by line, outside of a pass. Call this function if the pass reads
    /// the scene through another source.
    void look() const;

    /// Merges the findings of all ranks. All ranks call this function together after the pass, even if they
    /// have not shared the pass.
    void exchange(parallel::Group& ranks) const;

    // The following results are complete after all readers have ended.
    int64_t valid() const { return m_valid; } ///< number of valid pixels of the grid
    /// Number of valid pixels of the grid that are far outside of the known range.
    int64_t far_outside() const { return m_far_outside; }
    /// Return the minimum and maximum of the valid pixels of the grid, by band; empty without valid pixels.
    const std::vector<float>& minimum() const { return m_minimum; }
    const std::vector<float>& maximum() const { return m_maximum; }

  private:
    class Reader;
    struct Limits; ///< the limits for a comparison with values
    const CubeSource& m_from;
    std::unique_ptr<const Limits> m_limits;
    FindExtremes m_find; ///< may be null
    int64_t m_step = 1, m_first = 0, m_across = 0;
    /// One Seen value per pixel of the grid, because windows of tiles overlap.
    mutable std::vector<std::atomic<uint8_t>> m_seen;
    mutable std::mutex m_mutex; ///< guards the following members
    mutable int64_t m_valid = 0, m_far_outside = 0;
    mutable std::vector<float> m_minimum, m_maximum;
};

} // namespace hsi::stream
