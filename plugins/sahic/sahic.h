// SPDX-License-Identifier: MIT
// Spectral-spatial classification after Z. Wu et al., "GPU Parallel Implementation of Spatially Adaptive
// Hyperspectral Image Classification" (IEEE JSTARS 11(4), 2018). A sparse multinomial logistic regression
// (MLR) on RBF features gives class probabilities pixel by pixel. A Markov random field smooths them; its
// potential is a spatially adaptive vector total variation.
//
// This header has the MLR model and its file, the class probabilities of a cube, and the smoothing. Training
// is in sahic/lorsal.h.
#pragma once

#include "core/cancel.h"
#include "core/cost.h"
#include "core/cuda_module.h"
#include "core/host_memory.h"
#include "model/classes.h"
#include "model/training_set.h"
#include "stream/operation.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi {
class Team;
namespace parallel {
class JointMemory;
}
} // namespace hsi

namespace hsi::sahic {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost classifier{4e-10, 1e-12}; ///< seconds per value and class
inline constexpr Cost mrf{1.3e-8, 3e-11};       ///< seconds per pixel, class and iteration
} // namespace cost

// ---- The spectral model -------------------------------------------------------------------------------

using model::ModelClass; ///< ModelClass::weight is not used.

/// Sparse multinomial logistic regression on RBF features. With u = x / scale:
///   h(x) = [1, K(x, a_1) .. K(x, a_J)],  K(x, a) = exp(-|u_x - u_a|^2 / (2 delta^2 spread)),
///   P(class k | x) = exp(w_k . h(x)) / sum over j of exp(w_j . h(x)),  w of the last class = 0.
/// Only anchors that some class uses are stored.
struct MlrModel : model::ModelBands {
    double scale = 1;   ///< greatest absolute value of the training scene
    double delta = 0.8; ///< width of the kernel, without unit
    double spread = 1;  ///< mean of |u_i - u_j|^2 over all ordered pairs of training pixels

    std::vector<ModelClass> classes; ///< ordered by class value

    // The regressors
    std::vector<float> anchors;  ///< [anchor][band], values as in the scene
    std::vector<double> weights; ///< [class, without the last][1 + anchor]; the constant comes first

    // Information about the training
    std::string solver; ///< "paper": a fixed number of steps; "optimum": iteration to a proven gap
    int iterations = 0;
    double lambda_c = 0, beta = 0;
    double objective = 0; ///< -log likelihood + lambda_c |w|_1
    double gap = 0;       ///< optimum: objective minus a proven lower bound of the minimum
    int64_t training_pixels = 0;
    std::string trained_on, labels; ///< file names, for information only
    model::Origin origin;

    int features() const { return static_cast<int>(bands.size()); }
    int class_count() const { return static_cast<int>(classes.size()); }
    int64_t anchor_count() const {
        return bands.empty() ? 0 : static_cast<int64_t>(anchors.size() / bands.size());
    }
    /// Returns the number of non-zero weights.
    int64_t active_weights() const;
    /// Returns gamma of K(x, a) = exp(-gamma |u_x - u_a|^2).
    double gamma() const { return 1.0 / (2.0 * delta * delta * spread); }
};

/// Returns the model file: JSON with one line of text per anchor. Numbers are restored exactly when the file
/// is read.
std::string to_json(const MlrModel& model);
/// Reads a model. Any text is safe to read. `name` is used in messages. Throws Error that describes the
/// problem.
MlrModel from_json(const std::string& text, const std::string& name);
MlrModel read_model(const std::string& path);
/// Changes the model so that it accepts values in the scale `scene`. `by` converts such values to the scale
/// from which the model was made. Probabilities stay the same except for rounding errors. Throws Error, which
/// names the model's `file`, if the factors of the bands differ, because the kernel has only one scale.
void rescale(MlrModel& model, const std::string& file, const model::Rescaling& by,
             const model::ValueScale& scene);

