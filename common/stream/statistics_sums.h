// SPDX-License-Identifier: MIT
// Collects the results of the workers of a statistics scan, on the CPU and on devices: exact sums over fixed
// blocks of pixels, and the pairs of neighbours between two blocks.
#pragma once

#include "core/cube_view.h"
#include "math/exact_sum.h"
#include "stream/statistics_scan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hsi::stream {

struct BlockShape {
    int64_t samples, lines;
};

/// Returns the shape of blocks. Blocks for products are wide and low, so that whole lines of a scene form
/// tiles that stay in a cache.
constexpr BlockShape block_shape(Statistics what) {
    return what == Statistics::means ? BlockShape{128, 16} : BlockShape{1024, 8};
}

/// Calls f(block, x, y) for all blocks of a tile whose window is in `in`. (x, y) is the upper left pixel of
/// the block in the scene. Blocks are smaller at the end of the scene.
template <class F>
void for_each_block(BlockShape shape, const Tile& tile, const CubeView<float>& in, const F& f) {
    for (int64_t y = 0; y < tile.window.h; y += shape.lines)
        for (int64_t x = 0; x < tile.window.w; x += shape.samples)
            f(in.cut(x, y, std::min(shape.samples, tile.window.w - x),
                     std::min(shape.lines, tile.window.h - y)),
              tile.window.x + x, tile.window.y + y);
}

/// Returns the index of entry (a, b), b <= a, of a symmetric matrix whose rows are stored on and below the
/// diagonal. at_lower(n, 0) is the number of entries for n bands.
inline size_t at_lower(int a, int b) {
    return static_cast<size_t>(a) * (static_cast<size_t>(a) + 1) / 2 + static_cast<size_t>(b);
}

/// The rows of a matrix on and below its diagonal. Row a has at least a + 1 entries and begins at a * pitch.
/// With pitch 0, the rows are packed: row a follows row a - 1 directly.
struct LowerRows {
    const double* data;
    ptrdiff_t pitch;
    const double* row(int a) const { return pitch > 0 ? data + a * pitch : data + at_lower(a, 0); }
};

/// Sums over pixels and pairs of neighbours, added without rounding, so the order does not matter.
struct PixelSums {
    PixelSums(int bands, Statistics what);
    void add(const PixelSums& other); ///< \throws Error for another number of bands
    /// Merges the sums of all ranks. All ranks call this function together. \throws Error if another rank has
    /// other bands.
    void unite(parallel::Group& ranks);

    int bands;
    int64_t valid = 0, invalid = 0;
    int64_t pairs = 0; ///< number of pixels (line, sample) that are valid together with (line, sample + 1)
    std::vector<int64_t> finite; ///< one per band: number of pixels with a finite value
    math::ExactSums sum;         ///< sum of x_b, one per band
    math::ExactSums product;     ///< sum of x_a x_b, b <= a, at index at_lower(a, b); empty for means
    /// Sum of d_a d_b over pairs, where d is the difference of a pair, at index at_lower(a, b); empty unless
    /// requested.
    math::ExactSums difference;
};

/// Sums over blocks of at most 2^13 pixels. Sums within a block are rounded; sums of blocks are added without
/// rounding.
struct StatisticsSums : PixelSums {
    StatisticsSums(int bands, Statistics what);

    /// Adds the sums of a block: sum[b] = sum of x_b over its valid pixels.
    void add_sums(const double* sum);
    /// Adds a block of `count` valid pixels (at least one), whose sums were rounded. sum[b] is the sum of
    /// x_b. `scatter` has the sums of (x_a - centre_a)(x_b - centre_b), for any centre; single precision
    /// suffices for them if the centre is near the block's mean. If a band has one value in the block, this
    /// value must be its centre.
    void add_block(int64_t count, const float* centre, const double* sum, const LowerRows& scatter);
    /// Works as add_block(), with the sums of the differences from the centre: rest[b] is the sum of x_b -
    /// centre_b.
    void add_centred_block(int64_t count, const float* centre, const double* rest, const LowerRows& scatter);
    /// Adds `count` pairs of neighbours. scatter: sums of d_a d_b, where d is the difference of a pair.
    void add_pairs(int64_t count, const LowerRows& scatter);

    /// Adds the counts of blocks whose sums were computed elsewhere and were added directly to the members of
    /// PixelSums. `finite_values`: for each band, the number of finite values. level: a centre of each band;
    /// empty if no block had a valid pixel. varies: for each band, 1 if values vary within a block or the
    /// centres of two blocks differ, else 0.
    void add_counts(int64_t valid_pixels, int64_t valid_pairs, const std::vector<int64_t>& finite_values,
                    const std::vector<float>& level, const std::vector<char>& varies);
    void add(const StatisticsSums& other);
    void unite(parallel::Group& ranks);                ///< see PixelSums::unite()
    SceneStatistics result(int threads = 1) const;     ///< see StatisticsScan::result()
    static uint64_t bytes(int bands, Statistics what); ///< Returns the maximum memory in bytes.

    Statistics what;

  private:
    void take_levels(const std::vector<float>& level, const std::vector<char>& varies);
    void add_products(int64_t count, const float* centre, const double* rest, const LowerRows& scatter);
    std::vector<double> means() const;
    std::vector<double> covariance(int threads) const;

    std::vector<float> m_level; ///< value of each band in the first block; empty before the first block
    std::vector<char> m_varies; ///< for each band, whether it has another value elsewhere
};

/// Replaces the sums by the sums over all ranks, on each rank. All ranks call this function together.
void unite(parallel::Group& ranks, const std::string& what, math::ExactSums& sums);

/// The worker of a statistics scan, on the CPU or on a device.
class StatisticsWorker : public Worker {
  public:
    StatisticsWorker(int bands, Statistics what) : sums(bands, what) {}
    StatisticsSums sums; ///< StatisticsScan::stop() takes these sums
};

/// Adds the pairs of neighbours on the two sides of a border between blocks, one pair in 1024. Of two
/// neighbouring blocks, the one that arrives first leaves its column at the border here; the one that arrives
/// second adds the pairs. So tiles need no additional column. All workers of a scan share this object.
class BorderPairs {
  public:
    explicit BorderPairs(const CubeShape& scene) : m_samples(scene.samples) {}
    /// Adds the pairs between a block and its left and right neighbours, as far as these have arrived. (x, y)
    /// is the upper left pixel of the block in the scene. Thread-safe.
    void add(const CubeView<float>& block, int64_t x, int64_t y, StatisticsSums& sums);
    /// Adds the remaining pairs, between blocks of different ranks. All ranks call this function together.
    void exchange(parallel::Group& ranks, StatisticsSums& sums);
    /// Returns the maximum number of bytes of columns that wait for a neighbour.
    static uint64_t bytes(const CubeShape& scene, const TileLimits& limits);

  private:
    /// A border between two blocks: the first sample to its right, and its first line.
    using Border = std::pair<int64_t, int64_t>;
    /// A column of a block, bands x lines.
    struct Column {
        bool left = false; ///< true: the column is to the left of the border
        std::vector<float> values;
    };
    void meet(const CubeView<float>& block, int64_t sample, const Border& border, bool left,
              StatisticsSums& sums);

    const int64_t m_samples; ///< samples of a line of the scene
    std::mutex m_mutex;
    std::map<Border, Column> m_waiting;
};

} // namespace hsi::stream
