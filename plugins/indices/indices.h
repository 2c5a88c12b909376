// SPDX-License-Identifier: MIT
// Computes spectral indices, which are expressions over the spectrum of a pixel, from the bands of a scene.
// The catalogue of indices, with the paper of each index, is indices.csv.
//
// A wavelength C is replaced by bands of a scene in one of four ways:
//   nearest   the nearest band within `tolerance` nm; if two bands are equally near, the first in the file
//   linear    linear interpolation between the bands around C, which must be at most 4 tolerances apart; if a
//             band is at C, this band
//   average   the mean of the bands within width/2
//   response  the mean of the bands, weighted by a normal curve of FWHM `width` (math/resampling.h)
// A range uses its bands by rising wavelength. If bands are within 1e-6 nm of each other, the first in the
// file is used. All values are computed in double precision from the source's floats, pixel by pixel, so
// results do not depend on tiles or threads.
#pragma once

#include "core/cost.h"
#include "indices/expression.h"
#include "stream/counting_operation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::indices {

/// Costs for `-device auto` (core/cost.h). There is no device code, so the CPU computes indices even in a
/// device's pipeline. The second value of a cost is therefore the time on 16 cores.
namespace cost {
inline constexpr Cost value{5e-10, 3e-11};  ///< seconds per band that is read, and per band of an operand
inline constexpr Cost step{4e-10, 2.5e-11}; ///< seconds per operand or operation of an expression
} // namespace cost

/// A row of the catalogue.
struct Index {
    std::string name, domain, formula, unit;
    bool reflectance = false; ///< true if a factor common to all bands changes the result
    std::string citation;
};
const std::vector<Index>& catalogue();

enum class Choice { nearest, linear, average, response };
struct Choosing {
    Choice choice = Choice::nearest;
    double tolerance = 10, width = 10; ///< nm
};

/// The bands of a source, in the source's order. `wavelengths` has one value per band; the other lists may be
/// empty.
struct Bands {
    std::vector<double> wavelengths;   ///< nm, one per band; NaN or not above 0: unknown
    std::vector<double> widths;        ///< FWHM in nm, NaN if unknown
    std::vector<int> numbers;          ///< band numbers in expressions; empty: 1, 2 ...
    std::vector<double> scale, offset; ///< value = stored * scale + offset; empty: 1 and 0
};

/// An operand at the bands of a source.
struct Term {
    std::vector<size_t> sources; ///< indices of the operand's bands; empty: the source has too few bands
    std::vector<double> weights; ///< weights of the bands of a wavelength or band; their sum is 1 to rounding
};
Term term_of(const Operand& operand, const Bands& bands, const Choosing& choosing);

/// Returns the minimum number of bands of a range: 1; 2 for std, slope and area; 4 for edge.
size_t least_bands(Operand::Of of);

/// Computes indices. The counts are complete after the pass.
class Indices : public stream::CountingOperation {
  public:
    void exchange(parallel::Group& ranks) override;
    /// Returns the number of values outside -0.5 to 1.5, which cannot be reflectance, in the watched bands of
    /// valid pixels.
    int64_t outside() const { return m_outside; }

  protected:
    int64_t m_outside = 0;
};

/// Creates an operation whose output has one band for each expression. A pixel is invalid (all NaN) if one of
/// the inputs is not finite or all are zero. A wavelength in an expression refers to the nearest band within
/// 10 nm. `watched` has the indices of the bands that outside() counts. \throws Error if an operand has too
/// few bands. \throws UsageError if an expression is invalid.
std::unique_ptr<Indices> make_indices(int inputs, const std::vector<std::string>& expressions, Bands bands,
                                      std::vector<size_t> watched = {});

/// Returns the cost per pixel of the operation that make_indices() creates from the same arguments.
Cost cost_of(int inputs, const std::vector<std::string>& expressions, const Bands& bands);

/// Computes indices of spectra in memory, which have one value per band. Returns a list of results for every
/// spectrum.
std::vector<std::vector<double>> indices_of(const std::vector<std::vector<double>>& spectra,
                                            const std::vector<std::string>& expressions, const Bands& bands);

} // namespace hsi::indices
