// SPDX-License-Identifier: MIT
// Detection whose background has several groups with separate statistics: the detectors of a pushbroom
// scanner, whose columns differ in calibration, or the classes of a map. Every pixel is scored against its
// own group; the result is the method (pixel/pixel.h) applied to the pixels of the group. For columns: D. R.
// Thompson et al.: Real-time remote detection and measurement for airborne imaging spectroscopy: a case study
// with methane, Atmospheric Measurement Techniques 8, 2015.
//
// A column has few pixels for many bands, so its matrix is shrunk. z is a pixel minus the mean, with each
// band scaled to unit variance (divided by n). For cem, z is the pixel with each band scaled to unit mean
// square. With P = sum z z' / n, squared Frobenius norms and B bands,
//   delta = |P - I|^2 / B,  beta = (sum |z|^4 / n - |P|^2) / (B n),  rho = min(max(beta, 0), delta) / delta
// rho is the shrinkage of O. Ledoit, M. Wolf: A well-conditioned estimator for large-dimensional covariance
// matrices, Journal of Multivariate Analysis 88(2), 2004, for the scaled bands. The matrix is
// M = (1 - rho) C + rho diag(C). Scores do not depend on the units of the bands, or on dark bands.
//
// A target that is common in its own background is scored too low. So the pixels with the greatest scores may
// be excluded from the statistics, which are then computed again.
//
// Results have the same bits for any tiles, memory, threads and ranks. One worker reads the columns of a
// group together. The pixels of a class are added up exactly, over fixed blocks of the scene.
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
inline constexpr Cost column_filter{3.5e-11, 6e-13}; ///< a column's background, per value and band
} // namespace cost

/// Whether a group has scores; otherwise the reason.
enum class GroupState : uint8_t {
    scored,
    few_pixels,  ///< the background has fewer than 2 pixels
    no_variance, ///< all pixels of the background are equal
    /// a target equals the background's mean (cem: is nearly zero compared with the background)
    target_is_mean
};

/// The result of a group.
struct GroupRecord {
    GroupState state = GroupState::few_pixels;
    bool regularised = false; ///< true if a ridge was added to the diagonal (Detector::ridge)
    int64_t pixels = 0;       ///< valid pixels of the group's background
    int64_t excluded = 0;     ///< background pixels that were excluded from the statistics
    double shrinkage = 0;
};

/// Options for the statistics of a group.
struct GroupOptions {
    Method method = Method::mf;
    Targets targets;
    /// `shrinkage` is used unless ledoit_wolf is set; `components` is not used.
    Conditioning conditioning;
    bool ledoit_wolf = false; ///< computes the shrinkage rho (see above) of each group
    /// Fraction of a group's pixels that are excluded, because their scores are greatest: 0 to below 0.5
    double exclude_share = 0;
    int exclude_iterations = 1; ///< number of repetitions, each starting with all pixels
};

/// Computes the shrinkage rho (see above) of a background from its moments and from the sum of |z|^4 over its
/// pixels. The sum needs a pass over the pixels, with |z|^2 = sum of weight (x - centre)^2.
class BandShrinkage {
  public:
    BandShrinkage(Method method, const stream::SceneStatistics& background);
    /// Uses the sums of products of `pixels` pixels, minus `mean`, over the bands `varying`. Row a begins at
    /// products + a * pitch, and is valid on the diagonal and right of it. For cem, `mean` is 0, and
    /// `varying` has all bands.
    BandShrinkage(const std::vector<double>& mean, const std::vector<int>& varying, const double* products,
                  ptrdiff_t pitch, int64_t pixels);
    const std::vector<double>& centre() const { return m_centre; } ///< one per band
    /// Returns 1 / variance per band, 0 for constant bands.
    const std::vector<double>& weight() const { return m_weight; }
    double share(double sum_of_fourth_powers) const; ///< Returns rho, 0..1.

  private:
    std::vector<double> m_centre, m_weight;
    /// m_off_diagonal: the sum of the squared off-diagonal elements of P
    double m_pixels = 0, m_bands = 0, m_off_diagonal = 0;
};

