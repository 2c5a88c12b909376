// SPDX-License-Identifier: MIT
// N-FINDR.
#include "core/counted.h"
#include "core/error.h"
#include "endmembers/search.h"
#include "math/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hsi::endmembers {
namespace {

constexpr int most_sweeps = 100;
constexpr double least_gain = 1e-10;

/// A matrix whose columns y_k are the vertices. Row k of its inverse is the barycentric coordinate b_k.
class Simplex {
  public:
    explicit Simplex(size_t vertices) : m_size(vertices), m_columns(vertices * vertices) {}
    void set(size_t vertex, const std::vector<double>& y) {
        for (size_t r = 0; r < m_size; ++r)
            m_columns[r * m_size + vertex] = y[r];
    }
    void invert() { m_inverse = math::invert(m_columns, static_cast<int>(m_size)); }
    Forms coordinates() const {
        Forms forms;
        for (size_t k = 0; k < m_size; ++k)
            forms.add(std::vector<double>(m_inverse.begin() + static_cast<ptrdiff_t>(k * m_size),
                                          m_inverse.begin() + static_cast<ptrdiff_t>((k + 1) * m_size)),
                      true, 1.0);
        return forms;
    }
    /// Returns the height of vertex k above the flat through the other vertices. Along the height, b_k falls
    /// from 1 to 0.
    double height(size_t k, const std::vector<double>& deviations) const {
        double sum = 0;
        for (size_t r = 1; r < m_size; ++r) {
            const double slope = m_inverse[k * m_size + r] / deviations[r - 1];
            sum += slope * slope;
        }
        return 1 / std::sqrt(sum);
    }

  private:
    size_t m_size;
    std::vector<double> m_columns, m_inverse;
};

/// y from t - 1 components, divided by their standard deviations. If fewer components exist, t is smaller.
struct Components {
    size_t t = 0; ///< number of vertices
    Frame frame;
    std::vector<double> deviations;
};

Components components_of(const stream::SceneStatistics& moments, int count, Extraction& found) {
    const auto n = static_cast<size_t>(moments.bands);
    const auto pixels = static_cast<double>(moments.valid_pixels);
    const auto eigen = math::eigen_symmetric(moments.covariance, moments.bands);
    size_t rank = 0;
    while (rank < n && eigen.values[rank] > 0 && eigen.values[rank] >= 1e-12 * eigen.values[0])
        ++rank;
    if (rank == 0)
        throw Error("the valid pixels are all equal, so they have no endmembers",
                    "Check the values and the nodata value of the scene.");
    Components c;
    c.t = static_cast<size_t>(count);
    if (c.t > rank + 1) {
        c.t = rank + 1;
        found.warnings.push_back("the scene has only " + counted(rank, "component") +
                                 " with variance: found " + counted(c.t, "endmember") + " instead of " +
                                 std::to_string(count));
    }
    c.frame.transform.inputs = moments.bands;
    c.frame.transform.outputs = static_cast<int>(c.t - 1);
    for (size_t k = 0; k + 1 < c.t; ++k) {
        c.deviations.push_back(std::sqrt(eigen.values[k] * (pixels / (pixels - 1))));
        double offset = 0;
        for (size_t b = 0; b < n; ++b) {
            const double weight = eigen.vector(static_cast<int>(k))[b] / c.deviations[k];
            c.frame.transform.matrix.push_back(weight);
            offset -= weight * moments.mean[b];
        }
        c.frame.transform.offset.push_back(offset);
    }
    return c;
}

/// Returns a unit vector of `size` entries that is orthogonal to the basis, which has size - 1 vectors.
std::vector<double> normal_of(const OrthonormalBasis& basis, size_t size) {
    std::vector<double> best;
    double longest = 0;
    for (size_t i = 0; i < size; ++i) {
        std::vector<double> axis(size, 0.0);
        axis[i] = 1;
        axis = basis.residual(axis);
        if (const double length = length_of(axis); length > longest) {
            longest = length;
            best = std::move(axis);
        }
    }
    for (double& x : best)
        x /= longest;
    return best;
}

} // namespace

