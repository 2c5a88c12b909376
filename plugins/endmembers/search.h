// SPDX-License-Identifier: MIT
// The search for pixels that N-FINDR and VCA share. Every valid pixel has a vector y. The search finds the
// pixel with the greatest absolute value of an affine form of y, or with the greatest distance of y from a
// subspace.
#pragma once

#include "endmembers/endmembers.h"
#include "pca/pca.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::endmembers {

/// Defines y of a pixel x. Let s = transform(x). If `u` is empty, y = s. Otherwise y = s / (u^T s), and
/// pixels with u^T s <= 0 are excluded.
struct Frame {
    pca::Transform transform;
    std::vector<double> u; ///< one value per row of y, or empty
};

/// Affine forms of y: form k is offset[k] + sum_r matrix[k * rows + r] y_r.
struct Forms {
    std::vector<double> matrix, offset;
    int count() const { return static_cast<int>(offset.size()); }
    /// Adds the form whose value is the product of the vector `form` with (constant, y) if `leading` is true,
    /// otherwise with (y, constant).
    void add(const std::vector<double>& form, bool leading, double constant);
};

/// Finds the greatest of many values, which arrive in any order. Values within 1e-10 (relative) of the
/// greatest count as equal to it, and the smallest index among them wins.
class Leader {
  public:
    void offer(double value, int64_t index);
    void merge(const Leader& other);
    /// Returns the candidates in a form that another process can merge.
    const std::vector<std::pair<int64_t, double>>& rising() const { return m_rising; }
    bool found() const { return !m_rising.empty(); }
    int64_t index() const { return m_rising.front().first; }
    double value() const { return m_rising.front().second; } ///< Returns the value at index().
    /// Returns the threshold: offering values below it does not change the result.
    double threshold() const { return m_threshold; }

  private:
    /// (index, value), with rising indices and rising values. A value within the tolerance is left out if
    /// another value with a smaller index is at least as large.
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
    /// Computes y of all pixels in one pass, and keeps y if memory allows. With several ranks, each rank
    /// keeps a part, and all ranks must make the same calls.
    Search(const stream::CubeSource& source, Frame frame, const MakePass& make_pass, Extraction& record);
    ~Search();
    int rows() const; ///< number of rows of y
    /// Returns, for each form, the pixel with the greatest absolute value.
    std::vector<Peak> greatest(const Forms& forms);
    /// Returns the pixel with the greatest value of constant + |y|^2 minus the squares of the forms.
    Peak farthest(double constant, const Forms& forms);
    std::vector<double> y_at(const Peak& place);

  private:
    struct State;
    std::unique_ptr<State> m;
};

/// An orthonormal basis that grows by one vector at a time.
class OrthonormalBasis {
  public:
    /// Returns v minus its projection on the basis.
    std::vector<double> residual(std::vector<double> v) const;
    void add(const std::vector<double>& v); ///< Adds the residual of v, normalised.
    const std::vector<std::vector<double>>& vectors() const { return m_vectors; }

  private:
    std::vector<std::vector<double>> m_vectors;
};

double length_of(const std::vector<double>& v);

void find_by_nfindr(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                    const Options& options, const MakePass& make_pass, Extraction& found);
/// Finds nested sets for N-FINDR.
void find_by_growing(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                     const Options& options, const MakePass& make_pass, Extraction& found);
void find_by_vca(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                 const Options& options, const MakePass& make_pass, Extraction& found);

} // namespace hsi::endmembers
