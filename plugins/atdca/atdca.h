// SPDX-License-Identifier: MIT
// ATDCA, automatic target detection and classification.
//
// S. Bernabe, S. Lopez, A. Plaza, R. Sarmiento: GPU Implementation of an Automatic Target Detection and
// Classification Algorithm for Hyperspectral Image Analysis, IEEE GRSL 10(2), 2013, Algorithms 1 and 2.
//
// First target: the valid pixel of greatest Euclidean norm. Then, with q_k the orthonormalised targets,
//   OSP  the pixel of greatest ||P x||^2 = ||x||^2 - sum_k (q_k.x)^2      (the explicit projector is not
//   needed) GS   the pixel of greatest |p.x|, p = 1 - sum_k (q_k.1) q_k, 1 the vector of ones (the paper's w)
// Ties go to the smallest line, then the smallest sample. Every decision follows the scores which basis.h
// defines in double precision, for any tiles, threads and device.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "stream/pipeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::atdca {

/// Its costs, for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost search{1.5e-9, 5e-12}; ///< a byte of the scene; targets hardly count
inline constexpr Cost angle{1e-10, 3e-13};   ///< a value and a target of a map
} // namespace cost

enum class Method { osp, gs };
/// GS only. absolute: the greatest |p.x|; sign: the greatest p.x, as the paper's Algorithm 2 is printed;
/// targets already chosen are then left out, and it ends when no p.x is positive.
enum class Score { absolute, sign };

struct Options {
    int targets = 1; ///< t >= 1
    Method method = Method::osp;
    Score score = Score::absolute;
    /// Keep the scene in memory when it fits. false: read it again, when that costs less than the memory to
    /// keep it in (the system has the file in its own).
    bool keep_scene = true;
};

/// The search ends early when ||P x||^2 of the best pixel is less than this share of the first target's.
inline constexpr double rank_limit = 1e-6;

struct Target {
    int64_t line = 0, sample = 0;
    /// OSP: ||P x||^2 when it was chosen. GS: |p.x| (or p.x); the first target's is ||x||^2 in both. In the
    /// data's unit squared, or in its unit.
    double score = 0;
    std::vector<float> spectrum; ///< as stored in the scene that was searched, a value a band
};

/// The cost of the search. A full scan looks at every tile once; the plain algorithm makes one for each
/// target.
struct SearchCost {
    bool device = false;     ///< the search ran on a GPU
    bool in_memory = false;  ///< the scene was kept in host or device memory: the file was read once
    int passes = 0;          ///< passes over the scene, the first reading included; some visit a part only
    int64_t tiles = 0;       ///< of a full scan
    int64_t tile_visits = 0; ///< tiles read from the source
    double scan_equivalents = 0; ///< pixels looked at in all passes, by the scene's number of pixels
    int64_t pool = 0;            ///< spectra in the pool of candidates at the end
};

struct Detection {
    std::vector<Target> targets; ///< in order of detection
    std::string warning;         ///< why there are fewer than requested; empty otherwise
    int64_t valid_pixels = 0, invalid_pixels = 0;
    SearchCost cost;
    std::vector<stream::PassReport> passes;
};

/// Finds the targets. `pass` gives lanes, memory (for everything: tile buffers, a kept scene, candidates),
/// forced tile, cancellation and progress. A scene without a valid pixel gives no target and no error. Throws
/// UsageError when options.targets < 1, Error when the source cannot be read or memory is too small for a
/// tile.
///
/// How few looks at the scene suffice. Instead of one scan a target, targets are guessed and then proved:
///  1. The first reading finds the first target, and in every region of some hundred pixels runs a rough
///  search of
///     the same kind; what it finds goes into a pool of candidate spectra.
///  2. The exact search on the pool alone (plus the targets proved so far) guesses the whole rest of the
///  sequence.
///  3. One scan applies that sequence to every pixel, and compares its score at each step with the guess's.
///  Where no
///     pixel beats the guess, the guess is the full scan's choice, by definition: one scan proves many
///     targets. At the first step where a pixel beats it, the best such pixel is the full scan's choice; it
///     and other strong pixels join the pool, and the search returns to 2.
/// OSP skips regions: ||P x||^2 never grows as targets are added (P' = P - q q', so ||P' x||^2 = ||P x||^2 -
/// (q.x)^2), so the greatest score of a region under the targets proved so far is an upper bound from then
/// on. A region whose bound is strictly smaller than the smallest score of the guessed sequence cannot hold a
/// pixel that beats, or ties with, any step, and need not be read; pixels in the pool are re-scored there and
/// do not count towards the bound.
///
/// Several ranks (parallel/ranks.h) all call this with the same arguments and share the work and the kept
/// scene; each gets the whole result.
Detection detect(const stream::CubeSource& source, const Options& options, const stream::PassOptions& pass);

