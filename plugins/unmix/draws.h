// SPDX-License-Identifier: MIT
// Unmixing with uncertainty: a library has several spectra per class, and pixels have noise. Every draw takes
// a few spectra of each class and, if standard deviations are known, new noise, and unmixes the pixel. The
// results are mean and standard deviation of the fractions over the draws. EMIT's fractional cover is
// computed in this way (D. R. Thompson and others, with the program SpectralUnmixing), with one subset of
// spectra per draw for the whole scene.
//
// Random numbers depend on their position (math/philox.h), so results do not depend on tiles, threads or
// ranks.
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

/// Returns classes by the names without one or two trailing numbers, each preceded by blanks or one of _ : #
/// , -: "soil 3 17" is soil. Classes are in the order of their first spectrum.
Classes classes_of(const std::vector<std::string>& names);
/// Returns the class in a spectrum's name: the name without these numbers.
std::string class_in_name(const std::string& name);
/// Returns classes from the class of every spectrum, in the order of their first spectrum.
Classes classes_from(const std::vector<std::string>& class_of_each);

enum class Normalise { none, unit, brightness };

struct DrawOptions {
    Method method = Method::fcls; ///< not ucls
    int draws = 0;                ///< 1 to 65535
    int per_class = 1;            ///< spectra of each class in a draw; all if the class has no more
    uint64_t seed = 1;
    Normalise normalise = Normalise::none;
    bool noise = false; ///< the source has as many further bands, the standard deviations of the values
    bool deviation = false, rmse = false; ///< further outputs, in this order
    PixelNumbers numbers;
};

/// Returns the spectra of a draw, by class in their order.
std::vector<std::vector<int>> drawn(const Classes& classes, const DrawOptions& options, int draw);

/// Returns the normalised spectra for unmixing: of length 1 (unit), or with the library's mean root mean
/// square (brightness). \throws Error that names a spectrum that is all zero, or contains values that are not
/// numbers.
Endmembers normalised(Endmembers library, Normalise how);

class DrawUnmixing : public Unmixing {
  public:
    /// Returns the number of draws that are left out because their spectra are linearly dependent
    /// (check_endmembers()).
    int skipped() const { return m_skipped; }

  protected:
    int m_skipped = 0;
};

/// Output 0: the mean fraction of each class; for nnls, fractions are abundances divided by their sum, and a
/// last band is the mean of that sum. Then the standard deviations of the fractions (NaN for fewer than two
/// draws), and the mean of the draws' root mean square errors. A pixel is invalid if a value is not finite,
/// all are zero, or a standard deviation is negative or not finite. \throws Error as normalised(), and if the
/// spectra of all draws are linearly dependent.
std::unique_ptr<DrawUnmixing> make_draws(const Endmembers& library, const Classes& classes,
                                         const DrawOptions& options);

/// Returns the instruction set of the SIMD code.
const char* simd_target();

} // namespace hsi::unmix
