// SPDX-License-Identifier: MIT
// Minimum noise fraction: components of a scene in the order of their signal-to-noise ratio.
//
// A. A. Green, M. Berman, P. Switzer, M. D. Craig: A transformation for ordering multispectral data in terms
// of image quality with implications for noise removal, IEEE TGRS 26(1), 1988. The components are
// eigenvectors of the noise covariance relative to the whole covariance. The noise is estimated from
// differences of neighbouring pixels. The noise of the components is scaled to 1, as in the noise-adjusted
// transform of J. B. Lee, A. S. Woodyatt, M. Berman, IEEE TGRS 28(3), 1990. C is the covariance of all valid
// pixels, and Cn the covariance of the noise:
//   Cn = 1/(2 M) sum d d',  d = x(line, sample + 1) - x(line, sample) over the M pairs that are both valid,
//   C v = l Cn v,  v'Cn v = 1,  l falling;   y_k = v_k'(x - mean);   x^ = mean + sum_k Cn v_k y_k.
// l is (signal + noise) / noise. The papers leave three choices open. Here, pairs are only along lines, so
// striping of a pushbroom scanner counts as noise. The mean of d is not subtracted. The entry of greatest
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
inline constexpr Cost noise_and_signal{6e-11, 2.9e-13}; ///< seconds per pixel and pair of bands
} // namespace cost

/// The result of a fit, with all data to project another scene in the same way. There are n bands and n
/// components. `mean` is always set.
struct Model : model::ModelBands {
    std::string source; ///< name of the scene from which the model was made
    model::Origin origin;
    int64_t pixels = 0, pairs = 0; ///< number of valid pixels, and of pairs of valid neighbours
    bool regularised = false; ///< true if 1e-6 of every band's noise variance was added to the diagonal of Cn
    std::vector<double> eigenvalues; ///< l, n values, falling
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
    /// Returns the signal-to-noise ratio of a component, as a ratio of variances.
    double snr(int component) const { return eigenvalues[static_cast<size_t>(component)] - 1; }
};

struct Fit {
    Model model; ///< The caller sets source, bands and wavelengths_nm.
    /// Indices of the scan's bands in the model (0-based, rising). A band is kept if any neighbours differ in
    /// it.
    std::vector<int> kept;
};

/// Fits the model. `moments` must include differences. Cn is regularised if the number of pairs is at most
/// the number of bands, or if its smallest eigenvalue, scaled to a unit diagonal, is below 1e-10. \throws
/// Error if there are fewer than 2 pairs, if no band differs between neighbours, or if the matrices contain
/// values that are not finite. `threads` does not affect the result.
Fit fit(const stream::SceneStatistics& moments, int threads = 1);

/// Returns the signal-to-noise ratio that the first component would have by chance in white noise of `bands`
/// bands, if the noise is estimated from `pairs` pairs of neighbours. The ratio is s / (1 - s) with s =
/// sqrt(a (2 - a)) and a = bands / pairs. It is infinite unless there are more pairs than bands. The ratio is
/// 1 for 7.5 pairs per band, and 0.1 for 240 pairs per band.
///
/// Along a line of white noise, the ratio of Cn to C is 1 - cos(t) at the frequency t. All t are equally
/// likely, so the ratio has an arcsine law. In p directions out of n, the law is compressed (D. Voiculescu's
/// free compression by p / n). The arcsine law is the free sum of two coins. Its compression is the law of H.
/// Kesten (Symmetric random walks on groups, Trans. AMS 92, 1959) and B. McKay (The expected eigenvalue
/// distribution of a large regular graph, Linear Algebra and its Applications 40, 1981), on 1 - s to 1 + s.
/// The lower end of this interval is the first component. The distribution of two independent matrices (K. W.
/// Wachter, Annals of Statistics 8(5), 1980) would be twice as wide. Here, both matrices come from the same
/// pixels.
double chance_snr(int64_t pairs, int64_t bands);

/// Changes the model so that it accepts values in the scale `scene`. `by` converts such values to the scale
/// from which the model was made. The components stay the same.
void rescale(Model& model, const model::Rescaling& by, const model::ValueScale& scene);

/// Convert a model to a readable JSON document and back; from_json(to_json(m)) restores all numbers exactly.
/// \throws Error, which names the file, if the file cannot be read or is not such a document.
std::string to_json(const Model& model);
Model load_model(const std::string& path);
Model from_json(const std::string& text, const std::string& name);

/// Returns the transform from a scene to the first `components` components. Band matched[b] of the `inputs`
/// bands is the model's band b.
pca::Transform projection(const Model& model, int components, const std::vector<int>& matched, int inputs);
/// Returns the transform from the first `components` components back to the model's bands.
pca::Transform reconstruction(const Model& model, int components);

} // namespace hsi::mnf