/// Returns the instruction set of the CPU's inner loops.
const char* simd_target();

// ---- One pass over the scene: probabilities and spatial weights ----------------------------------------

/// The requested outputs of SpectralPass, which are in the order of the members.
struct SpectralOptions {
    /// Class value of the most probable class, one band; of equally probable classes, the first.
    bool map = false;
    bool probabilities = false; ///< one band per class
    bool confidence = false;    ///< the largest probability, one band
    /// The spatial weight a = 1 / (1 + sqrt(sum over bands of (forward difference in x)^2 + (in y)^2)), one
    /// band. Values are divided by the model's scale. Differences that leave the scene or touch an invalid
    /// pixel are zero.
    bool weight = false;
    /// The scene's first line [band][sample] and first sample [band][line], for the weight at a wrapping
    /// border. If they are empty, the border is mirrored.
    std::vector<float> first_line, first_sample;
};

/// The operation that computes the outputs of SpectralOptions. Invalid pixels are NaN, except for their
/// weight, which is 1.
class SpectralPass : public stream::Operation {
  public:
    SpectralPass(std::shared_ptr<const MlrModel> model, SpectralOptions options, int64_t samples,
                 int64_t lines);
    int64_t halo() const override { return m_options.weight ? 1 : 0; }
    std::vector<int> output_bands() const override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    const MlrModel& model() const { return *m_model; }
    /// The counts are complete after the pass.
    int64_t invalid() const { return m_invalid; }
    const std::vector<int64_t>& pixels_by_class() const { return m_by_class; }
    /// Adds the counts of a worker. Backends call this function from stop().
    void count(const std::vector<int64_t>& by_class, int64_t invalid);

  protected:
    std::shared_ptr<const MlrModel> m_model;
    SpectralOptions m_options;
    int64_t m_samples, m_lines; ///< size of the scene

  private:
    int64_t m_invalid = 0;
    std::vector<int64_t> m_by_class;
};

std::unique_ptr<SpectralPass> make_spectral_pass(std::shared_ptr<const MlrModel> model,
                                                 const SpectralOptions& options, int64_t samples,
                                                 int64_t lines);

// ---- The Markov random field -----------------------------------------------------------------------------

/// Minimises over q: 1/2 |q - p|_F^2 + lambda sum_i a(i) TV_i(q), subject to q >= 0, sum over classes = 1,
/// and q one-hot at training pixels. The method is ADMM with the splitting of the paper's Algorithm 1. The
/// number of iterations is fixed.
struct MrfOptions {
    double lambda = 2;
    double mu = 0.05; ///< penalty mu; the threshold of V5 is lambda a(i) / mu
    int iterations = 200;
    bool anisotropic = false;
};

/// Returns the halo of a tile: the number of pixels around the tile with which its core agrees with the
/// result for the whole scene to 1e-4 (8e-6 was measured at mu = 0.05). Returns an empty value if no
/// reasonable halo is wide enough for this mu and number of iterations.
std::optional<int64_t> mrf_halo(const MrfOptions& options);

/// One tile, or a whole scene. Arrays are packed, line by line.
struct MrfProblem {
    int classes = 0;
    int64_t lines = 0, samples = 0;
    const float* p = nullptr;      ///< [class][line][sample]; NaN in class 0 marks an invalid pixel
    const float* weight = nullptr; ///< a, [line][sample]
    /// [line][sample]: 0: free pixel; 1 + index of the class: training pixel.
    const uint16_t* fixed = nullptr;
    /// True if the scene wraps around, so that the right edge touches the left edge, and the bottom touches
    /// the top. Otherwise its border is mirrored. The window of a tile includes the pixels beyond a wrapping
    /// border.
    bool periodic = false;
    Rect core; ///< part of the window for which residuals are computed
};

