// SPDX-License-Identifier: MIT
// The results that the workers of a statistics scan collect, on the CPU and on devices: exact sums over fixed
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

/// Calls f(block, x, y) for all blocks of a tile that was read to `in`. Blocks are smaller at the end of the
/// scene; (x, y) is the block's corner in the scene.
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

/// The rows of a matrix on and below its diagonal. Row a has at least a + 1 entries, and is at a * pitch or,
/// packed (pitch 0), directly after row a - 1.
struct LowerRows {
    const double* data;
    ptrdiff_t pitch;
    const double* row(int a) const { return pitch > 0 ? data + a * pitch : data + at_lower(a, 0); }
};

/// Sums over pixels and pairs of neighbours, added without rounding, so the order does not matter.
struct PixelSums {
    PixelSums(int bands, Statistics what);
    void add(const PixelSums& other); ///< \throws Error for another number of bands
    /// Merges the sums of all ranks. All ranks call it together. \throws Error if another rank has other
    /// bands.
    void unite(parallel::Group& ranks);

    int bands;
    int64_t valid = 0, invalid = 0;
    int64_t pairs = 0;           ///< pixels (line, sample) and (line, sample + 1) that are both valid
    std::vector<int64_t> finite; ///< by band: pixels with a finite value
    math::ExactSums sum;         ///< of x_b
    math::ExactSums product;     ///< of x_a x_b, b <= a, at at_lower(a, b); empty for means
    math::ExactSums difference;  ///< the same sums for differences d of pairs, d_a d_b; empty unless
                                 ///< requested
};

/// Sums over blocks of at most 2^13 pixels, which were rounded within each block.
struct StatisticsSums : PixelSums {
    StatisticsSums(int bands, Statistics what);

    /// Adds the sums of a block: sum[b] = sum of x_b over its valid pixels.
    void add_sums(const double* sum);
    /// Adds a block of `count` valid pixels (at least one) by sums that were rounded: sum[b] of x_b; scatter:
    /// of (x_a - centre_a)(x_b - centre_b), for any centre. If the centre is near the block's mean, single
    /// precision suffices. For a band with one value, this value must be the centre.
    void add_block(int64_t count, const float* centre, const double* sum, const LowerRows& scatter);
    /// Adds a block by the differences from the centre: rest[b] = sum of x_b - centre_b.
    void add_centred_block(int64_t count, const float* centre, const double* rest, const LowerRows& scatter);
    /// Adds `count` pairs of neighbours. scatter: sums of d_a d_b, d their difference.
    void add_pairs(int64_t count, const LowerRows& scatter);

    /// Adds the counts of blocks that were summed elsewhere (their sums are added to the members below):
    /// `valid_pixels` and `valid_pairs`. For each band, also adds the finite values, a centre, and whether
    /// values vary within a block or another block has another centre. level: empty if no block had a valid
    /// pixel.
    void add_counts(int64_t valid_pixels, int64_t valid_pairs, const std::vector<int64_t>& finite_values,
                    const std::vector<float>& level, const std::vector<char>& varies);
    void add(const StatisticsSums& other);
    void unite(parallel::Group& ranks);                ///< as PixelSums::unite()
    SceneStatistics result(int threads = 1) const;     ///< as StatisticsScan::result()
    static uint64_t bytes(int bands, Statistics what); ///< at most

    Statistics what;

  private:
    void take_levels(const std::vector<float>& level, const std::vector<char>& varies);
    void add_products(int64_t count, const float* centre, const double* rest, const LowerRows& scatter);
    std::vector<double> means() const;
    std::vector<double> covariance(int threads) const;

    std::vector<float> m_level; ///< a band's value in the first block; empty before the first block
    std::vector<char> m_varies; ///< whether a band has another value elsewhere
};

/// Replaces the sums by the sums over all ranks, on each rank. All ranks call it together.
void unite(parallel::Group& ranks, const std::string& what, math::ExactSums& sums);

/// A lane of a scan on any device.
class StatisticsWorker : public Worker {
  public:
    StatisticsWorker(int bands, Statistics what) : sums(bands, what) {}
    StatisticsSums sums; ///< StatisticsScan::stop() takes them
};

/// Adds pairs across the borders of blocks, one pair in 1024. The last column of a block waits for the first
/// column of its right neighbour, or vice versa. The block that arrives second adds the pairs, so tiles need
/// no extra column. All workers of a scan share this object.
class BorderPairs {
  public:
    explicit BorderPairs(const CubeShape& scene) : m_samples(scene.samples) {}
    /// Joins a block with the corner (x, y) in the scene to its left and right neighbours. Thread-safe.
    void add(const CubeView<float>& block, int64_t x, int64_t y, StatisticsSums& sums);
    /// Adds the remaining pairs, between blocks of different ranks. All ranks call it together.
    void exchange(parallel::Group& ranks, StatisticsSums& sums);
    /// Returns the maximum number of bytes that wait for a tile of such a scene.
    static uint64_t bytes(const CubeShape& scene, const TileLimits& limits);

  private:
    /// The first sample to the right of the border, and the first line.
    using Border = std::pair<int64_t, int64_t>;
    /// A column of a block, bands x lines.
    struct Column {
        bool left = false; ///< of the border
        std::vector<float> values;
    };
    void meet(const CubeView<float>& block, int64_t sample, const Border& border, bool left,
              StatisticsSums& sums);

    const int64_t m_samples; ///< of the scene
    std::mutex m_mutex;
    std::map<Border, Column> m_waiting;
};

} // namespace hsi::stream
