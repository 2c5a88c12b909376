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
// A is the diffusion operator. With constant g, a cycle of fast explicit diffusion (equations 6 to 8) applies
// a polynomial of A to X. The exact solution exp(T A) X is also such a polynomial, to any tolerance. In
// Chebyshev polynomials of I + tau_max A, the copies of all diffusion times share one recurrence, with one
// stencil sweep per degree:
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
inline constexpr Cost value{5e-8, 3e-10};  ///< seconds per value
inline constexpr Cost sweep{4e-10, 2e-12}; ///< seconds per value and sweep
} // namespace cost

enum class Diffusivity { g1, g2, g3 };
enum class Evolution { independent, cascade, incremental };
enum class Scheme { fed, exact };
enum class Precision { single_precision, double_precision };

struct Options {
    std::vector<double> times; ///< diffusion times T_c > 0 (rising for incremental), in squared pixels
    double sigma = 1;          ///< standard deviation of the Gaussian in pixels; 0: no Gaussian
    Diffusivity diffusivity = Diffusivity::g2;
    double percentile = 0.7;        ///< percentile that sets k, in (0, 1], six decimals
    std::optional<double> contrast; ///< contrast k > 0 of all components; empty: `percentile` sets k
    int cycles = 1;                 ///< cycles of fast explicit diffusion per diffusion time
    Evolution evolution = Evolution::independent;
    Scheme scheme = Scheme::fed;
    double tolerance = 1e-4; ///< tolerance of the exact scheme, relative to the component's range
    Precision precision = Precision::single_precision;
    /// A pixel that is zero in all components is missing; used if the components are bands.
    bool zero_is_invalid = false;

    int copies() const { return static_cast<int>(times.size()); }
};

/// Throws a UsageError that names the option and its allowed range.
void check(const Options& options);

// --- the schedule
// ----------------------------------------------------------------------------------

inline constexpr double tau_max =
    0.25; ///< largest stable explicit step of the five-point stencil with g <= 1

/// Returns n, the number of steps in each of the `cycles` cycles for diffusion time T (equation 8).
int fed_steps(double time, int cycles);
/// Returns the step sizes of one cycle (equation 7, scaled so that all cycles together last T), in Leja order
/// of 1/tau, which limits rounding errors.
std::vector<double> fed_taus(double time, int cycles);
/// Returns the coefficients a_0..a_n of the product of (1 + tau_j A) over all cycles, in Chebyshev
/// polynomials of I + tau_max A; n = steps x cycles.
std::vector<double> fed_coefficients(double time, int cycles);
/// Returns the coefficients of exp(T A) in the polynomials of fed_coefficients(). The series is truncated
/// where the remaining terms are below `tolerance`, and the sum of the coefficients remains 1.
std::vector<double> exact_coefficients(double time, double tolerance);

/// One run of the recurrence, and the coefficients of the copies that it computes.
struct Stage {
    int degree = 0; ///< number of sweeps
    /// One list per copy, with at most degree + 1 coefficients each.
    std::vector<std::vector<double>> coefficients;
};
/// Returns the stages. With independent evolution, one stage computes all copies. Cascade and incremental
/// evolution have one stage per copy, and each stage starts from the previous copy.
std::vector<Stage> make_stages(const Options& options);

int gaussian_radius(double sigma); ///< Returns ceil(3 sigma).
/// Returns the number of pixels beyond a tile on which its gradients depend, through the Gaussian and the
/// Scharr operator.
int64_t gradient_halo(const Options& options);
/// Returns the weights of the Gaussian at offsets 0..radius. The weights over -radius..radius sum to 1.
std::vector<double> gaussian_weights(double sigma);
/// Returns the number of pixels beyond a tile on which its diffused core depends: gradient_halo() plus the
/// degrees of all `stages`. One pass runs these stages.
int64_t halo_of(const Options& options, const std::vector<Stage>& stages);

// --- the contrast
// ----------------------------------------------------------------------------------

inline constexpr int histogram_bins = 300;
using Histogram = std::array<int64_t, histogram_bins>;

/// The statistics of a whole component.
struct Range {
    float lowest = 0, highest = 0; ///< minimum and maximum of the valid pixels
    double steepest = 0;           ///< hmax, the largest gradient magnitude
    int64_t valid = 0;             ///< number of valid pixels
    /// Returns the level, which is subtracted from the component before diffusion and added after it.
    /// Otherwise, sums of large values would lose digits.
    float level() const { return valid > 0 ? 0.5f * lowest + 0.5f * highest : 0.0f; }
};

