// SPDX-License-Identifier: MIT
// Minimum noise fraction: components of a scene in the order of their signal-to-noise ratio.
//
// A. A. Green, M. Berman, P. Switzer, M. D. Craig: A transformation for ordering multispectral data in terms
// of image quality with implications for noise removal, IEEE TGRS 26(1), 1988: eigenvectors of noise
// covariance against whole covariance, with the noise from differences of neighbours. The noise of the
// components is scaled to 1, as in the noise-adjusted transform of J. B. Lee, A. S. Woodyatt, M. Berman, IEEE
// TGRS 28(3), 1990. With C the covariance of all valid pixels and Cn the covariance of the noise,
//   Cn = 1/(2 M) sum d d',  d = x(line, sample + 1) - x(line, sample) over the M pairs that are both valid,
//   C v = l Cn v,  v'Cn v = 1,  l falling;   y_k = v_k'(x - mean);   x^ = mean + sum_k Cn v_k y_k.
// l is (signal + noise) / noise. Decided here, where the papers give no rule: pairs are only along lines, so
// striping of a pushbroom scanner counts as noise; the mean of d is not subtracted; the entry of greatest
// magnitude of each v is positive.
#pragma once

#include "core/cost.h"
#include "model/classes.h"
#include "pca/pca.h"
#include "stream/statistics_scan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::mnf {

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost noise_and_signal{6e-11, 2.9e-13}; ///< per pixel and pair of bands
} // namespace cost

/// The result of a fit, with all data to project another scene in the same way: n bands and as many
/// components. `mean` is always set.
struct Model : model::ModelBands {
    std::string source; ///< the scene it was made from
    model::Origin origin;
    int64_t pixels = 0, pairs = 0;   ///< its valid pixels, and pairs of neighbours
    bool regularised = false;        ///< 1e-6 of every band's noise variance was added to Cn's diagonal
    std::vector<double> eigenvalues; ///< l: n, falling
    std::vector<double> loadings;    ///< n x n, row k is v_k
    std::vector<double> inverse;     ///< n x n, row k is Cn v_k
    int components = 0;              ///< n, the number of components

    int band_count() const { return static_cast<int>(mean.size()); }
    const double* loading(int component) const {
        return loadings.data() + static_cast<size_t>(component) * mean.size();
    }
    const double* inverse_loading(int component) const {
        return inverse.data() + static_cast<size_t>(component) * mean.size();
    }
    /// Returns the signal-to-noise ratio, in variances.
    double snr(int component) const { return eigenvalues[static_cast<size_t>(component)] - 1; }
};

struct Fit {
    Model model; ///< the caller fills source, bands and wavelengths_nm
    /// The scan's bands (0-based, rising) in the model: those that differ between any neighbours.
    std::vector<int> kept;
};

/// Fits the model. `moments` must include differences. Cn is regularised if there are no more pairs than
/// bands, or if its smallest eigenvalue, scaled to a unit diagonal, is below 1e-10. \throws Error if there
/// are fewer than 2 pairs, if no band differs between neighbours, and if the matrices contain values that are
/// not finite. threads: does not change any bit.
Fit fit(const stream::SceneStatistics& moments, int threads = 1);

/// Returns the snr of the first component of `bands` bands of white noise if its noise is estimated from
/// `pairs` pairs of neighbours: s / (1 - s), s = sqrt(a (2 - a)), a = bands / pairs; infinite unless there
/// are more pairs than bands. It is 1 for 7.5 pairs per band, and 0.1 for 240.
///
/// Along a line of white noise, the ratio of Cn to C is 1 - cos(t) at the frequency t, with all t equally
/// likely: an arcsine law. In p directions out of n it is compressed (D. Voiculescu's free compression by p /
/// n), and the arcsine law, the free sum of two coins, becomes the law of H. Kesten (Symmetric random walks
/// on groups, Trans. AMS 92, 1959) and B. McKay (The expected eigenvalue distribution of a large regular
/// graph, Linear Algebra and its Applications 40, 1981), on 1 - s to 1 + s. Its lower end is the first
/// component. The distribution of two independent matrices (K. W. Wachter, Annals of Statistics 8(5), 1980)
/// would be twice as wide; here both matrices are from the same pixels.
double chance_snr(int64_t pairs, int64_t bands);

/// Converts the model so that values which `by` converts to the model's values give the same components.
void rescale(Model& model, const model::Rescaling& by, const model::ValueScale& scene);

/// Return a readable JSON document, and the model from it; from_json(to_json(m)) gives the same numbers to
/// the last bit. Throw Error that names the file.
std::string to_json(const Model& model);
Model load_model(const std::string& path);
Model from_json(const std::string& text, const std::string& name);

/// Returns the transform from a scene to the first `components` components; input band matched[b] of `inputs`
/// is the model's band b.
pca::Transform projection(const Model& model, int components, const std::vector<int>& matched, int inputs);
/// Returns the transform from the first `components` components back to the model's bands.
pca::Transform reconstruction(const Model& model, int components);

} // namespace hsi::mnf
