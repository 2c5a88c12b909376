// SPDX-License-Identifier: MIT
// Detection whose background has several parts, each with statistics of its own: the detectors of a
// pushbroom scanner, whose columns differ by their calibration, or the classes of a map. Every pixel is
// scored against its own group; that is the method (pixel/pixel.h) on the pixels of the group alone. For
// columns: D. R. Thompson et al.: Real-time remote detection and measurement for airborne imaging
// spectroscopy: a case study with methane, Atmospheric Measurement Techniques 8, 2015.
//
// A column has few pixels for many bands, so its matrix is shrunk. On bands of unit variance (divided by n;
// cem: of unit mean square) P = sum z z' / n, and with squared Frobenius norms and B bands
//   delta = |P - I|^2 / B,  beta = (sum |z|^4 / n - |P|^2) / (B n),  rho = min(max(beta, 0), delta) / delta
// is the share of O. Ledoit, M. Wolf: A well-conditioned estimator for large-dimensional covariance matrices,
// Journal of Multivariate Analysis 88(2), 2004, for these bands: M = (1 - rho) C + rho diag(C). Neither units
// nor dark bands matter.
//
// A target that is common in its own background is scored too low. So the pixels that have the greatest
// scores may leave the statistics, which are then made anew.
//
// Neither tiles, memory, threads nor ranks change a bit: the columns of a group are read together, by whoever
// is free, and the pixels of a class are added up over fixed blocks of the scene, without rounding.
#pragma once

#include "core/cost.h"
#include "core/host_device.h"
#include "detect/pixel/pixel.h"
#include "math/exact_sum.h"
#include "stream/column_strips.h"
#include "stream/pixel_mask.h"
#include "stream/statistics_scan.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::stream {
struct StatisticsSums;
} // namespace hsi::stream

namespace hsi::detect {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost column_filter{3.5e-11, 6e-13}; ///< a value and a band: a column's background
} // namespace cost

/// Whether a group has scores, and why not.
enum class GroupState : uint8_t {
    scored,
    few_pixels,    ///< fewer than 2 pixels of background
    no_variance,   ///< all of them are equal
    target_is_mean ///< (cem: a target is zero beside them)
};

/// What became of a group.
struct GroupRecord {
    GroupState state = GroupState::few_pixels;
    bool regularised = false; ///< something was added to the diagonal (Detector::ridge)
    int64_t pixels = 0;       ///< valid ones of its background
    int64_t excluded = 0;     ///< of these, that left the statistics
    double shrinkage = 0;
};

/// What makes the statistics of a group.
struct GroupOptions {
    Method method = Method::mf;
    Targets targets;
    Conditioning conditioning;  ///< shrinkage is the share unless ledoit_wolf; no components
    bool ledoit_wolf = false;   ///< the share above, of each group
    double exclude_share = 0;   ///< of a group's pixels, those of greatest score; 0 to below 0.5
    int exclude_iterations = 1; ///< so often, each time from all pixels
};

/// The share of a background above, from its moments, and from sum |z|^4 over its pixels, which a look at
/// them finds: |z|^2 = sum of weight (x - centre)^2.
class BandShrinkage {
  public:
    BandShrinkage(Method method, const stream::SceneStatistics& background);
    /// From sums of products of so many pixels less their mean, of the bands `varying` with themselves: row a
    /// at products + a * pitch, right of the diagonal and on it. The method is none that takes R (cem).
    BandShrinkage(const std::vector<double>& mean, const std::vector<int>& varying, const double* products,
                  ptrdiff_t pitch, int64_t pixels);
    const std::vector<double>& centre() const { return m_centre; } ///< a band each
    /// 1 / variance, 0 for bands without one.
    const std::vector<double>& weight() const { return m_weight; }
    double share(double sum_of_fourth_powers) const; ///< 0..1

  private:
    std::vector<double> m_centre, m_weight;
    double m_pixels = 0, m_bands = 0, m_off_diagonal = 0; ///< the last one: of P, squared
};

