// SPDX-License-Identifier: MIT
// ATDCA, automatic target detection and classification.
//
// S. Bernabe, S. Lopez, A. Plaza, R. Sarmiento: GPU Implementation of an Automatic Target Detection and
// Classification Algorithm for Hyperspectral Image Analysis, IEEE GRSL 10(2), 2013, Algorithms 1 and 2.
//
// The first target is the valid pixel of greatest Euclidean norm. Then, with q_k the orthonormalised targets:
//   OSP  the pixel of greatest ||P x||^2 = ||x||^2 - sum_k (q_k.x)^2, without the explicit projector
//   GS   the pixel of greatest |p.x|, p = 1 - sum_k (q_k.1) q_k, with 1 the vector of ones (the paper's w)
// Among ties, the smallest line wins, then the smallest sample. The scores of basis.h in double precision
// make every decision, so the result does not depend on tiles, threads and device.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "stream/pipeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::atdca {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost search{1.5e-9, 5e-12}; ///< per byte of the scene; the number of targets hardly matters
inline constexpr Cost angle{1e-10, 3e-13};   ///< per value and target of a map
} // namespace cost

enum class Method { osp, gs };
/// The score of GS; OSP ignores this option. absolute: the next target has the greatest |p.x|. sign: the next
/// target has the greatest p.x, as printed in the paper's Algorithm 2. With sign, pixels that are already
/// targets are left out, and the search ends if no p.x is positive.
enum class Score { absolute, sign };

struct Options {
    int targets = 1; ///< t >= 1
    Method method = Method::osp;
    Score score = Score::absolute;
    /// true: keeps the scene in memory if it fits. false: reads the scene again in each pass, which costs
    /// little if the file is in the system's cache.
    bool keep_scene = true;
};

/// The search ends early if ||P x||^2 of the best pixel is less than this fraction of the first target's
/// ||x||^2.
inline constexpr double rank_limit = 1e-6;

struct Target {
    int64_t line = 0, sample = 0;
    /// OSP: ||P x||^2 at the step that chose the target, in the squared unit of the data. GS: |p.x|, or p.x
    /// with Score::sign, in the unit of the data. The first target's score is ||x||^2 in both methods.
    double score = 0;
    std::vector<float> spectrum; ///< as stored in the scene that was searched, one value per band
};

/// The work that the search needed. For comparison: a full scan reads every tile once, and the plain
/// algorithm would make one full scan per target.
struct SearchCost {
    bool device = false;     ///< the search ran on a GPU
    bool in_memory = false;  ///< the scene was kept in host or device memory, so the file was read once
    int passes = 0;          ///< passes over the scene, including the first reading; some visit only a part
    int64_t tiles = 0;       ///< tiles of a full scan
    int64_t tile_visits = 0; ///< tiles read from the source
    double scan_equivalents = 0; ///< pixels examined in all passes divided by the scene's number of pixels
    int64_t pool = 0;            ///< spectra in the pool of candidates at the end
};

struct Detection {
    std::vector<Target> targets; ///< in order of detection
    std::string warning;         ///< why there are fewer targets than requested; empty otherwise
    int64_t valid_pixels = 0, invalid_pixels = 0;
    SearchCost cost;
    std::vector<stream::PassReport> passes;
};

/// Finds the targets. `pass` sets workers, memory (for tile buffers, a kept scene and candidates together),
/// forced tile, cancellation and progress. A scene without a valid pixel gives no target and no error. Throws
/// UsageError if options.targets < 1, and Error if the source cannot be read or memory is too small for a
/// tile.
///
/// The search does not scan the scene once per target. It guesses targets and then proves them:
///   1. The first reading finds the first target, and runs a rough search of the same type in every region
///      of some hundred pixels. The pixels that it finds form a pool of candidate spectra.
///   2. The exact search on the pool alone (plus the targets proved so far) guesses the remaining targets.
///   3. One scan applies the guessed sequence to every pixel. It compares the pixel's score at each step with
///      the score of the guessed target. If no pixel beats the guess, a full scan would choose the same
///      target, so one scan proves many targets. At the first step at which pixels beat the guess, a full
///      scan would choose the best of these pixels. This pixel and other strong pixels join the pool, and the
///      search returns to step 2.
/// OSP skips regions. ||P x||^2 never grows as targets are added (P' = P - q q', so ||P' x||^2 = ||P x||^2 -
/// (q.x)^2). So the greatest score of a region under the targets proved so far remains an upper bound. A
/// region whose bound is strictly smaller than the smallest score of the guessed sequence cannot contain a
/// pixel that beats, or ties with, any step, and need not be read. The bounds leave out the pixels of the
/// pool, because step 2 scores all of these again.
///
/// All ranks (parallel/ranks.h) call this function with the same arguments and share the work and the kept
/// scene. Each rank gets the whole result.
Detection detect(const stream::CubeSource& source, const Options& options, const stream::PassOptions& pass);