/// Sums over the core in the last iteration. A root mean square is sqrt(sum / entries).
struct MrfResiduals {
    double v1 = 0, v2 = 0, v3 = 0, v4 = 0; ///< sum of (q - V_i)^2
    double v5 = 0;                         ///< sum of |H V4 - V5|^2 in both directions
    double change = 0;                     ///< sum of (q - q of the previous iteration)^2
    double objective = 0;                  ///< 1/2 |q - p|^2 + lambda sum a TV(q) over valid pixels
    int64_t entries = 0;                   ///< classes x pixels of the core
    MrfResiduals& operator+=(const MrfResiduals& o);
};

class MrfSolver {
  public:
    virtual ~MrfSolver() = default;
    /// Solves the problem. `q` is [class][line][sample], as the iteration leaves it (values may be slightly
    /// negative). Invalid pixels have finite values. Throws Cancelled.
    virtual MrfResiduals solve(const MrfProblem& problem, float* q, const CancelFlag* cancel) = 0;
    /// solve() calls this function, on the thread that has called solve(), with the fraction of the
    /// iterations that are done.
    std::function<void(double)> progress;
};

/// The size of the largest window that a solver receives. The solver allocates its memory once.
struct MrfLimits {
    int classes = 0;
    int64_t lines = 0, samples = 0;
};

std::unique_ptr<MrfSolver> make_mrf_solver(const MrfOptions& options, const MrfLimits& limits, int threads);
/// Creates a solver with a team (parallel/team.h) whose threads may belong to several processes. In this
/// case, each process creates a solver with the same arguments and calls solve() with the same problem. `q`
/// must then be in the memory that the processes share.
std::unique_ptr<MrfSolver> make_mrf_solver(const MrfOptions& options, const MrfLimits& limits,
                                           std::unique_ptr<Team> team);
/// Returns the host bytes that the CPU solver allocates.
uint64_t mrf_bytes(const MrfLimits& limits);

/// Projects q onto the simplex (non-negative, sum 1) in place. There are `count` pixels, and class planes are
/// `stride` apart.
void project_on_simplex(float* q, int classes, int64_t stride, int64_t count);

// --- The backends
// ----------------------------------------------------------------------------------

struct LorsalOptions;
struct LorsalResult;

/// Trains models, and creates operations and solvers, on the CPU or on devices (hsi_cuda_sahic.so).
/// make_cpu_backend() is in sahic/lorsal.h, because training needs a BLAS.
class Backend {
  public:
    virtual ~Backend() = default;
    virtual LorsalResult train(const model::TrainingSet& set, const LorsalOptions& options) = 0;
    virtual std::unique_ptr<SpectralPass> make_spectral_pass(std::shared_ptr<const MlrModel> model,
                                                             const SpectralOptions& options, int64_t samples,
                                                             int64_t lines) = 0;
    virtual std::unique_ptr<MrfSolver> make_mrf_solver(const MrfOptions& options,
                                                       const MrfLimits& limits) = 0;
    /// Returns true if the backend supports make_joint_mrf_solver().
    virtual bool joins() const { return false; }
    /// Creates a solver with which all processes that have this shared memory solve one problem together.
    virtual std::unique_ptr<MrfSolver> make_joint_mrf_solver(const MrfOptions&, const MrfLimits&,
                                                             std::shared_ptr<parallel::JointMemory>) {
        return nullptr;
    }
    /// Return the host bytes and device bytes of a solver.
    virtual uint64_t mrf_host_bytes(const MrfLimits& limits) const = 0;
    virtual uint64_t mrf_device_bytes(const MrfLimits& limits) const = 0;
    /// Returns the allocator of host buffers that the solver reads and writes.
    virtual std::shared_ptr<HostAllocator> allocator() const { return paged_allocator(); }
    /// Returns three times in seconds: of all kernels for training, for probabilities and for the MRF since
    /// the backend was created, without copies. They are 0 on the CPU.
    virtual std::array<double, 3> kernel_seconds() const { return {}; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

} // namespace hsi::sahic
