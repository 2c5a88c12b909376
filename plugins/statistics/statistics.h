// SPDX-License-Identifier: MIT
// The statistics of many scenes together, and their file. Sums over pixels are exact, so files can be merged,
// and scenes that were added can be removed again, without rounding errors.
//
// stream::StatisticsScan adds the sums of blocks without rounding, but rounds inside a block. The same pixels
// in other blocks, as in a part of the scene, would give sums with other last digits. In this file nothing is
// rounded. In a block, the values of each band are divided into slices of 20 bits; the unit of a slice is the
// same for all pixels. A product of two slices has 40 bits, and sums of 8192 products have at most 53 bits.
// Therefore, every sum of products in a register is exact, in any order. The idea is from K. Ozaki, T. Ogita,
// S. Oishi, S. M. Rump: Error-free transformations of matrix multiplication by using fast routines of matrix
// multiplication and its applications, Numerical Algorithms 59, 2012. Integers below 2^20 need one slice,
// floats usually two.
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

/// Sums over the valid pixels (core/valid_pixel.h) of one or many scenes. They depend only on the pixels.
/// They do not depend on the order of pixels or on their division into scenes, tiles, blocks and ranks.
struct Sums : stream::PixelSums {
    explicit Sums(int n) : PixelSums(n, stream::Statistics::differences) {}
    /// Subtracts sums with the same number of bands.
    void subtract(const Sums& other);
    /// Returns the same result as a StatisticsScan with differences, except that its `constant` is empty,
    /// because sums do not tell which bands are constant.
    stream::SceneStatistics result() const;
    /// Returns a hash of the sums. Different sums are very unlikely to have the same hash.
    uint64_t digest() const;
    static uint64_t most_bytes(int bands);
};

/// Returns each exact sum as doubles whose total is the sum. Each double is the rounded remainder after the
/// previous doubles, so the same sum always gives the same doubles. parts[k][i] is part k of sum i.
std::vector<std::vector<double>> parts_of(const math::ExactSums& sums);

/// The extremes of the valid pixels in each band. Without valid pixels, low is +infinity and high is
/// -infinity.
struct Extremes {
    std::vector<float> low, high;
};

/// The scan that computes the exact sums and the extremes of a scene. Its results are complete after
/// run_pass(). Tiles are whole lines.
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

/// A scene that the statistics include.
struct SceneRecord {
    std::string name;
    int64_t bytes = 0; ///< size of the file; 0: unknown
    /// Time in seconds and nanoseconds since 1970, such as "1700000000.000000001"; empty: unknown.
    std::string modified;
    std::string mask; ///< the values of -mask and -mask-exclude; empty: not given
    int64_t samples = 0, lines = 0;
    int64_t valid = 0, invalid = 0;
    uint64_t digest = 0; ///< digest of the scene's sums
    Extremes extremes;
    /// Numbers and wavelengths of the scene's bands that were left out because they have no valid values.
    model::ModelBands left_out;
};

/// Upper bound of the pixels of all scenes together, and of each count in a file.
inline constexpr int64_t pixel_limit = int64_t{1} << 56;

/// The content of a statistics file. Scenes are sorted by name and digest, so that the order in which they
/// were added does not matter.
struct Statistics {
    model::ModelBands bands; ///< without extremes and mean
    Sums sums;
    std::vector<SceneRecord> scenes;

    explicit Statistics(int count) : sums(count) {}
    /// Adds a scene. \throws Error if the statistics already include a scene with the same pixels,
    /// or more than pixel_limit pixels with this scene.
    void add(const SceneRecord& scene, const Sums& of_scene);
    /// Adds all scenes of `other`, which was read from the file `name`. \throws Error if one of its scenes is
    /// already included, or if there are more than pixel_limit pixels with these scenes.
    void add(const Statistics& other, const std::string& name);
    /// Removes all scenes of `other`, which was read from the file `name`. \throws Error, which names the
    /// file, if one of its scenes is not included.
    void remove(const Statistics& other, const std::string& name);
    /// Returns the extremes over all scenes.
    Extremes extremes() const;
    /// Returns the bands that at least one scene has left out.
    model::ModelBands left_out() const;
    /// Returns sums.result(), and sets the constant bands from the extremes.
    stream::SceneStatistics result() const;
};

/// Returns a JSON document. The same scenes give the same bytes. `maker` is the name and version of the tool.
std::string to_json(const Statistics& statistics, const std::string& maker);
/// Reads a file. \throws Error that names the file if it is not a statistics file, was made by a newer
/// version, or is damaged.
Statistics from_json(const std::string& text, const std::string& name);
/// Returns true if a text begins like a document of to_json().
bool is_statistics(const std::string& begin);

/// The greatest size of a statistics file in bytes. Real files are far smaller: with 1,000 bands of floats, a
/// file has 60 MB.
inline constexpr uint64_t largest_file = uint64_t{256} << 20;

} // namespace hsi::statistics
