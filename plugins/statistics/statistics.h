// SPDX-License-Identifier: MIT
// The statistics of many scenes together, also as a file: sums over pixels without any rounding, so that
// files can be merged, and added scenes removed again, to the last bit.
//
// stream::StatisticsScan adds the sums of blocks without rounding, but rounds inside a block, whose position
// depends on the scene. With other blocks, the sums of a scene differ in their last digits. Here nothing is
// rounded. In a block, each band is divided into slices of 20 bits by one unit for all its pixels. A product
// of two slices has 40 bits, and sums of 8192 products have at most 53. So every sum of products in a
// register is exact, in any order (the idea is from K. Ozaki, T. Ogita, S. Oishi, S. M. Rump: Error-free
// transformations of matrix multiplication by using fast routines of matrix multiplication and its
// applications, Numerical Algorithms 59, 2012). Whole numbers below 2^20 have one slice, floats usually two.
#pragma once

#include "math/exact_sum.h"
#include "model/classes.h"
#include "stream/operation.h"
#include "stream/statistics_scan.h"
#include "stream/statistics_sums.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::statistics {

/// Sums over the valid pixels (core/valid_pixel.h) of one or many scenes. They depend only on the pixels, not
/// on their order or their division into scenes, tiles, blocks and ranks.
struct Sums : stream::PixelSums {
    explicit Sums(int n) : PixelSums(n, stream::Statistics::differences) {}
    void subtract(const Sums& other); ///< with the same number of bands
    /// Returns the result of StatisticsScan with differences, except for `constant`, which is empty because
    /// sums do not show it.
    stream::SceneStatistics result() const;
    /// Returns a number that other sums are very unlikely to have.
    uint64_t digest() const;
    static uint64_t most_bytes(int bands);
};

/// Returns an exact sum as doubles that add up to it, each the rounded rest after the previous ones. The same
/// sum always gives the same doubles. parts[k][i]: part k of sum i.
std::vector<std::vector<double>> parts_of(const math::ExactSums& sums);

/// Extremes of the valid pixels, by band; infinite (low: +, high: -) without valid pixels.
struct Extremes {
    std::vector<float> low, high;
};

/// The scan; complete after run_pass(). Tiles are whole lines.
class ExactScan final : public stream::Operation {
  public:
    explicit ExactScan(const stream::CubeShape& scene);
    int64_t align_samples() const override { return m_scene.samples; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    uint64_t preferred_bytes() const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    const Sums& sums() const { return m_sums; }
    const Extremes& extremes() const { return m_extremes; }

  private:
    const stream::CubeShape m_scene;
    Sums m_sums;
    Extremes m_extremes;
};

// --- Statistics as a file
// --------------------------------------------------------------------------

/// One of the scenes in the statistics.
struct SceneRecord {
    std::string name;
    int64_t bytes = 0;    ///< of the file; 0: unknown
    std::string modified; ///< seconds and nanoseconds since 1970: "1700000000.000000001"; empty: unknown
    std::string mask;     ///< the values of -mask and -mask-exclude; empty: not given
    int64_t samples = 0, lines = 0;
    int64_t valid = 0, invalid = 0;
    uint64_t digest = 0; ///< of its sums
    Extremes extremes;
    /// Numbers and wavelengths of the scene's bands that were left out because they have no values.
    model::ModelBands left_out;
};

/// The content of a file. The scenes are sorted by names and digests, for any order of additions.
struct Statistics {
    model::ModelBands bands; ///< without extremes and mean
    Sums sums;
    std::vector<SceneRecord> scenes;

    explicit Statistics(int count) : sums(count) {}
    /// Adds a scene. \throws Error if there is already a scene with the same pixels.
    void add(const SceneRecord& scene, const Sums& of_scene);
    /// Adds all of `other`, from the file `name`. \throws Error if one of its scenes is already included.
    void add(const Statistics& other, const std::string& name);
    /// Removes all of `other`. \throws Error that names the file if one of its scenes is not included.
    void remove(const Statistics& other, const std::string& name);
    Extremes extremes() const;          ///< of all scenes
    model::ModelBands left_out() const; ///< bands left out by any scene
    /// Returns sums.result(), and the bands that are constant.
    stream::SceneStatistics result() const;
};

/// Returns JSON; the same scenes give the same bytes. `maker`: the tool and its version.
std::string to_json(const Statistics& statistics, const std::string& maker);
/// \throws Error that names the file if it is not a statistics file, was made by a newer version, or is
/// damaged.
Statistics from_json(const std::string& text, const std::string& name);
/// Returns whether a text begins like those of to_json().
bool is_statistics(const std::string& begin);

/// In bytes, far more than any file has: 1,000 bands of floats take 60 MB.
inline constexpr uint64_t largest_file = uint64_t{256} << 20;

} // namespace hsi::statistics