/// The memory plan of detect(), for -dry-run.
struct MemoryPlan {
    bool in_memory = false;
    TilePlan tiles;
    uint64_t scene_bytes = 0;  ///< the kept scene; 0 when it is streamed
    uint64_t pool_bytes = 0;   ///< ceiling of the pool of candidates
    uint64_t buffer_bytes = 0; ///< tiles and scratch of all lanes
};
MemoryPlan plan_detection(const stream::CubeSource& source, const Options& options,
                          const stream::PassOptions& pass);

/// The outputs of classification for every pixel x, with targets t_k.
struct ClassifyOptions {
    bool map = true; ///< first output: 1 + the index of the target with the smallest spectral angle (the
                     ///< first of equals), 0 where that angle exceeds max_angle
    double max_angle = 180; ///< degrees
    enum class Scores { none, angle, abundance };
    /// Second output, a band a target. angle: the spectral angle in degrees. abundance: the least-squares
    /// abundance, (t_k' P x)/(t_k' P t_k) with P the projector onto the complement of the other targets: the
    /// detector of J. C. Harsanyi, C.-I. Chang, IEEE TGRS 32(4), 1994, scaled to 1 at the target itself.
    Scores scores = Scores::none;
};

/// spectra: of the targets, a value for every band of the scene it will run over. Invalid pixels are NaN in
/// the output. Throws Error for abundances of linearly dependent targets.
std::unique_ptr<stream::Operation> make_classification(const std::vector<std::vector<float>>& spectra,
                                                       const ClassifyOptions& options);

/// The residual of every pixel x outside the subspace of the targets: ||P x||, P = I - U (U'U)^-1 U', or its
/// square, which is the score of OSP. One output band; no target: ||x||. Invalid pixels are NaN in the
/// output. Computed in double precision as ||x||^2 - sum_k (q_k.x)^2, q_k the orthonormalised targets, hence
/// exact to about 1e-8 ||x||. Throws Error naming the target (counted from 1) that depends on those before
/// it.
std::unique_ptr<stream::Operation> make_residual(int bands, const std::vector<std::vector<float>>& targets,
                                                 bool squared);

/// p = 1 - sum_k (q_k.1) q_k, the projector of the GS method after these targets: its score is |p.x|. Throws
/// Error as make_residual() does.
std::vector<double> gs_projector(int bands, const std::vector<std::vector<float>>& targets);

/// Spectral angle in degrees, of n values each; NaN when one of them is zero.
double spectral_angle(const double* a, const double* b, size_t n);

/// Where the CPU backend's SIMD code was dispatched to ("AVX2", "AVX3", "SSE4" ...).
const char* simd_target();

/// The search on the CPU or on a device (hsi_cuda_atdca.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// True when the scene and the search fit into device_memory bytes (0: 80 % of the free memory).
    virtual bool fits(uint64_t device_memory, const stream::CubeShape& scene,
                      const Options& options) const = 0;
    /// As atdca::detect(). On a device with the scene there, read once: the same targets in the same order,
    /// and the same scores to the last bit. \throws Error when it does not fit.
    virtual Detection detect(const stream::CubeSource& source, const Options& options,
                             const stream::PassOptions& pass) = 0;
    /// As atdca::make_classification(). On a device the map and abundances are the same; angles except for
    /// the last digits of acos. It must not outlive the backend.
    virtual std::unique_ptr<stream::Operation>
    make_classification(const std::vector<std::vector<float>>& spectra, const ClassifyOptions& options) = 0;
    /// Device bytes that are free, of the device that has least; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::atdca
