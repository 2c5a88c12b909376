// SPDX-License-Identifier: MIT
// EADP, the extended anisotropic diffusion profile.
//
// A. Accion, F. Arguello, D. B. Heras: Extended Anisotropic Diffusion Profiles in GPU for Hyperspectral
// Imagery. For every component X, the profile contains X and one diffused copy per diffusion time T
// (equations 1 to 10):
//   L = Gaussian of X (radius ceil(3 sigma), mirrored at the border, renormalised over valid pixels)
//   m = Scharr gradient magnitude of L, in the data's unit per pixel; k = a percentile of the non-zero m
//   g = 1/(1 + m^2/k^2) (g2), exp(-m^2/k^2) (g1), or 1 - exp(-3.31488/(m/k)^8) (g3)
//   dX/dt = div(g grad X) for time T, five-point stencil, no flux over the border or into invalid pixels.
//
// A cycle of fast explicit diffusion (equations 6 to 8) with constant g is a polynomial of the diffusion
// operator A applied to X, and so is the exact solution exp(T A) X to any tolerance. In Chebyshev polynomials
// of I + tau_max A, the copies of all times share one recurrence, with one stencil sweep per degree:
//   Y_0 = X, Y_1 = X + tau_max A X, Y_{k+1} = 2 (Y_k + tau_max A Y_k) - Y_{k-1};  copy c = sum_k a_{c,k} Y_k.
// The setup (L, m, k, g) is computed in double precision without fused operations, so that every backend
// makes the same decisions.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "stream/band_writer.h"
#include "stream/operation.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::eadp {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost value{5e-8, 3e-10};  ///< per value
inline constexpr Cost sweep{4e-10, 2e-12}; ///< per value and sweep
} // namespace cost

enum class Diffusivity { g1, g2, g3 };
enum class Evolution { independent, cascade, incremental };
enum class Scheme { fed, exact };
enum class Precision { single_precision, double_precision };

struct Options {
    std::vector<double> times; ///< diffusion times T_c > 0 (rising for incremental), in squared pixels
    double sigma = 1;          ///< of the Gaussian, in pixels; 0: no Gaussian
    Diffusivity diffusivity = Diffusivity::g2;
    double percentile = 0.7;        ///< in (0, 1], six decimals
    std::optional<double> contrast; ///< k for all components instead of the percentile, > 0
    int cycles = 1;                 ///< of fast explicit diffusion for one time
    Evolution evolution = Evolution::independent;
    Scheme scheme = Scheme::fed;
    double tolerance = 1e-4; ///< of the exact scheme, relative to the component's range
    Precision precision = Precision::single_precision;
    bool zero_is_invalid = false; ///< a pixel that is zero in all components is missing (for bands)

    int copies() const { return static_cast<int>(times.size()); }
};

/// Throws UsageError that names the option and the allowed range.
void check(const Options& options);

// --- the schedule
// ----------------------------------------------------------------------------------

inline constexpr double tau_max =
    0.25; ///< largest stable explicit step of the five-point stencil with g <= 1

/// Returns the number of steps n of one of `cycles` cycles for diffusion time T (equation 8).
int fed_steps(double time, int cycles);
/// Returns the step sizes of one cycle (equation 7, scaled so that all cycles together last T), in Leja order
/// of 1/tau, which limits rounding errors.
std::vector<double> fed_taus(double time, int cycles);
/// Returns the coefficients a_0..a_n of the product of (1 + tau_j A) over all cycles, in Chebyshev
/// polynomials of I + tau_max A; n = steps x cycles.
std::vector<double> fed_coefficients(double time, int cycles);
/// Returns the coefficients of exp(T A), truncated when the tail is below `tolerance`; their sum remains 1.
std::vector<double> exact_coefficients(double time, double tolerance);

/// One recurrence and the copies that it gives.
struct Stage {
    int degree = 0;                                ///< sweeps
    std::vector<std::vector<double>> coefficients; ///< one list per copy, with at most degree + 1
                                                   ///< coefficients
};
/// Returns the stages. Independent: one stage for all copies. Cascade and incremental: one stage per copy,
/// each of which starts from the previous copy.
std::vector<Stage> make_stages(const Options& options);

int gaussian_radius(double sigma); ///< ceil(3 sigma)
/// Returns the pixels beyond a tile on which its gradients depend: Gaussian and Scharr.
int64_t gradient_halo(const Options& options);
/// Returns the weights of offsets 0..radius; the sum over -radius..radius is 1.
std::vector<double> gaussian_weights(double sigma);
/// Returns the pixels beyond a tile on which its diffused core depends: gradient_halo() plus the degrees of
/// all stages of one pass.
int64_t halo_of(const Options& options, const std::vector<Stage>& stages);

// --- the contrast
// ----------------------------------------------------------------------------------

