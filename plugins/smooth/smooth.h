// SPDX-License-Identifier: MIT
// Transforms single spectra, and the spectra of a scene. Each value is computed in double precision. The
// result for a pixel depends only on this pixel, so results do not depend on tiles or threads.
//
// R. J. Barnes, M. S. Dhanoa, S. J. Lister: Standard normal variate transformation and de-trending of
// near-infrared diffuse reflectance spectra, Applied Spectroscopy 43(5), 1989. P. Geladi, D. MacDougall, H.
// Martens: Linearization and scatter-correction for near-infrared reflectance spectra of meat, Applied
// Spectroscopy 39(3), 1985. A. A. Green, M. D. Craig: Analysis of aircraft spectrometer data with logarithmic
// residuals, AIS workshop, JPL 85-41, 1985.
#pragma once

#include "core/cost.h"
#include "smooth/linear.h"
#include "stream/operation.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::smooth {

/// In the formulas, x is a spectrum, m its mean, and n its number of bands.
enum class Method {
    savgol,     ///< savitzky_golay() with window, degree and derivative
    mean,       ///< moving_mean() with window
    whittaker,  ///< Whittaker with lambda and order
    absorbance, ///< -log10(factor x)
    snv,        ///< (x - m)/s, where s is the standard deviation with n - 1
    msc,        ///< (x - a)/b, where x = a + b reference by least squares and b > 0
    detrend,    ///< x minus its least-squares polynomial of `degree` in wavelength, over all bands
    normalise,  ///< x divided by `norm`, which must be above 0
    gain,       ///< gain x + offset, band by band
    logarithm,  ///< ln x
    /// exp(ln x - mean of ln x - reference + mean of reference), where reference is the mean of ln x over a
    /// scene.
    log_residual,
};
inline constexpr std::pair<const char*, Method> method_names[] = {{"savgol", Method::savgol},
                                                                  {"mean", Method::mean},
                                                                  {"whittaker", Method::whittaker},
                                                                  {"absorbance", Method::absorbance},
                                                                  {"snv", Method::snv},
                                                                  {"msc", Method::msc},
                                                                  {"detrend", Method::detrend},
                                                                  {"normalise", Method::normalise},
                                                                  {"gain", Method::gain},
                                                                  {"logarithm", Method::logarithm},
                                                                  {"log-residual", Method::log_residual}};
const char* name_of(Method method);

/// The divisor of normalise.
enum class Norm { area, max, l2, mean };
inline constexpr std::pair<const char*, Norm> norm_names[] = {
    {"area", Norm::area}, {"max", Norm::max}, {"l2", Norm::l2}, {"mean", Norm::mean}};

struct Transform {
    Method method = Method::savgol;
    /// Wavelengths in nm, one per band. They are needed for savgol, mean, whittaker, detrend and the norm
    /// `area`. The area is computed by the trapezoidal rule within segments.
    std::vector<double> wavelengths;
    double max_gap = 0; ///< max_gap of segments_of(), in nm
    int window = 9, degree = 2, derivative = 0;
    double lambda = 10;
    int order = 2;
    Norm norm = Norm::area;
    double factor = 1;
    std::vector<double> reference;    ///< one value per band; for msc and log_residual
    std::vector<double> gain, offset; ///< one value per band; for gain
};

/// Returns true for methods that use wavelengths.
bool needs_wavelengths(const Transform& transform);
/// Returns true for savgol and mean, which give weighted sums of bands.
bool is_sum(Method method);
/// Returns the weighted sums of a method for which is_sum() is true. \throws Error for other methods.
Rows rows_of(const Transform& transform);