/// The memory that detect() will use, for -dry-run.
struct MemoryPlan {
    bool in_memory = false;
    TilePlan tiles;
    uint64_t scene_bytes = 0;  ///< the kept scene; 0 if it is streamed
    uint64_t pool_bytes = 0;   ///< limit of the pool of candidates
    uint64_t buffer_bytes = 0; ///< tiles and scratch memory of all workers
};
MemoryPlan plan_detection(const stream::CubeSource& source, const Options& options,
                          const stream::PassOptions& pass);

/// The outputs of classification for every pixel x, with targets t_k.
struct ClassifyOptions {
    /// First output: 1 + the index of the target with the smallest spectral angle, or 0 if this angle exceeds
    /// max_angle. If several targets have the same angle, the first of them is chosen.
    bool map = true;
    double max_angle = 180; ///< degrees
    enum class Scores { none, angle, abundance };
    /// Second output, one band per target. angle: the spectral angle in degrees. abundance: the least-squares
    /// abundance, (t_k' P x)/(t_k' P t_k) with P the projector onto the complement of the other targets. This
    /// is the detector of J. C. Harsanyi, C.-I. Chang, IEEE TGRS 32(4), 1994, scaled to 1 at the target
    /// itself.
    Scores scores = Scores::none;
};

/// Creates the classification. spectra: the targets' spectra, with one value for every band of the scene.
/// Invalid pixels are NaN in the output. Throws Error for abundances of linearly dependent targets.
std::unique_ptr<stream::Operation> make_classification(const std::vector<std::vector<float>>& spectra,
                                                       const ClassifyOptions& options);

/// Computes the residual of every pixel x outside the subspace of the targets U: ||P x||, P = I - U (U'U)^-1
/// U'. If `squared`, computes its square, which is the score of OSP. There is one output band. Without
/// targets, P x is x. Invalid pixels are NaN in the output. Uses double precision, ||x||^2 - sum_k (q_k.x)^2
/// with q_k the orthonormalised targets, so it is exact to about 1e-8 ||x||. Throws Error if a target depends
/// linearly on earlier targets; the message names it, counted from 1.
std::unique_ptr<stream::Operation> make_residual(int bands, const std::vector<std::vector<float>>& targets,
                                                 bool squared);

/// Returns p = 1 - sum_k (q_k.1) q_k, the projector of the GS method after these targets; the score is |p.x|.
/// Throws Error as make_residual() does.
std::vector<double> gs_projector(int bands, const std::vector<std::vector<float>>& targets);

/// Returns the spectral angle in degrees between a and b with n values; NaN if a or b is zero.
double spectral_angle(const double* a, const double* b, size_t n);

/// Returns the instruction set of the CPU backend's SIMD code ("AVX2", "AVX3", "SSE4" ...).
const char* simd_target();

/// The search on the CPU or on a device (hsi_cuda_atdca.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Returns true if the scene and the search fit into device_memory bytes (0: 80 % of the free memory).
    virtual bool fits(uint64_t device_memory, const stream::CubeShape& scene,
                      const Options& options) const = 0;
    /// Works as atdca::detect(). A device reads the scene once into its memory. It finds the same targets in
    /// the same order, with the same scores to the last bit. \throws Error if the scene does not fit.
    virtual Detection detect(const stream::CubeSource& source, const Options& options,
                             const stream::PassOptions& pass) = 0;
    /// Works as atdca::make_classification(). On a device, the map and abundances equal those of the CPU, and
    /// angles differ only in the last digits of acos. The operation must not outlive the backend.
    virtual std::unique_ptr<stream::Operation>
    make_classification(const std::vector<std::vector<float>>& spectra, const ClassifyOptions& options) = 0;
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::atdca