inline constexpr int histogram_bins = 300;
using Histogram = std::array<int64_t, histogram_bins>;

/// Facts about a whole component.
struct Range {
    float lowest = 0, highest = 0; ///< of the valid pixels
    double steepest = 0;           ///< hmax, the largest gradient magnitude
    int64_t valid = 0;             ///< pixels with a value
    /// Returns the level that is subtracted before diffusion and added after it, so that sums at a high level
    /// keep their digits.
    float level() const { return valid > 0 ? 0.5f * lowest + 0.5f * highest : 0.0f; }
};

/// Returns k = hmax (b+1)/300 for the first bin b at which the cumulative count reaches the percentile of the
/// non-zero gradients, decided in integers; 0 without non-zero gradients.
double contrast_of(const Range& range, const Histogram& histogram, double percentile);

/// Scans the components' gradients; each scan has a result after its pass.
class RangeScan : public stream::Operation {
  public:
    virtual const std::vector<Range>& result() const = 0;
};
class HistogramScan : public stream::Operation {
  public:
    virtual const std::vector<Histogram>& result() const = 0;
};

/// The facts about a component that diffusion needs.
struct Contrast {
    double k = 0; ///< 0: no gradient, g = 1
    float level = 0;
};

// --- the backends
// ----------------------------------------------------------------------------------

/// The ways to process the tiles of a diffusion, best first. A backend supports some of these ways, and a run
/// can use some.
enum class Way {
    /// Strips of whole lines, one per rank of a job, which all ranks process at once. Every few sweeps,
    /// neighbours exchange the lines at their border, so that no line is computed twice. Bands are written as
    /// they are finished (WrittenDiffusion).
    written_strips,
    joined_strips, ///< as above, with an output
    strips,        ///< as above, each with its halo
    written,       ///< the whole scene as one tile, whose bands are written as they are finished
    /// The whole scene as one tile, in two passes. A scan diffuses and keeps the copies in the memory where
    /// they were computed. Then the operation of make_kept_output() returns the profile tile by tile, on any
    /// number of workers. Its input is the components; its copies are those of the last scan.
    kept,
    one_tile, ///< the whole scene as one tile
    tiles     ///< tiles with their halo, one thread per tile
};

/// Returns whether bands are written as they are finished, by a WrittenDiffusion.
inline bool is_written(Way way) { return way == Way::written_strips || way == Way::written; }

/// The inputs of a diffusion. The output contains for every component in turn: the component itself if
/// `with_component`, then the copies of the stages.
struct Diffusion {
    Options options;
    std::vector<Stage> stages;
    std::vector<Contrast> contrasts; ///< by component
    bool with_component = true;
    int team = 1;            ///< threads that process a tile together
    int64_t strip_lines = 0; ///< lines of the shortest strip
};

/// A diffusion of large tiles whose bands are written as they are finished. For the pipeline it is a scan,
/// which needs a few planes instead of memory for the profile.
class WrittenDiffusion : public stream::Operation {
  public:
    /// Returns the planes of the writer, which are part of scratch_bytes().
    virtual int planes() const = 0;
    /// Sets the writer of the profile. Call it before the pass.
    virtual void write_to(stream::BandWriter& writer) = 0;
};

/// The passes over component planes, in this order for one set of planes. A backend with its own memory may
/// keep the data of the range scan there, if keep_planes() stated that every pass gets the whole scene in one
/// tile. The planes are the source's bands, NaN for missing values.
class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::unique_ptr<RangeScan> make_range_scan(const Options& options, int components) = 0;
    virtual std::unique_ptr<HistogramScan> make_histogram_scan(const Options& options,
                                                               const std::vector<Range>& ranges) = 0;
    /// Creates the diffusion. Returns null if the backend does not support this way, or if strips have too
    /// few lines to be joined. For the ways that are written, it is a WrittenDiffusion. For Way::tiles it is
    /// never null.
    virtual std::unique_ptr<stream::Operation> make_diffusion(const Diffusion& diffusion, Way way) = 0;
    virtual std::unique_ptr<stream::Operation> make_kept_output(const Options& options) = 0;
    /// Returns the host bytes of the copies of Way::kept; scratch_bytes() includes them.
    virtual uint64_t kept_bytes(const stream::CubeShape& /*copies*/) const { return 0; }
    virtual std::string describe() const = 0;
    /// Returns the device bytes for planning tiles; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
    /// Returns true if passes with one tile are faster on this backend.
    virtual bool wants_whole_scene() const { return false; }
    virtual void keep_planes(bool /*whole_scene*/) {}
};

std::unique_ptr<Backend> make_cpu_backend();
/// Returns the instruction set of the CPU backend's SIMD code.
const char* simd_target();

} // namespace hsi::eadp
