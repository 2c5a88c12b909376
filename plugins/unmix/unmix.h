// SPDX-License-Identifier: MIT
// Linear spectral unmixing: the abundances a of p endmembers (the columns of E) in every pixel x, which
// minimise |x - E a|^2. The four methods are:
//   ucls  without constraint          nnls  a >= 0
//   scls  sum of a = 1                fcls  a >= 0 and sum of a = 1
//
// D. C. Heinz, C.-I. Chang: Fully Constrained Least Squares Linear Spectral Mixture Analysis Method for
// Material Quantification in Hyperspectral Imagery, IEEE TGRS 39(3), 2001, states the four problems. The
// paper approximates the constraint on the sum by an additional row with large weights. Here, the constraint
// and the minimiser are exact. The method is the active set method of C. L. Lawson, R. J. Hanson: Solving
// Least Squares Problems, chapter 23, with the sum as an additional equation.
//
// All values are in double precision, pixel by pixel, so results do not depend on tiles, threads, the
// processor or a GPU.
#pragma once

#include "core/cost.h"
#include "core/cuda_module.h"
#include "math/exact_sum.h"
#include "stream/counting_operation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::unmix {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost product{4.5e-10, 3e-13};    ///< seconds per value and endmember
inline constexpr Cost round{1.5e-9, 1e-11};       ///< seconds per pixel, round and pair of endmembers
inline constexpr Cost draw_product{7e-11, 3e-13}; ///< with realisations: seconds per value and spectrum
inline constexpr Cost draw_noise{2.7e-9, 5e-12};  ///< seconds per value and realisation
/// Seconds per pixel and realisation, for each unit of (number of spectra)^3.
inline constexpr Cost draw_round{7e-10, 1e-11};
} // namespace cost

enum class Method { ucls, nnls, scls, fcls };
/// The names in documents and pixel functions.
inline constexpr std::pair<const char*, Method> method_names[] = {
    {"ucls", Method::ucls}, {"nnls", Method::nnls}, {"scls", Method::scls}, {"fcls", Method::fcls}};
inline const char* name_of(Method method) {
    for (const auto& one : method_names)
        if (one.second == method) return one.first;
    return nullptr; // Unreachable, since all methods are in the table.
}

/// Return whether abundances sum to one, and whether all abundances are at least 0.
inline bool sums_to_one(Method m) { return m == Method::scls || m == Method::fcls; }
inline bool is_nonnegative(Method m) { return m == Method::nnls || m == Method::fcls; }

struct Endmembers {
    std::vector<std::string> names;           ///< p names, for messages
    std::vector<std::vector<double>> spectra; ///< p spectra of equal length, in the units of the scene
    int count() const { return static_cast<int>(spectra.size()); }
    int bands() const { return spectra.empty() ? 0 : static_cast<int>(spectra.front().size()); }
};

/// The endmember that is nearest to the span of the others, and its distance from this span.
struct Independence {
    double distance = 1; ///< distance of its column of E after the column is scaled to length 1
    int endmember = 0;   ///< index of the endmember (0-based)
};

/// If Independence::distance is at least this value, abundances are accurate.
inline constexpr double safe_distance = 1e-4;

/// Returns the independence of the columns of E. For scls and fcls, E gets an additional row whose values are
/// all the length of the longest column. This row distinguishes endmembers that differ only in brightness.
/// Throws an Error, which names the endmember, if its distance is 1e-6 or less. This covers duplicate
/// endmembers, a zero endmember for ucls and nnls, and more endmembers than bands. Also throws if a value is
/// not finite or if there are no endmembers.
Independence check_endmembers(const Endmembers& endmembers, Method method);

struct Options {
    Method method = Method::fcls;
    bool rmse = false; ///< additional output: sqrt(mean over the bands of (x - E a)^2), one band
    bool sums = false; ///< on devices: also compute Unmixing::sums()
};

/// The unmixing operation. Its counts are complete after the pass.
class Unmixing : public stream::CountingOperation {
  public:
    /// Returns two sums over the valid pixels: of the abundances, and of the squared root mean square errors.
    /// Both are sums of the values as written. They are available only on devices, if Options::sums requests
    /// them.
    const math::ExactSums& sums() const { return m_sums; }

  protected:
    math::ExactSums m_sums{2};
};

/// Returns the number of bands of each output: `size` abundances, and one band for the error if requested.
std::vector<int> bands_of(int size, bool rmse);

/// Creates the operation on the CPU. Output 0 has one abundance per band, in the order of the endmembers.
/// Abundances outside the active set are exactly 0. Output 1, if requested, is the root mean square error. A
/// pixel is invalid (NaN in both outputs) if a value is not finite or if all values are zero. Throws Error
/// like check_endmembers().
std::unique_ptr<Unmixing> make_unmixing(const Endmembers& endmembers, const Options& options);

struct Classes;
struct DrawOptions;
class DrawUnmixing;

/// Unmixing on the CPU or on devices (hsi_cuda_unmix.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Creates the same operation as the function above.
    virtual std::unique_ptr<Unmixing> make_unmixing(const Endmembers& endmembers, const Options& options) = 0;
    /// Creates the same operation as the function in draws.h.
    virtual std::unique_ptr<DrawUnmixing> make_draws(const Endmembers& library, const Classes& classes,
                                                     const DrawOptions& options) = 0;
    /// Computes squares[i], the sum of the squared values of pixel i, for a scene in the memory of the
    /// device. Pixels are numbered line by line. Returns false on the CPU, which does nothing.
    virtual bool sum_squares(const CubeView<float>& /*scene*/, double* /*squares*/) { return false; }
    /// Returns the total time in seconds of all kernels since the backend was created, without copies, summed
    /// over the workers; 0 on the CPU. Workers on the same device slow each other down.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

} // namespace hsi::unmix