/// How many pixels leave the statistics of a background of so many.
HSI_HOST_DEVICE inline int64_t excluded_pixels(double share, int64_t pixels) {
    constexpr double rounding =
        1e-9; // 0.07 of 100 is a little more than 7, 0.29 of 100 a little less than 29
    return static_cast<int64_t>(std::floor(share * static_cast<double>(pixels) + rounding));
}

/// Whether devices make these statistics and scores: of so many bands, and targets that can be refused by
/// nobody.
bool groups_on_devices(const GroupOptions& options, int bands);

/// Scores by group; outputs as make_detection()'s. NaN where a pixel has no group, or its group no
/// background.
class GroupedDetection : public Detection {
  public:
    int64_t without_group() const { return m_without_group; } ///< valid pixels
    int64_t in_bad_groups() const { return m_in_bad_groups; } ///< valid pixels whose group has no scores
    /// Of all groups that have a pixel in the scene; complete after the pass.
    virtual std::vector<GroupRecord> groups() const = 0;
    void exchange(parallel::Group& ranks) override;

  protected:
    int64_t m_without_group = 0, m_in_bad_groups = 0;
};

// Groups of columns: read together, with all lines, and done in one go
// ----------------------------------------------------------------------------------------------------------

using stream::Columns;

/// Statistics and scores of each group, one after another, by one worker. Tiles have all lines. `mask`, which
/// may be null and must outlive this: the pixels that count in statistics.
std::unique_ptr<GroupedDetection> make_column_detection(const stream::CubeShape& scene,
                                                        const Columns& columns, const GroupOptions& options,
                                                        const Decision& decision, const PixelMask* mask);

// Groups that a map tells
// ----------------------------------------------------------------------------------------------------------

/// The group of every pixel of a scene, two bytes each.
struct GroupPlane {
    int64_t samples = 0;
    int groups = 0;
    std::vector<uint16_t> of; ///< line by line: 0 for none, else a group's number, from 1 on
    int at(int64_t line, int64_t sample) const { return of[static_cast<size_t>(line * samples + sample)]; }
    uint64_t bytes() const { return of.size() * sizeof(uint16_t); }
};

/// What GroupScan finds; named as tool::Scene wants it.
struct GroupBackgrounds {
    int64_t valid_pixels = 0, invalid_pixels = 0; ///< of the scene
    std::vector<int> empty;                       ///< bands (0-based) without a finite value in the scene
    const std::vector<int>& empty_bands() const { return empty; }
    std::shared_ptr<const std::vector<stream::StatisticsSums>> sums; ///< a group each; null: assumed ones
    stream::CubeShape scene{};                                       ///< of assumed ones
    stream::SceneStatistics moments(size_t group) const;             ///< group: from 0
};

/// The moments of every group, as BackgroundScan's. plane and mask (which may be null) must outlive it.
class GroupScan final : public stream::Operation {
  public:
    GroupScan(const stream::CubeShape& scene, const GroupPlane& plane, const PixelMask* mask);
    ~GroupScan() override;
    int64_t align_samples() const override { return m_scan.align_samples(); }
    int64_t align_lines() const override { return m_scan.align_lines(); }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    uint64_t preferred_bytes() const override { return m_scan.preferred_bytes(); }
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    GroupBackgrounds result() const;
    GroupBackgrounds assumed() const { return {m_scene.pixels(), 0, {}, nullptr, m_scene}; } ///< for plans
    /// About what the sums of so many groups take, held to the end.
    static uint64_t bytes(int bands, int groups);

  private:
    class Worker;
    struct Totals;
    const stream::CubeShape m_scene;
    const GroupPlane& m_plane;
    const PixelMask* m_mask;
    stream::StatisticsScan m_scan; ///< whose workers take the blocks
    std::unique_ptr<Totals> m_totals;
};