/// Returns k = hmax (b+1)/300, where b is the first bin up to which the histogram has the fraction
/// `percentile` of the non-zero gradients. Counts are compared as integers. Returns 0 if all gradients are
/// zero.
double contrast_of(const Range& range, const Histogram& histogram, double percentile);

/// The scans of the gradients of the components, for the ranges and then for the histograms. The result of a
/// scan is complete after its pass.
class RangeScan : public stream::Operation {
  public:
    virtual const std::vector<Range>& result() const = 0;
};
class HistogramScan : public stream::Operation {
  public:
    virtual const std::vector<Histogram>& result() const = 0;
};

/// The parameters of a component's diffusion.
struct Contrast {
    double k = 0; ///< contrast; 0 if the component has no gradients, in which case g = 1
    float level = 0;
};

// --- the backends
// ----------------------------------------------------------------------------------

/// The ways to process the tiles of a diffusion, best first. A backend may support only some ways, and a run
/// may allow only some ways.
enum class Way {
    /// Strips of whole lines, one strip per rank of a job. All ranks process their strips at the same time.
    /// Every few sweeps, neighbouring ranks exchange the lines at their border, so that no line is computed
    /// twice. Bands are written as they are finished (WrittenDiffusion).
    written_strips,
    joined_strips, ///< like written_strips, but the strips are passed to an output
    strips,        ///< strips as in joined_strips, but each strip includes its halo
    written,       ///< The whole scene is one tile, and its bands are written as they are finished.
    /// The whole scene is one tile, processed in two passes. The first pass is a scan that diffuses the
    /// components and keeps the copies in the memory where they were computed. In the second pass, the
    /// operation of make_kept_output() writes the profile tile by tile, on any number of workers. The second
    /// pass reads the components again, and takes the copies that the last scan has kept.
    kept,
    one_tile, ///< the whole scene as one tile
    tiles     ///< tiles with their halo, one thread per tile
};

/// Returns true if the diffusion is a WrittenDiffusion, which writes the bands as they are finished.
inline bool is_written(Way way) { return way == Way::written_strips || way == Way::written; }

/// The inputs of a diffusion. For each component, the output contains the component itself if
/// `with_component` is set, and then the copies of all stages.
struct Diffusion {
    Options options;
    std::vector<Stage> stages;
    std::vector<Contrast> contrasts; ///< one entry per component
    bool with_component = true;
    int team = 1;            ///< threads that process one tile together
    int64_t strip_lines = 0; ///< number of lines of the shortest strip
};

/// A diffusion of a whole scene or of large strips that writes each band as soon as it is finished. It runs
/// as a scan, without outputs. It needs the memory of a few planes instead of the whole profile.
class WrittenDiffusion : public stream::Operation {
  public:
    /// Returns the number of planes of the writer, which scratch_bytes() includes.
    virtual int planes() const = 0;
    /// Sets the writer of the profile. Call it before the pass.
    virtual void write_to(stream::BandWriter& writer) = 0;
};

/// Makes the operations of the passes over component planes, which run in this order for each set of planes.
/// The planes are the source's bands; NaN marks missing values. keep_planes() announces whether every pass
/// will get the whole scene in one tile. If so, a backend with its own memory may keep the data of the range
/// scan there for the later passes.
class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::unique_ptr<RangeScan> make_range_scan(const Options& options, int components) = 0;
    virtual std::unique_ptr<HistogramScan> make_histogram_scan(const Options& options,
                                                               const std::vector<Range>& ranges) = 0;
    /// Creates the diffusion. Returns null if the backend does not support `way`, or if strips have too few
    /// lines to be joined. Never returns null for Way::tiles. If is_written(way) is true, the result is a
    /// WrittenDiffusion.
    virtual std::unique_ptr<stream::Operation> make_diffusion(const Diffusion& diffusion, Way way) = 0;
    virtual std::unique_ptr<stream::Operation> make_kept_output(const Options& options) = 0;
    /// Returns the host bytes of the copies of Way::kept; scratch_bytes() includes them.
    virtual uint64_t kept_bytes(const stream::CubeShape& /*copies*/) const { return 0; }
    virtual std::string describe() const = 0;
    /// Returns the bytes of device memory for which tiles are planned; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
    /// Returns true if this backend is faster when a pass gets the whole scene in one tile.
    virtual bool wants_whole_scene() const { return false; }
    virtual void keep_planes(bool /*whole_scene*/) {}
};

std::unique_ptr<Backend> make_cpu_backend();
/// Returns the instruction set of the CPU backend's SIMD code.
const char* simd_target();

} // namespace hsi::eadp
