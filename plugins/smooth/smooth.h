// SPDX-License-Identifier: MIT
// Transforms of single spectra, also as an operation on the pixels of a scene. Each value is computed in
// double precision. A pixel depends only on itself, so results do not depend on tiles or threads.
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

/// x: a spectrum, m its mean, n its bands.
enum class Method {
    savgol,       ///< savitzky_golay() with window, degree and derivative
    mean,         ///< moving_mean() with window
    whittaker,    ///< Whittaker with lambda and order
    absorbance,   ///< -log10(factor x)
    snv,          ///< (x - m)/s, s the standard deviation, divided by n - 1
    msc,          ///< (x - a)/b, of x = a + b reference by least squares; b > 0
    detrend,      ///< x minus its least-squares polynomial of `degree` in wavelength, over all bands
    normalise,    ///< x divided by `norm`, which must be above 0
    gain,         ///< gain x + offset, band by band
    logarithm,    ///< ln x
    log_residual, ///< exp(ln x - mean of ln x - reference + mean of reference); reference: mean ln of a scene
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
    /// nm, by band: for savgol, mean, whittaker, detrend and the area, which is summed by trapezoids within
    /// segments.
    std::vector<double> wavelengths;
    double max_gap = 0; ///< nm, of segments_of()
    int window = 9, degree = 2, derivative = 0;
    double lambda = 10;
    int order = 2;
    Norm norm = Norm::area;
    double factor = 1;
    std::vector<double> reference;    ///< one per band, for msc and log_residual
    std::vector<double> gain, offset; ///< one per band
};

/// Returns true for methods that use wavelengths.
bool needs_wavelengths(const Transform& transform);
/// Returns true for savgol and mean, whose results are weighted sums of bands.
bool is_sum(Method method);
/// Returns the weights of these sums. \throws Error for other methods.
Rows rows_of(const Transform& transform);

/// A setting of a transform in documents and pixel functions, which also state its name: the settings of its
/// method, but not of sums.
struct Setting {
    enum class Kind { word, number, list };
    const char* name;
    Kind kind;
    std::string word;            ///< value of a word
    std::vector<double> numbers; ///< one number, or for a list one per band
};
std::vector<Setting> settings_of(const Transform& transform);
/// Makes a transform from such settings. `word(name, names)` returns the value of a word in a table like
/// norm_names, `number(name, least, most)` a number, `whole(name, least, most)` a whole number, `list(name)`
/// the numbers of all bands.
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
    /// Lists of the transform have one entry per band.
    Transformer(size_t bands, Transform transform);
    /// Returns the number of bands of the result, at most those of a spectrum: savgol leaves out short
    /// segments.
    size_t outputs() const { return is_sum(m_transform.method) ? m_rows.bands.size() : m_bands; }
    /// Returns the index among the spectrum's bands of each band of the result.
    std::vector<size_t> kept() const;
    /// Transforms values in place: a row of `pixels` (at most most_pixels) per band. The first outputs() rows
    /// are then the results. If a result does not exist (a logarithm, a quotient), some of the pixel's values
    /// are not finite.
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
    std::vector<double> m_weights;            ///< of an area; msc: of b
    std::vector<std::vector<double>> m_basis; ///< orthonormal, of polynomials
    double m_mean = 0;                        ///< of the reference
};

/// Transforms spectra, each by its finite values alone (which then form its segments); NaN elsewhere and
/// where the result does not exist. `transform` has lists for all bands.
std::vector<std::vector<double>> transformed(const std::vector<std::vector<double>>& spectra,
                                             const Transform& transform);

namespace cost {
inline constexpr Cost value{3e-10, 0}; ///< a pixel and a band
} // namespace cost

/// Transforms a scene. The counts are complete after the pass.
class Transforming : public stream::Operation {
  public:
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    int64_t valid() const { return m_valid; } ///< includes undefined pixels
    int64_t invalid() const { return m_invalid; }
    int64_t undefined() const { return m_undefined; } ///< valid pixels without a result

  protected:
    int64_t m_valid = 0, m_invalid = 0, m_undefined = 0;
};

/// Makes one output with a band for each of Transformer::outputs(). A pixel is NaN in all bands if it is
/// invalid, or if one of its results does not exist or exceeds single precision.
std::unique_ptr<Transforming> make_transform(int inputs, Transform transform);

} // namespace hsi::smooth