/// Returns the number of pixels that are excluded from the statistics of a background with `pixels` pixels.
HSI_HOST_DEVICE inline int64_t excluded_pixels(double share, int64_t pixels) {
    // In double precision, 0.29 * 100 is slightly less than 29, and 0.07 * 100 is slightly more than 7.
    constexpr double rounding = 1e-9;
    return static_cast<int64_t>(std::floor(share * static_cast<double>(pixels) + rounding));
}

/// Returns true if devices can compute the statistics and scores for `bands` bands. All values of the targets
/// must be finite.
bool groups_on_devices(const GroupOptions& options, int bands);

/// Scores by group; the outputs are those of make_detection(). They are NaN where a pixel has no group, or
/// its group has no background.
class GroupedDetection : public Detection {
  public:
    /// Return the number of valid pixels without a group, and of valid pixels whose group has no scores.
    int64_t without_group() const { return m_without_group; }
    int64_t in_bad_groups() const { return m_in_bad_groups; }
    /// Returns the records of all groups that have a pixel in the scene. Complete after the pass.
    virtual std::vector<GroupRecord> groups() const = 0;
    void exchange(parallel::Group& ranks) override;

  protected:
    int64_t m_without_group = 0, m_in_bad_groups = 0;
};

// Groups of columns. The columns of a group are read together, with all lines, and processed at once.
// ----------------------------------------------------------------------------------------------------------

using stream::Columns;

/// Makes an operation in which one worker computes the statistics and scores of each group. Tiles have all
/// lines. `mask`: the pixels that are used for statistics; null for all. It must outlive the operation.
std::unique_ptr<GroupedDetection> make_column_detection(const stream::CubeShape& scene,
                                                        const Columns& columns, const GroupOptions& options,
                                                        const Decision& decision, const PixelMask* mask);

// Groups that a map defines
// ----------------------------------------------------------------------------------------------------------

/// The group of every pixel of a scene, two bytes per pixel.
struct GroupPlane {
    int64_t samples = 0;
    int groups = 0;
    std::vector<uint16_t> of; ///< line by line: 0 without a group, otherwise the group's number from 1 on
    int at(int64_t line, int64_t sample) const { return of[static_cast<size_t>(line * samples + sample)]; }
    uint64_t bytes() const { return of.size() * sizeof(uint16_t); }
};

/// The result of GroupScan. tool::Scene requires the names of its members.
struct GroupBackgrounds {
    int64_t valid_pixels = 0, invalid_pixels = 0; ///< numbers of pixels in the whole scene
    std::vector<int> empty;                       ///< bands (0-based) without a finite value in the scene
    const std::vector<int>& empty_bands() const { return empty; }
    /// One per group; null for assumed backgrounds
    std::shared_ptr<const std::vector<stream::StatisticsSums>> sums;
    stream::CubeShape scene{};                           ///< shape of assumed backgrounds
    stream::SceneStatistics moments(size_t group) const; ///< group: index from 0
};

/// Computes the moments of every group, as BackgroundScan does for one background. plane and mask (may be
/// null) must outlive the scan.
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
    /// Returns assumed backgrounds, for plans before the pass.
    GroupBackgrounds assumed() const { return {m_scene.pixels(), 0, {}, nullptr, m_scene}; }
    /// Returns approximately the bytes of the sums of `groups` groups, which are in memory to the end.
    static uint64_t bytes(int bands, int groups);

  private:
    class Worker;
    struct Totals;
    const stream::CubeShape m_scene;
    const GroupPlane& m_plane;
    const PixelMask* m_mask;
    stream::StatisticsScan m_scan; ///< its workers process the blocks
    std::unique_ptr<Totals> m_totals;
};

/// Computes sum |z|^4 of every group (BandShrinkage). If `plane` is null, one group has all pixels. All
/// arguments must outlive the scan. Groups with null parts[g] are left out.
class GroupShrinkageScan final : public stream::Operation {
  public:
    GroupShrinkageScan(int bands, const std::vector<std::unique_ptr<BandShrinkage>>& parts,
                       const GroupPlane* plane, const PixelMask* mask);
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    double share(size_t group) const; ///< Returns the shrinkage rho of the group, 0..1.

