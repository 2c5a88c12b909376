// SPDX-License-Identifier: MIT
// Spectral indices: expressions over a spectrum, at the bands of a scene. indices.csv is the catalogue, with
// the paper of each index.
//
// A band of a scene takes the place of a wavelength C by one of four choices:
//   nearest   the nearest band within `tolerance` nm; of two as near the first in the file
//   linear    the line between the bands around C, at most 4 tolerances apart; or a band at C
//   average   the mean of the bands within width/2
//   response  under a normal curve of FWHM `width` (math/resampling.h)
// A range uses its bands by rising wavelength; of those within 1e-6 nm of one another the first in the file.
// All is computed in double precision from the source's floats, pixel by pixel: no tile or thread changes a
// bit.
#pragma once

#include "core/cost.h"
#include "indices/expression.h"
#include "stream/counting_operation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::indices {

/// Its costs, for `-device auto` (core/cost.h): workers compute it, even if a device is present, with 16
/// cores.
namespace cost {
inline constexpr Cost value{5e-10, 3e-11};  ///< a band that is looked at, or that an operand takes part of
inline constexpr Cost step{4e-10, 2.5e-11}; ///< an operand or operation of an expression
} // namespace cost

/// A line of the catalogue.
struct Index {
    std::string name, domain, formula, unit;
    bool reflectance = false; ///< a factor common to all bands changes the result
    std::string citation;
};
const std::vector<Index>& catalogue();

enum class Choice { nearest, linear, average, response };
struct Choosing {
    Choice choice = Choice::nearest;
    double tolerance = 10, width = 10; ///< nm
};

/// The bands of a source, in its order. Lists but `wavelengths` may be empty.
struct Bands {
    std::vector<double> wavelengths;   ///< nm, one a band; NaN or not above 0: unknown
    std::vector<double> widths;        ///< FWHM in nm, NaN where unknown
    std::vector<int> numbers;          ///< the band numbers in expressions; empty: 1, 2 ..
    std::vector<double> scale, offset; ///< value = stored * scale + offset; empty: 1 and 0
};

/// An operand at the bands of a source.
struct Term {
    std::vector<size_t> sources; ///< places of its bands; empty: there are not enough
    std::vector<double> weights; ///< of a wavelength or band; their sum is 1 to rounding
};
Term term_of(const Operand& operand, const Bands& bands, const Choosing& choosing);

/// Bands that a range must have: 1, std, slope and area 2, edge 4.
size_t least_bands(Operand::Of of);

/// Counts of the pass; complete after it.
class Indices : public stream::CountingOperation {
  public:
    void exchange(parallel::Group& ranks) override;
    /// Count of valid pixels' values at watched bands that are not reflectance: outside of -0.5 to 1.5.
    int64_t outside() const { return m_outside; }

  protected:
    int64_t m_outside = 0;
};

/// One output with a band for each expression, whose wavelengths are those of the nearest bands. A pixel is
/// invalid, NaN throughout, when one of the inputs is not finite or all are zero. `watched`: places of the
/// bands that outside() counts. \throws Error when an operand has not enough bands, and UsageError as
/// Expression.
std::unique_ptr<Indices> make_indices(int inputs, const std::vector<std::string>& expressions, Bands bands,
                                      std::vector<size_t> watched = {});

/// The cost of a pixel in the operation that make_indices() makes from the same arguments.
Cost cost_of(int inputs, const std::vector<std::string>& expressions, const Bands& bands);

/// The same of spectra in memory, a value a band: a list of results for every spectrum.
std::vector<std::vector<double>> indices_of(const std::vector<std::vector<double>>& spectra,
                                            const std::vector<std::string>& expressions, const Bands& bands);

} // namespace hsi::indices
