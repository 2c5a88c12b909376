// SPDX-License-Identifier: MIT
// Unmixing with uncertainty: a library has several spectra of a class, and pixels have noise. Every draw
// takes a few spectra of each class and, if deviations are known, new noise, and unmixes; the results are
// mean and standard deviation of the draws' fractions. EMIT's fractional cover is made in this way (D. R.
// Thompson and others, and its program SpectralUnmixing), with one subset of spectra per draw for the whole
// scene.
//
// Random numbers depend on their place (math/philox.h): neither tiles nor threads nor ranks change a bit.
#pragma once

#include "core/pixel_numbers.h"
#include "unmix/unmix.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::unmix {

/// Spectra by class: members are indices of spectra, rising.
struct Classes {
    std::vector<std::string> names;
    std::vector<std::vector<int>> members;
};

/// By the names less one or two trailing numbers, each with blanks or one of _ : # , - before it: "soil 3 17"
/// is soil. Classes come in the order of their first spectrum.
Classes classes_of(const std::vector<std::string>& names);
/// The class in a spectrum's name: the name without these numbers.
std::string class_in_name(const std::string& name);
/// From the class of every spectrum; in the order of their first.
Classes classes_from(const std::vector<std::string>& class_of_each);

enum class Normalise { none, unit, brightness };

struct DrawOptions {
    Method method = Method::fcls; ///< not ucls
    int draws = 0;                ///< 1 to 65535
    int per_class = 1;            ///< spectra of each class in a draw; all if the class has no more
    uint64_t seed = 1;
    Normalise normalise = Normalise::none;
    bool noise = false; ///< the source has as many bands again, the standard deviations of the values
    bool deviation = false, rmse = false; ///< further outputs, in this order
    PixelNumbers numbers;
};

/// The spectra of a draw, by class in their order.
std::vector<std::vector<int>> drawn(const Classes& classes, const DrawOptions& options, int draw);

/// The normalised spectra for unmixing: of length 1 (unit), or of the library's mean root mean square
/// (brightness). \throws Error naming a spectrum that is all zero, or holds values that are not numbers.
Endmembers normalised(Endmembers library, Normalise how);

class DrawUnmixing : public Unmixing {
  public:
    /// Draws whose spectra depend on one another (check_endmembers()), and are left out.
    int skipped() const { return m_skipped; }

  protected:
    int m_skipped = 0;
};

/// Output 0: the mean fraction of each class; for nnls fractions are shares of the abundances' sum, and a
/// last band is the mean of that sum. Then the standard deviations of the fractions (NaN of fewer than two
/// draws), and the mean of the draws' root mean square errors. A pixel is invalid where a value is not
/// finite, all are zero, or a standard deviation is negative or not finite. \throws Error as normalised(),
/// and where the spectra of all draws depend on one another.
std::unique_ptr<DrawUnmixing> make_draws(const Endmembers& library, const Classes& classes,
                                         const DrawOptions& options);

/// Where the SIMD code was dispatched to.
const char* simd_target();

} // namespace hsi::unmix
