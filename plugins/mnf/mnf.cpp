// SPDX-License-Identifier: MIT
#include "mnf/mnf.h"

#include "core/counted.h"
#include "core/error.h"
#include "math/linear_algebra.h"
#include "parallel/threads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace hsi::mnf {
namespace {

/// For fewer bands, starting more threads takes longer than solving the eigenproblem.
constexpr int worth_threads = 4;
/// Both values refer to the noise matrix, scaled to a unit diagonal.
constexpr double least_eigenvalue = 1e-10, added = 1e-6;

/// Returns the rows and columns `kept` of an n x n matrix, multiplied by `factor`.
std::vector<double> cut(const std::vector<double>& matrix, size_t n, const std::vector<int>& kept,
                        double factor) {
    std::vector<double> part;
    for (const int a : kept)
        for (const int b : kept)
            part.push_back(factor * matrix[static_cast<size_t>(a) * n + static_cast<size_t>(b)]);
    return part;
}

} // namespace

Fit fit(const stream::SceneStatistics& moments, int threads) {
    if (moments.pairs < 2)
        throw Error("the noise cannot be estimated: the scene has " + counted(moments.pairs, "pair") +
                        " of valid neighbours along its lines",
                    "MNF needs valid pixels next to each other, in at least two columns.");
    Fit result;
    Model& m = result.model;
    const auto all = static_cast<size_t>(moments.bands);
    for (int b = 0; b < moments.bands; ++b)
        if (moments.differences[static_cast<size_t>(b) * (all + 1)] != 0) result.kept.push_back(b);
    if (result.kept.empty())
        throw Error("the noise cannot be estimated: neighbouring pixels are equal in all bands",
                    "Use the original scene, not a constant or enlarged one.");
    const auto n = static_cast<int>(result.kept.size());
    const auto size = result.kept.size();
    m.pixels = moments.valid_pixels;
    m.pairs = moments.pairs;
    m.components = n;
    for (const int b : result.kept)
        m.mean.push_back(moments.mean[static_cast<size_t>(b)]);
    const auto pixels = static_cast<double>(moments.valid_pixels);
    auto signal = cut(moments.covariance, all, result.kept, pixels / (pixels - 1));
    auto noise = cut(moments.differences, all, result.kept, 0.5);

    // Scales each band by the standard deviation of its noise.
    std::vector<double> deviation;
    for (size_t b = 0; b < size; ++b)
        deviation.push_back(std::sqrt(noise[b * (size + 1)]));
    for (size_t a = 0; a < size; ++a)
        for (size_t b = 0; b < size; ++b) {
            const double scale = deviation[a] * deviation[b];
            signal[a * size + b] /= scale;
            noise[a * size + b] = a == b ? 1.0 : noise[a * size + b] / scale;
        }
    m.regularised = moments.pairs <= n || math::eigenvalues_symmetric(noise, n).back() < least_eigenvalue;
    if (m.regularised)
        for (size_t b = 0; b < size; ++b)
            noise[b * (size + 1)] += added;

    const auto eigen = math::eigen_generalized(
        signal, noise, n, [&](int64_t units, const std::function<void(int64_t)>& work) {
            parallel::for_each(units, std::min(threads, worth_threads), nullptr,
                               [&](int64_t unit, int) { work(unit); });
        });
    m.eigenvalues = eigen.values;
    m.loadings.resize(size * size);
    m.inverse.resize(size * size);
    for (int k = 0; k < n; ++k) {
        double* const v = m.loadings.data() + static_cast<size_t>(k) * size;
        double* const w = m.inverse.data() + static_cast<size_t>(k) * size;
        for (size_t b = 0; b < size; ++b)
            v[b] = eigen.vector(k)[b] / deviation[b];
        math::fix_sign(v, n); // The sign is decided in the scene's units.
        // Column by column, so that one row update covers all bands.
        for (size_t a = 0; a < size; ++a) {
            const double factor = v[a] * deviation[a];
            for (size_t b = 0; b < size; ++b)
                w[b] += noise[a * size + b] * factor;
        }
        for (size_t b = 0; b < size; ++b)
            w[b] *= deviation[b];
    }
    return result;
}

double chance_snr(int64_t pairs, int64_t bands) {
    if (pairs <= bands) return std::numeric_limits<double>::infinity();
    const double a = static_cast<double>(bands) / static_cast<double>(pairs), s = std::sqrt(a * (2 - a));
    return s / (1 - s);
}

void rescale(Model& m, const model::Rescaling& by, const model::ValueScale& scene) {
    if (by.none()) return;
    model::rescale(m, by, scene);
    const size_t n = m.mean.size();
    for (size_t i = 0; i < m.loadings.size(); ++i) {
        m.loadings[i] *= by.factor[i % n];
        m.inverse[i] /= by.factor[i % n];
    }
}

pca::Transform projection(const Model& model, int components, const std::vector<int>& matched, int inputs) {
    pca::Transform t;
    t.inputs = inputs;
    t.outputs = components;
    t.matrix.assign(static_cast<size_t>(components) * static_cast<size_t>(inputs), 0.0);
    for (int k = 0; k < components; ++k) {
        double offset = 0;
        double* const row = t.matrix.data() + static_cast<ptrdiff_t>(k) * inputs;
        for (size_t b = 0; b < model.mean.size(); ++b) {
            row[matched[b]] = model.loading(k)[b];
            offset -= model.loading(k)[b] * model.mean[b];
        }
        t.offset.push_back(offset);
    }
    return t;
}

pca::Transform reconstruction(const Model& model, int components) {
    pca::Transform t;
    t.inputs = components;
    t.outputs = model.band_count();
    t.zero_is_invalid = false;
    for (size_t b = 0; b < model.mean.size(); ++b)
        for (int k = 0; k < components; ++k)
            t.matrix.push_back(model.inverse_loading(k)[b]);
    t.offset = model.mean;
    return t;
}

} // namespace hsi::mnf
