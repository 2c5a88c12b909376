// SPDX-License-Identifier: MIT
// The search behind both methods: every valid pixel has a vector y, and the search finds the pixel where an
// affine form of y, or its distance from a subspace, is greatest.
#pragma once

#include "endmembers/endmembers.h"
#include "pca/pca.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::endmembers {

/// y of a pixel x: s = transform(x), divided by u's when there is a u (pixels with u's <= 0 then take no
/// part).
struct Frame {
    pca::Transform transform;
    std::vector<double> u; ///< a number a row, or empty
};

/// Affine forms of y: form k is offset[k] + sum_r matrix[k * rows + r] y_r.
struct Forms {
    std::vector<double> matrix, offset;
    int count() const { return static_cast<int>(offset.size()); }
    /// One more: of the vector (first, y) when leading, of (y, last) else, `constant` that first or last
    /// entry.
    void add(const std::vector<double>& form, bool leading, double constant);
};

/// The greatest of many values, and the smallest index among those within 1e-10 (relative) of it.
class Leader {
  public:
    void offer(double value, int64_t index);
    void merge(const Leader& other);
    /// For another process, and from there.
    const std::vector<std::pair<int64_t, double>>& rising() const { return m_rising; }
    bool found() const { return !m_rising.empty(); }
    int64_t index() const { return m_rising.front().first; }
    double value() const { return m_rising.front().second; } ///< at index()
    /// Smaller values change nothing.
    double threshold() const { return m_threshold; }

  private:
    /// (index, value), both rising: every other value within reach has a smaller index and no smaller value
    /// before it.
    std::vector<std::pair<int64_t, double>> m_rising;
    double m_best = 0, m_threshold = -1;
};

struct Peak {
    bool found = false;
    int64_t line = 0, sample = 0;
    double value = 0;
};

class Search {
  public:
    /// Makes y of all pixels in one pass and keeps it where memory allows. Several ranks keep it together,
    /// and make all calls together.
    Search(const stream::CubeSource& source, Frame frame, const MakePass& make_pass, Extraction& record);
    ~Search();
    int rows() const; ///< of y
    /// For each form the pixel where its absolute value is greatest.
    std::vector<Peak> greatest(const Forms& forms);
    /// The pixel where constant + |y|^2 less the squares of the forms is greatest.
    Peak farthest(double constant, const Forms& forms);
    std::vector<double> y_at(const Peak& place);

  private:
    struct State;
    std::unique_ptr<State> m;
};

/// Orthonormal vectors, added one after the other.
class OrthonormalBasis {
  public:
    /// v less its projection on the basis.
    std::vector<double> residual(std::vector<double> v) const;
    void add(const std::vector<double>& v); ///< its residual, normalised
    const std::vector<std::vector<double>>& vectors() const { return m_vectors; }

  private:
    std::vector<std::vector<double>> m_vectors;
};

double length_of(const std::vector<double>& v);

void find_by_nfindr(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                    const Options& options, const MakePass& make_pass, Extraction& found);
/// N-FINDR's nested sets.
void find_by_growing(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                     const Options& options, const MakePass& make_pass, Extraction& found);
void find_by_vca(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                 const Options& options, const MakePass& make_pass, Extraction& found);

} // namespace hsi::endmembers