void find_by_growing(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                     const Options& options, const MakePass& make_pass, Extraction& found) {
    Components components = components_of(moments, options.count, found);
    const size_t t = components.t;
    const auto& deviations = components.deviations;
    Search search(source, std::move(components.frame), make_pass, found);
    std::vector<std::vector<double>> vertices; // (1, y) with all components
    for (size_t k = 0; k < t; ++k) {
        // The determinant of k vertices and (1, y) is a linear form of y, where y has k components. The form
        // is the product with the vector orthogonal to the vertices. Without vertices, the form is the first
        // component.
        const size_t used = std::max<size_t>(k, 1);
        std::vector<double> form{0.0, 1.0};
        if (k > 0) {
            OrthonormalBasis basis;
            for (const auto& vertex : vertices)
                basis.add({vertex.begin(), vertex.begin() + static_cast<ptrdiff_t>(k) + 1});
            form = normal_of(basis, k + 1);
        }
        double squares = 0; // squared slope of the form along unscaled components
        for (size_t r = 1; r <= used; ++r)
            squares += form[r] / deviations[r - 1] * (form[r] / deviations[r - 1]);
        form.resize(t, 0.0);
        Forms forms;
        forms.add(form, true, 1.0);
        const Peak peak = search.greatest(forms).front();
        if (!peak.found || !(peak.value > 1e-9)) {
            found.warnings.push_back("no pixel enlarges the simplex of the first " + counted(k, "endmember") +
                                     ": found " + std::to_string(k) + " instead of " + std::to_string(t));
            break;
        }
        found.members.push_back({peak.line, peak.sample, peak.value / std::sqrt(squares)});
        auto y = search.y_at(peak);
        y.insert(y.begin(), 1.0);
        vertices.push_back(std::move(y));
    }
}

void find_by_nfindr(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                    const Options& options, const MakePass& make_pass, Extraction& found) {
    Components components = components_of(moments, options.count, found);
    const size_t t = components.t;
    const auto& deviations = components.deviations;
    Search search(source, std::move(components.frame), make_pass, found);

    std::vector<Peak> vertices;
    Simplex simplex(t);
    const auto take = [&](size_t slot, const Peak& peak) {
        vertices[slot] = peak;
        auto y = search.y_at(peak);
        y.insert(y.begin(), 1.0);
        simplex.set(slot, y);
        return y;
    };
    OrthonormalBasis basis;
    Forms span;
    for (size_t k = 0; k < t; ++k) {
        vertices.push_back(search.farthest(1.0, span));
        basis.add(take(k, vertices[k]));
        span.add(basis.vectors().back(), true, 1.0);
    }
    simplex.invert();
    // For each vertex, the pixel whose barycentric coordinate at this vertex has the greatest absolute value;
    // empty if a vertex has changed since.
    std::vector<Peak> peaks;
    for (bool changed = true; changed;) {
        if (found.sweeps == most_sweeps) {
            found.warnings.push_back("N-FINDR was stopped after " + std::to_string(most_sweeps) +
                                     " sweeps; further sweeps might enlarge the simplex");
            break;
        }
        changed = false;
        ++found.sweeps;
        for (size_t k = 0; k < t; ++k) {
            if (peaks.empty()) peaks = search.greatest(simplex.coordinates());
            if (!(peaks[k].value > 1 + least_gain)) continue;
            take(k, peaks[k]);
            simplex.invert();
            peaks.clear();
            changed = true;
            ++found.replacements;
        }
    }
    for (size_t k = 0; k < t; ++k)
        found.members.push_back({vertices[k].line, vertices[k].sample, simplex.height(k, deviations)});
}

} // namespace hsi::endmembers
