// SPDX-License-Identifier: MIT
// Makes the vectors of a detector from targets and background.
#include "core/counted.h"
#include "core/error.h"
#include "detect/pixel/pixel.h"
#include "math/elementary.h"
#include "math/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <numeric>

namespace hsi::detect {
namespace {

using Vector = std::vector<double>;

TargetIsMean no_target(const std::string& name, const std::string& what) {
    return TargetIsMean("target '" + name + "' " + what, "Leave it out, or take another spectrum.");
}

void check_finite(const Targets& targets) {
    for (size_t k = 0; k < targets.spectra.size(); ++k)
        if (!std::all_of(targets.spectra[k].begin(), targets.spectra[k].end(),
                         [](double v) { return std::isfinite(v); }))
            throw Error("target '" + targets.names[k] + "' has values that are not numbers");
}

/// Returns x / |x|.
Vector unit(const Vector& x, const std::string& name) {
    double squared = 0;
    for (double v : x)
        squared += v * v;
    if (!(squared > 0)) throw no_target(name, "is all zero");
    Vector u;
    for (double v : x)
        u.push_back(v / std::sqrt(squared));
    return u;
}

/// Returns q = t+ / sum t+, with t+ as in pixel.h.
Vector distribution(const Vector& t, const std::string& name) {
    const double greatest = *std::max_element(t.begin(), t.end());
    if (!(greatest > 0)) throw no_target(name, "has no positive value");
    Vector q;
    double sum = 0;
    for (double v : t) {
        q.push_back(std::max(v, least_part * greatest));
        sum += q.back();
    }
    for (double& v : q)
        v /= sum;
    return q;
}

/// Returns the number of reliable components, whose eigenvalues are at least 1e-10 of the mean eigenvalue.
int usable_components(const Vector& eigenvalues, double mean) {
    return static_cast<int>(std::count_if(eigenvalues.begin(), eigenvalues.end(),
                                          [&](double v) { return v >= least_share * mean && v > 0; }));
}

/// Returns the number of components; 0 for all bands. \throws Error if fewer are available than requested.
int components_of(const Detector& d, const Vector& eigenvalues, int asked) {
    if (asked == 0) return 0;
    // n centred pixels span at most n - 1 directions; other eigenvalues are rounding errors.
    const auto rank = static_cast<int>(
        std::min<int64_t>(d.method == Method::cem ? d.background_pixels : d.background_pixels - 1,
                          usable_components(eigenvalues, d.mean_eigenvalue)));
    if (asked == Conditioning::best_components) {
        const auto best = static_cast<int>(
            std::min<int64_t>(rank, std::max<int64_t>(Conditioning::fewest_components(d.method),
                                                      d.background_pixels / Conditioning::pixels_for_one)));
        return best < static_cast<int>(d.used.size()) ? best : 0;
    }
    if (asked > rank)
        throw Error("the background has only " + counted(rank, "usable component") + ", but " +
                        std::to_string(asked) + " are requested",
                    "Use a smaller -nc, or -nc auto.");
    return asked;
}

/// Returns L such that L'L is the inverse of the matrix in its first components. L is lower triangular, like
/// the inverse of a Cholesky factor.
Vector factor_of_components(const Vector& matrix, size_t n, size_t components) {
    const auto eigen = math::eigen_symmetric(matrix, static_cast<int>(n));
    Vector rows(components * n);
    for (size_t k = 0; k < components; ++k)
        for (size_t b = 0; b < n; ++b)
            rows[k * n + b] = eigen.vector(static_cast<int>(k))[b] / std::sqrt(eigen.values[k]);
    return math::lower_factor(rows, static_cast<int>(components), static_cast<int>(n));
}

/// Returns the matrix after its bands were scaled to unit variance.
Vector on_unit_bands(const Vector& matrix, size_t n) {
    Vector scaled(matrix.size());
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            if (const double both = std::sqrt(matrix[a * n + a] * matrix[b * n + b]); both > 0)
                scaled[a * n + b] = matrix[a * n + b] / both;
    return scaled;
}

/// Returns Detector::free_dimensions of a matrix with these eigenvalues and the mean eigenvalue `mean`, both
/// before shrinkage.
double free_dimensions(const Detector& d, const Vector& eigenvalues, double mean) {
    if (d.shrinkage == 0) return static_cast<double>(d.dimensions());
    // Eigenvalues beyond the rank are rounding errors.
    const auto most =
        std::min(d.dimensions(), d.background_pixels - (d.method == Method::cem ? int64_t{0} : int64_t{1}));
    double sum = 0;
    for (size_t k = 0; k < static_cast<size_t>(most); ++k) {
        const double own = (1 - d.shrinkage) * std::max(0.0, eigenvalues[k]);
        sum += own / (own + d.shrinkage * mean);
    }
    return sum;
}

/// Returns C or R in the used bands.
Vector plain_matrix(const Detector& d, const stream::SceneStatistics& background) {
    const auto all = static_cast<size_t>(background.bands), n = d.used.size();
    const auto count = static_cast<double>(background.valid_pixels);
    const Vector products = d.method == Method::cem ? background.mean_products() : Vector();
    const Vector& whole = d.method == Method::cem ? products : background.covariance;
    const double unbiased = d.method == Method::cem ? 1.0 : count / (count - 1);
    Vector matrix(n * n);
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            matrix[a * n + b] =
                unbiased * whole[static_cast<size_t>(d.used[a]) * all + static_cast<size_t>(d.used[b])];
    return matrix;
}

void shrink(Vector& matrix, const Detector& d, bool by_bands) {
    const size_t n = d.used.size();
    for (size_t a = 0; a < n; ++a) {
        const double own = by_bands ? matrix[a * n + a] : d.mean_eigenvalue;
        for (size_t b = 0; b < n; ++b)
            matrix[a * n + b] *= 1 - d.shrinkage;
        matrix[a * n + a] += d.shrinkage * own;
    }
}

/// Returns true if the least eigenvalue of the shrunk matrix is below 1e-10 of the mean eigenvalue. Tries
/// cheaper tests before eigenvalues. `factor`: receives the inverse of the matrix's Cholesky factor if a test
/// has computed it; otherwise empty.
bool is_singular(const Detector& d, const Vector& matrix, bool by_bands, Vector& factor) {
    const size_t n = d.used.size();
    const double border = least_share * d.mean_eigenvalue;
    double least = matrix[0], squared = 0;
    for (size_t a = 0; a < n; ++a)
        least = std::min(least, matrix[a * n + a]);
    // All eigenvalues of (1-a) C are at least 0, so the eigenvalues of the shrunk matrix are at least a times
    // the least element of the diagonal.
    if (by_bands && d.shrinkage * least >= 2 * border) return false;
    try {
        factor = math::invert_factor(matrix, static_cast<int>(n));
        for (const double v : factor)
            squared += v * v;
        // The trace of the inverse is at least the reciprocal of the least eigenvalue.
        if (squared * 2 * border <= 1) return false;
    } catch (const Error&) { // not positive definite, due to rounding
    }
    factor.clear();
    return math::eigenvalues_symmetric(matrix, static_cast<int>(n)).back() < border;
}

/// Adds a ridge to a matrix that would have no inverse without it.
void add_ridge(Detector& d, Vector& matrix) {
    const size_t n = d.used.size();
    d.ridge = ridge_share * d.mean_eigenvalue;
    for (size_t a = 0; a < n; ++a)
        matrix[a * n + a] += d.ridge;
}

/// Returns C or R in the used bands, prepared as the method and `conditioning` require, including the
/// addition to its diagonal. `factor`: the inverse factor from is_singular(), if it was computed.
Vector matrix_of(Detector& d, const stream::SceneStatistics& background, const Conditioning& conditioning,
                 Vector& factor) {
    const size_t n = d.used.size();
    Vector matrix = plain_matrix(d, background);
    double trace = 0;
    for (size_t a = 0; a < n; ++a)
        trace += matrix[a * n + a];
    d.mean_eigenvalue = trace / static_cast<double>(n);
    d.shrinkage = conditioning.shrinkage;
    const bool is_short = d.shrinkage == 0 && background.valid_pixels <= static_cast<int64_t>(n);
    if (!conditioning.tell_eigenvalues) {
        d.least_eigenvalue = d.free_dimensions = std::nan("");
        if (d.shrinkage > 0) shrink(matrix, d, conditioning.by_bands);
        if (is_short || is_singular(d, matrix, conditioning.by_bands, factor)) add_ridge(d, matrix);
        return matrix;
    }
    // The matrix usually remains unchanged, so its factor is computed in parallel with its eigenvalues.
    std::future<Vector> beside;
    if (d.shrinkage == 0 && conditioning.components == 0 && !is_short)
        beside = std::async(std::launch::async,
                            [&matrix, n] { return math::invert_factor(matrix, static_cast<int>(n)); });
    auto eigenvalues = math::eigenvalues_symmetric(matrix, static_cast<int>(n));
    if (beside.valid()) beside.wait(); // The matrix must not change while its factor is computed.
    d.least_eigenvalue = eigenvalues.back();
    d.components = components_of(d, eigenvalues, conditioning.components);
    const bool by_bands = conditioning.by_bands && d.shrinkage > 0;
    d.free_dimensions =
        by_bands ? free_dimensions(
                       d, math::eigenvalues_symmetric(on_unit_bands(matrix, n), static_cast<int>(n)), 1)
                 : free_dimensions(d, eigenvalues, d.mean_eigenvalue);
    if (d.shrinkage > 0) {
        shrink(matrix, d, by_bands);
        for (double& v : eigenvalues)
            v = (1 - d.shrinkage) * std::max(0.0, v) + d.shrinkage * d.mean_eigenvalue;
    }
    if (d.components > 0) return matrix;
    if (is_short || (by_bands ? is_singular(d, matrix, true, factor)
                              : eigenvalues.back() < least_share * d.mean_eigenvalue))
        add_ridge(d, matrix);
    else if (beside.valid())
        factor = beside.get();
    return matrix;
}

/// Computes the rows w = M^-1 z / z'M^-1 z, z = t - m, from the inverse of M's Cholesky factor.
void add_matched_rows(Detector& d, const Targets& targets, const Vector& factor) {
    const size_t n = d.used.size();
    for (size_t k = 0; k < targets.spectra.size(); ++k) {
        Vector z(n), whitened(n), row(n);
        double contrast = 0;
        for (size_t b = 0; b < n; ++b) {
            const double t = targets.spectra[k][static_cast<size_t>(d.used[b])];
            z[b] = targets.absorption ? t * d.centre[b] : t - d.centre[b];
        }
        for (size_t a = 0; a < n; ++a) {
            for (size_t b = 0; b <= a; ++b)
                whitened[a] += factor[a * n + b] * z[b];
            contrast += whitened[a] * whitened[a];
        }
        if (!is_enough_contrast(contrast, targets.absorption))
            throw no_target(targets.names[k], targets.absorption ? "absorbs nothing"
                                              : d.method == Method::cem
                                                  ? "is zero compared with the background"
                                                  : "equals the mean of the background");
        for (size_t a = 0; a < n; ++a)
            for (size_t b = 0; b <= a; ++b)
                row[b] += factor[a * n + b] * whitened[a];
        for (double& v : row)
            v /= contrast;
        d.rows.insert(d.rows.end(), row.begin(), row.end());
        d.constants.push_back(contrast);
    }
}

} // namespace

const char* name_of(Method method) {
    for (const auto& one : method_names)
        if (one.second == method) return one.first;
    return nullptr; // not reached: method_names has all methods
}

Detector make_detector(Method method, const Targets& targets) {
    if (has_background(method) || targets.spectra.empty())
        throw Error("internal: a detector without targets or background");
    check_finite(targets);
    Detector d;
    d.method = method;
    d.targets = static_cast<int>(targets.spectra.size());
    d.bands = static_cast<int>(targets.spectra.front().size());
    d.used.resize(targets.spectra.front().size());
    std::iota(d.used.begin(), d.used.end(), 0);
    d.centre.assign(d.used.size(), 0.0);
    for (size_t k = 0; k < targets.spectra.size(); ++k) {
        if (method == Method::sam) {
            const Vector v = unit(targets.spectra[k], targets.names[k]);
            d.rows.insert(d.rows.end(), v.begin(), v.end());
            continue;
        }
        const Vector q = distribution(targets.spectra[k], targets.names[k]);
        double entropy = 0;
        for (double v : q) {
            d.rows.push_back(math::log(v));
            d.log_rows.push_back(v);
            entropy += v * math::log(v);
        }
        d.constants.push_back(entropy);
    }
    return d;
}

Detector make_detector(Method method, const Targets& targets, const stream::SceneStatistics& background,
                       const Conditioning& conditioning) {
    if (!has_background(method) || targets.spectra.empty() == has_target(method))
        throw Error("internal: a detector with the wrong targets or background");
    check_finite(targets);
    const auto& moments = background;
    Detector d;
    d.method = method;
    d.bands = moments.bands;
    d.targets = static_cast<int>(targets.spectra.size());
    d.background_pixels = moments.valid_pixels;
    if (moments.valid_pixels < 2)
        throw Error("the background has " + counted(moments.valid_pixels, "valid pixel") +
                        ": its statistics need at least 2",
                    "Use a background of more pixels.");
    if (static_cast<int>(moments.constant.size()) == moments.bands)
        throw Error("the background has no variance: all of its valid pixels are equal",
                    "Use a background whose pixels differ.");
    if (method != Method::cem) d.constant = moments.constant;
    for (int b = 0; b < moments.bands; ++b)
        if (!std::binary_search(d.constant.begin(), d.constant.end(), b)) {
            d.used.push_back(b);
            d.centre.push_back(method == Method::cem ? 0.0 : moments.mean[static_cast<size_t>(b)]);
        }
    const size_t n = d.used.size();
    Vector factor;
    const Vector matrix = matrix_of(d, moments, conditioning, factor);
    if (d.components > 0)
        factor = factor_of_components(matrix, n, static_cast<size_t>(d.components));
    else if (factor.empty())
        factor = math::invert_factor(matrix, static_cast<int>(n));
    add_matched_rows(d, targets, factor);
    if (method == Method::ace || method == Method::rx) {
        d.factor = std::move(factor);
        for (const int b : d.used) {
            const auto at = static_cast<size_t>(b) * (static_cast<size_t>(moments.bands) + 1);
            d.deviation.push_back(std::sqrt(std::max(0.0, moments.covariance[at])));
        }
    }
    return d;
}

} // namespace hsi::detect
