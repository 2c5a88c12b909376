// SPDX-License-Identifier: MIT
// The search behind both methods. Every valid pixel has a vector y, and the search finds the pixel for which
// an affine form of y, or its distance from a subspace, is greatest.
#pragma once

#include "endmembers/endmembers.h"
#include "pca/pca.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::endmembers {

/// Defines y of a pixel x: s = transform(x), divided by u's if there is a u (pixels with u's <= 0 are then
/// excluded).
struct Frame {
    pca::Transform transform;
    std::vector<double> u; ///< one number per row, or empty
};

/// Affine forms of y: form k is offset[k] + sum_r matrix[k * rows + r] y_r.
struct Forms {
    std::vector<double> matrix, offset;
    int count() const { return static_cast<int>(offset.size()); }
    /// Adds a form of the vector (first, y) if `leading`, otherwise of (y, last); `constant` is this first or
    /// last entry.
    void add(const std::vector<double>& form, bool leading, double constant);
};

/// The greatest of many values, and the smallest index among those within 1e-10 (relative) of it.
class Leader {
  public:
    void offer(double value, int64_t index);
    void merge(const Leader& other);
    /// Returns the values for another process.
    const std::vector<std::pair<int64_t, double>>& rising() const { return m_rising; }
    bool found() const { return !m_rising.empty(); }
    int64_t index() const { return m_rising.front().first; }
    double value() const { return m_rising.front().second; } ///< value at index()
    /// Returns the threshold; smaller values change nothing.
    double threshold() const { return m_threshold; }

  private:
    /// (index, value), both rising: every other value in the tolerance has a smaller index and no smaller
    /// value before it.
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
    /// Computes y of all pixels in one pass, and keeps it if memory allows. Several ranks keep it together,
    /// and make all calls together.
    Search(const stream::CubeSource& source, Frame frame, const MakePass& make_pass, Extraction& record);
    ~Search();
    int rows() const; ///< rows of y
    /// Returns for each form the pixel at which its absolute value is greatest.
    std::vector<Peak> greatest(const Forms& forms);
    /// Returns the pixel at which constant + |y|^2 minus the squares of the forms is greatest.
    Peak farthest(double constant, const Forms& forms);
    std::vector<double> y_at(const Peak& place);

  private:
    struct State;
    std::unique_ptr<State> m;
};

/// Orthonormal vectors, added one after another.
class OrthonormalBasis {
  public:
    /// Returns v minus its projection on the basis.
    std::vector<double> residual(std::vector<double> v) const;
    void add(const std::vector<double>& v); ///< adds its residual, normalised
    const std::vector<std::vector<double>>& vectors() const { return m_vectors; }

  private:
    std::vector<std::vector<double>> m_vectors;
};

double length_of(const std::vector<double>& v);

void find_by_nfindr(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                    const Options& options, const MakePass& make_pass, Extraction& found);
/// Finds N-FINDR's nested sets.
void find_by_growing(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                     const Options& options, const MakePass& make_pass, Extraction& found);
void find_by_vca(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                 const Options& options, const MakePass& make_pass, Extraction& found);

} // namespace hsi::endmembers
