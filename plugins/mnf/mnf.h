// SPDX-License-Identifier: MIT
// Minimum noise fraction: components of a scene in the order of their ratio of signal to noise.
//
// A. A. Green, M. Berman, P. Switzer, M. D. Craig: A transformation for ordering multispectral data in terms
// of image quality with implications for noise removal, IEEE TGRS 26(1), 1988: eigenvectors of noise against
// whole covariance, the noise from differences of neighbours. The components' noise is scaled to 1, as in the
// noise-adjusted transform of J. B. Lee, A. S. Woodyatt, M. Berman, IEEE TGRS 28(3), 1990. With C the
// covariance of all valid pixels and Cn the covariance of the noise,
//   Cn = 1/(2 M) sum d d',  d = x(line, sample + 1) - x(line, sample) over the M pairs that are both valid,
//   C v = l Cn v,  v'Cn v = 1,  l falling;   y_k = v_k'(x - mean);   x^ = mean + sum_k Cn v_k y_k.
// l is (signal + noise) / noise. Decided here, where the papers are silent: pairs along lines only, so that
// striping of a pushbroom scanner counts as noise; the mean of d is not removed; a v's entry of greatest
// magnitude is positive.
#pragma once

#include "core/cost.h"
#include "model/classes.h"
#include "pca/pca.h"
#include "stream/statistics_scan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::mnf {

/// Its costs, for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost noise_and_signal{6e-11, 2.9e-13}; ///< a pixel and pair of bands
} // namespace cost

/// The result of a fit, with everything that projects another scene in the same way: n bands and as many
/// components. `mean` is always there.
struct Model : model::ModelBands {
    std::string source; ///< the scene it was made from
    model::Origin origin;
    int64_t pixels = 0, pairs = 0;   ///< its valid pixels, and pairs of neighbours
    bool regularised = false;        ///< 1e-6 of every band's noise variance was added to Cn's diagonal
    std::vector<double> eigenvalues; ///< l: n, falling
    std::vector<double> loadings;    ///< n x n, row k is v_k
    std::vector<double> inverse;     ///< n x n, row k is Cn v_k
    int components = 0;              ///< n

    int band_count() const { return static_cast<int>(mean.size()); }
    const double* loading(int component) const {
        return loadings.data() + static_cast<size_t>(component) * mean.size();
    }
    const double* inverse_loading(int component) const {
        return inverse.data() + static_cast<size_t>(component) * mean.size();
    }
    /// Signal to noise, in variances.
    double snr(int component) const { return eigenvalues[static_cast<size_t>(component)] - 1; }
};

struct Fit {
    Model model; ///< the caller fills source, bands and wavelengths_nm
    /// The scan's bands (0-based, rising) that the model has: those that differ between neighbours anywhere.
    std::vector<int> kept;
};

/// `moments` with differences. Cn is regularised when there are no more pairs than bands, or when, scaled to
/// a unit diagonal, its least eigenvalue is under 1e-10. \throws Error when there are fewer than 2 pairs,
/// when no band differs between neighbours, and when the matrices hold values that are not finite.
/// threads: no bit depends on them.
Fit fit(const stream::SceneStatistics& moments, int threads = 1);

/// The snr that the first component of `bands` bands of white noise has when its noise comes from so many
/// `pairs` of neighbours: s / (1 - s), s = sqrt(a (2 - a)), a = bands / pairs; infinite unless there are more
/// pairs than bands. 1 at 7.5 pairs a band, 0.1 at 240.
///
/// Along a line of white noise the ratio of Cn to C is 1 - cos(t) at the frequency t, all t alike: an arcsine
/// law. In p directions out of n it is compressed (D. Voiculescu's free compression by p / n), and the
/// arcsine law, the free sum of two coins, is then the law of H. Kesten (Symmetric random walks on groups,
/// Trans. AMS 92, 1959) and B. McKay (The expected eigenvalue distribution of a large regular graph, Linear
/// Algebra and its Applications 40, 1981), on 1 - s to 1 + s. Its lower end is the first component. The
/// distribution of two independent matrices (K. W. Wachter, Annals of Statistics 8(5), 1980) would be twice
/// as far: here both come from the same pixels.
double chance_snr(int64_t pairs, int64_t bands);

/// The same components for numbers that become the model's by `by`.
void rescale(Model& model, const model::Rescaling& by, const model::ValueScale& scene);

/// A readable JSON document; from_json(to_json(m)) gives the same numbers to the last bit. Throw Error naming
/// the file.
std::string to_json(const Model& model);
Model load_model(const std::string& path);
Model from_json(const std::string& text, const std::string& name);

/// Scene to components (the first `components`); input band matched[b] of `inputs` is the model's band b.
pca::Transform projection(const Model& model, int components, const std::vector<int>& matched, int inputs);
/// Components (the first `components`) back to the model's bands.
pca::Transform reconstruction(const Model& model, int components);

} // namespace hsi::mnf
