// SPDX-License-Identifier: MIT
// Unmixing with uncertainty: a library has several spectra per class, and pixels have noise. Every
// realisation ("draw") selects a few spectra of each class, adds new noise to the pixel if standard
// deviations are known, and unmixes the pixel. The results are the mean and the standard deviation of the
// fractions over the realisations. EMIT's fractional cover is computed in this way (D. R. Thompson and
// others, with the program SpectralUnmixing), with one subset of spectra per realisation for the whole scene.
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

/// The spectra of each class. `members` has indices of spectra in rising order.
struct Classes {
    std::vector<std::string> names;
    std::vector<std::vector<int>> members;
};

/// Returns the classes given by the names of spectra. The class is the name without one or two trailing
/// numbers, each of which follows blanks or one of _ : # , -. For example, "soil 3 17" belongs to the class
/// "soil". Classes are in the order of their first spectrum.
Classes classes_of(const std::vector<std::string>& names);
/// Returns the class of a spectrum with this name, by the rule of classes_of().
std::string class_in_name(const std::string& name);
/// Returns classes from a list with the class of every spectrum, in the order of their first spectrum.
Classes classes_from(const std::vector<std::string>& class_of_each);

enum class Normalise { none, unit, brightness };

struct DrawOptions {
    Method method = Method::fcls; ///< method of each realisation; ucls is not allowed
    int draws = 0;                ///< number of realisations, 1 to 65535
    /// Number of spectra of each class in a realisation; all spectra if the class has fewer.
    int per_class = 1;
    uint64_t seed = 1;
    Normalise normalise = Normalise::none;
    /// true: the source has twice as many bands; the second half has the standard deviations of the values.
    bool noise = false;
    bool deviation = false, rmse = false; ///< additional outputs, in this order
    PixelNumbers numbers;
};

/// Returns the indices of the spectra in realisation `draw`, class by class, in rising order.
std::vector<std::vector<int>> drawn(const Classes& classes, const DrawOptions& options, int draw);

/// Returns the spectra as they are used for unmixing: unchanged (none), scaled to length 1 (unit), or scaled
/// to a common root mean square, the mean over the library (brightness). \throws Error that names a spectrum
/// that is zero in all bands or has values that are not finite.
Endmembers normalised(Endmembers library, Normalise how);

class DrawUnmixing : public Unmixing {
  public:
    /// Returns the number of realisations that are left out, because their spectra are linearly dependent
    /// (check_endmembers()).
    int skipped() const { return m_skipped; }

  protected:
    int m_skipped = 0;
};

/// Creates the operation. Output 0 has the mean fraction of each class. For nnls, fractions are abundances
/// divided by their sum, and an additional last band has the mean of this sum. If requested, the next outputs
/// are the standard deviations of the fractions (NaN for fewer than two realisations), and the mean of the
/// root mean square errors. A pixel is invalid if a value is not finite, if all are zero, or if a standard
/// deviation is negative or not finite. \throws Error like normalised(), and if the spectra of all
/// realisations are linearly dependent.
std::unique_ptr<DrawUnmixing> make_draws(const Endmembers& library, const Classes& classes,
                                         const DrawOptions& options);

/// Returns the instruction set of the SIMD code.
const char* simd_target();

} // namespace hsi::unmix