  private:
    const std::vector<std::unique_ptr<BandShrinkage>>& m_parts;
    const GroupPlane* m_plane;
    const PixelMask* m_mask;
    std::vector<double> m_centre, m_weight; ///< bands x groups
    math::ExactSums m_fourth;
};

/// Makes an operation that scores each pixel with the detector of its group. detectors: one per group, null
/// for groups without scores (see records). All arguments must outlive the operation.
std::unique_ptr<GroupedDetection>
make_group_detection(const stream::CubeShape& scene, const GroupPlane& plane,
                     const std::vector<std::unique_ptr<Detector>>& detectors,
                     const std::vector<GroupRecord>& records, const Decision& decision);

/// A scene on a device whose groups are defined by a map. Each group has the statistics and scores of
/// make_column_detection(), in double precision throughout.
class GroupScene {
  public:
    virtual ~GroupScene() = default;
    /// Returns the pass that loads the scene. Run it first, once.
    virtual std::unique_ptr<stream::Operation> loading() = 0;
    /// Returns an operation like make_group_detection(), for a pass that reads no scene
    /// (stream::EmptySource). The scene must outlive the operation.
    virtual std::unique_ptr<GroupedDetection> make_detection(const Decision& decision) = 0;
};

/// Scores by group; the backend for devices is in hsi_cuda_detect_groups.so.
class GroupBackend : public Backend {
  public:
    /// Uses devices if groups_on_devices() is true, otherwise the CPU.
    virtual std::unique_ptr<GroupedDetection>
    make_column_detection(const stream::CubeShape& scene, const Columns& columns, const GroupOptions& options,
                          const Decision& decision, const PixelMask* mask) {
        return detect::make_column_detection(scene, columns, options, decision, mask);
    }
    /// Returns memory for a scene whose groups are defined by a map. Returns null on the CPU, if
    /// groups_on_devices() is false, or if `memory` bytes of the first device (0: 80 % of its free memory)
    /// are not enough. plane and mask, which may be null, are read during the call.
    virtual std::unique_ptr<GroupScene> make_group_scene(const stream::CubeShape& /*scene*/,
                                                         const GroupPlane& /*plane*/,
                                                         const GroupOptions& /*options*/,
                                                         const PixelMask* /*mask*/, uint64_t /*memory*/) {
        return nullptr;
    }
};

// Pixels that are excluded from the statistics
// ----------------------------------------------------------------------------------------------------------

/// Takes the scores of a pass, one band per target, and keeps the best score of each pixel, four bytes per
/// pixel.
class BestScores final : public stream::GatheringSink {
  public:
    explicit BestScores(const stream::CubeShape& scores);
    stream::CubeShape shape() const override { return m_shape; }
    bool concurrent() const override { return true; }
    uint64_t stored_bytes_per_pixel() const override { return 0; }
    void write(const Rect& core, const CubeView<float>& src) override;
    void gather(parallel::Group& ranks) override;
    uint64_t bytes() const { return m_best.size() * sizeof(float); }

    /// Returns the pixels of `mask` (null: all pixels) that have a score, without the excluded_pixels() of
    /// greatest score in each group (`plane` null: in the whole scene). Among equal scores, the first in
    /// raster order are excluded. Sets `excluded` to the number of excluded pixels per group.
    std::shared_ptr<PixelMask> without_greatest(double share, const GroupPlane* plane, const PixelMask* mask,
                                                std::vector<int64_t>& excluded) const;

  private:
    const stream::CubeShape m_shape;
    std::vector<float> m_best; ///< best score of each pixel; NaN if it has no score
};

/// Returns the positions in `scores` of the `count` best pixels, in arbitrary order. Pixels rank by falling
/// score, equal scores by rising position.
std::vector<int64_t> greatest_scores(const float* scores, int64_t pixels, int64_t count);

} // namespace hsi::detect