/// sum |z|^4 of every group (BandShrinkage), `plane` null: of one group that has all pixels. All must outlive
/// it; a null parts[g]: not of this one.
class GroupShrinkageScan final : public stream::Operation {
  public:
    GroupShrinkageScan(int bands, const std::vector<std::unique_ptr<BandShrinkage>>& parts,
                       const GroupPlane* plane, const PixelMask* mask);
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    double share(size_t group) const; ///< 0..1

  private:
    const std::vector<std::unique_ptr<BandShrinkage>>& m_parts;
    const GroupPlane* m_plane;
    const PixelMask* m_mask;
    std::vector<double> m_centre, m_weight; ///< bands x groups
    math::ExactSums m_fourth;
};

/// detectors: a group each; null where it has no scores, as records tell. All must outlive it.
std::unique_ptr<GroupedDetection>
make_group_detection(const stream::CubeShape& scene, const GroupPlane& plane,
                     const std::vector<std::unique_ptr<Detector>>& detectors,
                     const std::vector<GroupRecord>& records, const Decision& decision);

/// A scene on a device whose groups a map tells. Each has the statistics and scores of
/// make_column_detection() there, in double precision throughout.
class GroupScene {
  public:
    virtual ~GroupScene() = default;
    /// The pass that takes the scene in; before all else, once.
    virtual std::unique_ptr<stream::Operation> loading() = 0;
    /// As make_group_detection(), of no scene that is read (stream::EmptySource). This must outlive it.
    virtual std::unique_ptr<GroupedDetection> make_detection(const Decision& decision) = 0;
};

/// Scores by group; hsi_cuda_detect_groups.so has those of devices.
class GroupBackend : public Backend {
  public:
    /// On devices where groups_on_devices() says so, else on the CPU.
    virtual std::unique_ptr<GroupedDetection>
    make_column_detection(const stream::CubeShape& scene, const Columns& columns, const GroupOptions& options,
                          const Decision& decision, const PixelMask* mask) {
        return detect::make_column_detection(scene, columns, options, decision, mask);
    }
    /// A place for a scene whose groups a map tells; null on the CPU, where groups_on_devices() says so, and
    /// where `memory` bytes of the first device (0: 80 % of what is free) do not hold it. plane and mask,
    /// which may be null, are read now.
    virtual std::unique_ptr<GroupScene> make_group_scene(const stream::CubeShape& /*scene*/,
                                                         const GroupPlane& /*plane*/,
                                                         const GroupOptions& /*options*/,
                                                         const PixelMask* /*mask*/, uint64_t /*memory*/) {
        return nullptr;
    }
};

// Pixels that leave the statistics
// ----------------------------------------------------------------------------------------------------------

/// Takes the scores of a pass, a band a target, and keeps each pixel's best one: four bytes a pixel.
class BestScores final : public stream::GatheringSink {
  public:
    explicit BestScores(const stream::CubeShape& scores);
    stream::CubeShape shape() const override { return m_shape; }
    bool concurrent() const override { return true; }
    uint64_t stored_bytes_per_pixel() const override { return 0; }
    void write(const Rect& core, const CubeView<float>& src) override;
    void gather(parallel::Group& ranks) override;
    uint64_t bytes() const { return m_best.size() * sizeof(float); }

    /// Of each group (`plane` null: of the whole scene) those pixels of `mask` (null: of all) that have a
    /// score, without excluded_pixels() of them: the ones of greatest score, of equal ones the first in
    /// raster order. `excluded`: how many, a group each.
    std::shared_ptr<PixelMask> without_greatest(double share, const GroupPlane* plane, const PixelMask* mask,
                                                std::vector<int64_t>& excluded) const;

  private:
    const stream::CubeShape m_shape;
    std::vector<float> m_best; ///< NaN: no score
};

/// The first `count` of the pixels whose scores are these, by falling score, equal ones by rising number:
/// their places in `scores`, in no order.
std::vector<int64_t> greatest_scores(const float* scores, int64_t pixels, int64_t count);

} // namespace hsi::detect
