// SPDX-License-Identifier: MIT
// Detection in a scene whose pixels are divided into groups with separate backgrounds. A group is some
// columns of a pushbroom scanner, since its columns differ in calibration, or a class of a map. Every pixel
// is scored against its own group, as if the group were a scene of its own (pixel/pixel.h). For columns: D.
// R. Thompson et al.: Real-time remote detection and measurement for airborne imaging spectroscopy: a case
// study with methane, Atmospheric Measurement Techniques 8, 2015.
//
// A column has few pixels for many bands, so its matrix is shrunk. z is a pixel minus the mean, with each
// band scaled to a variance of 1 (divisor n). For cem, z is the pixel with each band scaled to a mean square
// of 1. With P = sum z z' / n, squared Frobenius norms and B bands,
//   delta = |P - I|^2 / B,  beta = (sum |z|^4 / n - |P|^2) / (B n),  rho = min(max(beta, 0), delta) / delta
// rho is the shrinkage of O. Ledoit, M. Wolf: A well-conditioned estimator for large-dimensional covariance
// matrices, Journal of Multivariate Analysis 88(2), 2004, for the scaled bands. The matrix is
// M = (1 - rho) C + rho diag(C). Scores do not depend on the units of the bands, or on dark bands.
//
// If a target is common in a group, the target is part of the group's background, and its pixels are scored
// too low. So the pixels with the greatest scores may be excluded from the statistics, which are then
// computed again.
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

/// States whether a group has scores and, if not, the reason.
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

/// Computes the shrinkage rho (see above) of a background in two steps. The constructor takes the moments. A
/// pass over the pixels x then has to add up |z|^4, where |z|^2 = sum over the bands of weight (x -
/// centre)^2. share() computes rho from this sum.
class BandShrinkage {
  public:
    BandShrinkage(Method method, const stream::SceneStatistics& background);
    /// Takes the moments as sums of products: the sums of (x - mean)(x - mean)' over `pixels` pixels. Row a
    /// begins at products + a * pitch; only elements on the diagonal and right of it are used. `varying`: the
    /// bands that are not constant. For cem, `mean` is 0, and `varying` has all bands.
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

/// Returns true if devices can compute the statistics and scores: there are at most 4096 bands, and all
/// values of the targets are finite.
bool groups_on_devices(const GroupOptions& options, int bands);

/// A detection with groups. The outputs are those of make_detection(). They are also NaN where a pixel has no
/// group, or where its group has no scores.
class GroupedDetection : public Detection {
  public:
    /// Return the number of valid pixels without a group, and the number of valid pixels whose group has no
    /// scores.
    int64_t without_group() const { return m_without_group; }
    int64_t in_bad_groups() const { return m_in_bad_groups; }
    /// Returns the records of all groups. They are complete after the pass.
    virtual std::vector<GroupRecord> groups() const = 0;
    void exchange(parallel::Group& ranks) override;

  protected:
    int64_t m_without_group = 0, m_in_bad_groups = 0;
};

// Groups of columns. The columns of a group are read together, with all lines, and processed at once.
// ----------------------------------------------------------------------------------------------------------

using stream::Columns;

/// Makes the operation for groups of columns. A group is processed by one worker. Tiles have all lines.
/// `mask`: the pixels that are used for statistics; null for all. The mask must outlive the operation.
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

/// Computes the moments of every group, as BackgroundScan does for one background. The pixels outside the
/// mask are left out; `mask` may be null. plane and mask must outlive the scan.
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
    /// Returns the approximate bytes of the sums of `groups` groups. The sums remain in memory after the
    /// pass.
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

/// Computes the sum of |z|^4 of every group g, with the centre and weights of parts[g]. If parts[g] is null,
/// the group is left out. If `plane` is null, one group has all pixels. All arguments must outlive the scan.
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

/// Makes an operation that scores each pixel with the detector of its group. detectors: one per group; null
/// for groups without scores, whose reason is in `records`. All arguments must outlive the operation.
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

/// The backend of detections with groups. The backend for devices is in hsi_cuda_detect_groups.so.
class GroupBackend : public Backend {
  public:
    /// Uses devices if groups_on_devices() is true, otherwise the CPU.
    virtual std::unique_ptr<GroupedDetection>
    make_column_detection(const stream::CubeShape& scene, const Columns& columns, const GroupOptions& options,
                          const Decision& decision, const PixelMask* mask) {
        return detect::make_column_detection(scene, columns, options, decision, mask);
    }
    /// Allocates memory on the first device for a scene whose groups are defined by a map. Returns null on
    /// the CPU, if groups_on_devices() is false, or if `memory` bytes (0: 80 % of the device's free memory)
    /// are not enough. plane and mask are read only during the call; `mask` may be null.
    virtual std::unique_ptr<GroupScene> make_group_scene(const stream::CubeShape& /*scene*/,
                                                         const GroupPlane& /*plane*/,
                                                         const GroupOptions& /*options*/,
                                                         const PixelMask* /*mask*/, uint64_t /*memory*/) {
        return nullptr;
    }
};

// Pixels that are excluded from the statistics
// ----------------------------------------------------------------------------------------------------------

/// A sink for scores, one band per target. It keeps the best (greatest) score of each pixel, in four bytes.
class BestScores final : public stream::GatheringSink {
  public:
    explicit BestScores(const stream::CubeShape& scores);
    stream::CubeShape shape() const override { return m_shape; }
    bool concurrent() const override { return true; }
    uint64_t stored_bytes_per_pixel() const override { return 0; }
    void write(const Rect& core, const CubeView<float>& src) override;
    void gather(parallel::Group& ranks) override;
    uint64_t bytes() const { return m_best.size() * sizeof(float); }

    /// Returns the pixels of `mask` (null: all pixels) that have a score, without those of the greatest
    /// scores in each group. excluded_pixels() gives the number of pixels to exclude. If `plane` is null, the
    /// whole scene is one group. Among equal scores, the first in raster order are excluded. Sets `excluded`
    /// to the number of excluded pixels per group.
    std::shared_ptr<PixelMask> without_greatest(double share, const GroupPlane* plane, const PixelMask* mask,
                                                std::vector<int64_t>& excluded) const;

  private:
    const stream::CubeShape m_shape;
    std::vector<float> m_best; ///< best score of each pixel; NaN if it has no score
};

/// Returns the indices of the `count` greatest scores, in arbitrary order. Among equal scores, those with the
/// smaller index count as greater.
std::vector<int64_t> greatest_scores(const float* scores, int64_t pixels, int64_t count);

} // namespace hsi::detect