/// A setting of a transform, as it is written to documents and pixel functions next to the method's name.
/// Not used for methods for which is_sum() is true: their weights, rows_of(), are written instead.
struct Setting {
    enum class Kind { word, number, list };
    const char* name;
    Kind kind;
    std::string word; ///< value, if the setting is a word
    /// Value, if the setting is a number, or one value per band, if it is a list.
    std::vector<double> numbers;
};
std::vector<Setting> settings_of(const Transform& transform);
/// Creates a transform from its settings, which the four functions return. `word(name, names)` returns the
/// value of a word in a table like norm_names. `number(name, least, most)` returns a number, `whole(name,
/// least, most)` an integer, and `list(name)` one number per band.
template <class Word, class Number, class Whole, class List>
Transform transform_of(Method method, const Word& word, const Number& number, const Whole& whole,
                       const List& list) {
    Transform t;
    t.method = method;
    if (method == Method::normalise) t.norm = word("norm", norm_names);
    if (needs_wavelengths(t)) t.wavelengths = list("wavelengths");
    if (needs_wavelengths(t) && method != Method::detrend) t.max_gap = number("max_gap", 0, 1e9);
    if (method == Method::whittaker) {
        t.lambda = number("lambda", 1e-300, 1e300);
        t.order = static_cast<int>(whole("order", 1, 3));
    }
    if (method == Method::detrend) t.degree = static_cast<int>(whole("degree", 0, 5));
    if (method == Method::absorbance) t.factor = number("factor", 1e-300, 1e300);
    if (method == Method::msc || method == Method::log_residual) t.reference = list("reference");
    if (method == Method::gain) {
        t.gain = list("gain");
        t.offset = list("offset");
    }
    return t;
}

/// A transform of spectra with this number of bands.
class Transformer {
  public:
    /// The lists of `transform` have one entry per band.
    Transformer(size_t bands, Transform transform);
    /// Returns the number of bands of the result. It is at most the number of bands of a spectrum, since
    /// savgol omits short segments.
    size_t outputs() const { return is_sum(m_transform.method) ? m_rows.bands.size() : m_bands; }
    /// Returns, for each band of the result, the index of the spectrum's band.
    std::vector<size_t> kept() const;
    /// Transforms values in place. `values` has a row of `pixels` (at most most_pixels) values per band.
    /// Afterwards, the first outputs() rows are the results. If a pixel has no result (a logarithm, a
    /// quotient), some of its values are not finite.
    void apply(double* values, size_t pixels, std::vector<double>& scratch) const;
    static constexpr size_t most_pixels = 64;

  private:
    void sum(double* values, size_t pixels, std::vector<double>& scratch) const;
    void correct_scatter(double* values, size_t pixels) const;
    void detrend(double* values, size_t pixels) const;
    void normalise(double* values, size_t pixels) const;

    size_t m_bands;
    Transform m_transform;
    Rows m_rows;
    std::optional<Whittaker> m_whittaker;
    std::vector<double> m_weights;            ///< weights of an area; for msc, weights that give b
    std::vector<std::vector<double>> m_basis; ///< orthonormal polynomials
    double m_mean = 0;                        ///< mean of the reference
};

/// Transforms spectra. Only the finite values of a spectrum are used; segments are then formed from the
/// remaining bands. The result is NaN at the other bands. If any value of a result does not exist or exceeds
/// single precision, the whole result is NaN. `transform` has lists for all bands.
std::vector<std::vector<double>> transformed(const std::vector<std::vector<double>>& spectra,
                                             const Transform& transform);

namespace cost {
inline constexpr Cost value{3e-10, 0}; ///< seconds per pixel and band
} // namespace cost

/// The operation that transforms a scene. Its counts are complete after the pass.
class Transforming : public stream::Operation {
  public:
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    /// Returns the number of valid pixels, including undefined pixels.
    int64_t valid() const { return m_valid; }
    int64_t invalid() const { return m_invalid; }
    /// Returns the number of valid pixels without a result.
    int64_t undefined() const { return m_undefined; }

  protected:
    int64_t m_valid = 0, m_invalid = 0, m_undefined = 0;
};

/// Creates an operation whose output has a band for each of Transformer::outputs(). A pixel is NaN in all
/// bands if it is invalid, or if one of its results does not exist or exceeds single precision.
std::unique_ptr<Transforming> make_transform(int inputs, Transform transform);

} // namespace hsi::smooth
