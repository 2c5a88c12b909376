// SPDX-License-Identifier: MIT
// Vertex component analysis (VCA).
#include "core/counted.h"
#include "core/error.h"
#include "endmembers/search.h"
#include "math/elementary.h"
#include "math/linear_algebra.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>

namespace hsi::endmembers {
namespace {

/// Returns the signal-to-noise ratio in decibels. It compares the power inside the subspace of t dimensions
/// with the power outside.
double snr_of(const stream::SceneStatistics& moments, const math::SymmetricEigen& eigen, int t) {
    const double mean_power =
        std::inner_product(moments.mean.begin(), moments.mean.end(), moments.mean.begin(), 0.0);
    double all = mean_power, inside = mean_power;
    for (int b = 0; b < moments.bands; ++b)
        all += moments.covariance[static_cast<size_t>(b) * (static_cast<size_t>(moments.bands) + 1)];
    for (int k = 0; k < t; ++k)
        inside += eigen.values[static_cast<size_t>(k)];
    if (all - inside <= 1e-12 * all) return std::numeric_limits<double>::infinity();
    const double signal = inside - static_cast<double>(t) / moments.bands * all;
    if (signal <= 0) return -std::numeric_limits<double>::infinity();
    return 10 * math::log10(signal / (all - inside));
}

/// Returns the transform that applies the first `count` eigenvectors to x minus `centre`.
pca::Transform onto(const math::SymmetricEigen& eigen, int count, const std::vector<double>& centre) {
    pca::Transform t;
    t.inputs = eigen.size;
    t.outputs = count;
    for (int k = 0; k < count; ++k) {
        const double* const e = eigen.vector(k);
        t.matrix.insert(t.matrix.end(), e, e + eigen.size);
        t.offset.push_back(-std::inner_product(centre.begin(), centre.end(), e, 0.0));
    }
    return t;
}

} // namespace

void find_by_vca(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                 const Options& options, const MakePass& make_pass, Extraction& found) {
    const int t = options.count;
    const auto eigen = math::eigen_symmetric(moments.covariance, moments.bands);
    found.snr = snr_of(moments, eigen, t);
    found.projective = !(found.snr < 15 + 10 * math::log10(static_cast<double>(t)));

    Frame frame;
    if (found.projective) {
        const auto products = math::eigen_symmetric(moments.mean_products(), moments.bands);
        const std::vector<double> zero(moments.mean.size(), 0.0);
        frame.transform = onto(products, t, zero);
        for (int k = 0; k < t; ++k)
            frame.u.push_back(
                std::inner_product(moments.mean.begin(), moments.mean.end(), products.vector(k), 0.0));
    } else {
        if (!(eigen.values[0] > 0))
            throw Error("the valid pixels are all equal, so they have no endmembers",
                        "Check the values and the nodata value of the scene.");
        frame.transform = onto(eigen, t - 1, moments.mean);
    }
    Search search(source, std::move(frame), make_pass, found);
    // Without the projective projection, the last entry of y is the same constant c for all pixels. With it,
    // this entry does not exist.
    const double longest = std::sqrt(search.farthest(0.0, {}).value);
    const double last = found.projective ? 0.0 : longest;
    const double greatest = std::sqrt(longest * longest + last * last);

    RandomVectors random(options.seed);
    OrthonormalBasis chosen;
    for (int k = 0; k < t; ++k) {
        const auto w = random.normal_numbers(t);
        auto f = chosen.residual(w);
        if (k == 0) f.back() = 0;
        const double length = length_of(f);
        for (double& x : f)
            x /= length;
        Forms form;
        if (found.projective) {
            form.matrix = f;
            form.offset = {0.0};
        } else {
            form.add(f, false, last);
        }
        const Peak peak = search.greatest(form).front();
        if (!peak.found || peak.value < 1e-9 * greatest) {
            found.warnings.push_back("all pixels are combinations of the first " + counted(k, "endmember") +
                                     ": found " + std::to_string(k) + " instead of " + std::to_string(t));
            break;
        }
        found.members.push_back({peak.line, peak.sample, peak.value});
        auto y = search.y_at(peak);
        if (!found.projective) y.push_back(last);
        chosen.add(y);
    }
}

} // namespace hsi::endmembers
