// SPDX-License-Identifier: MIT
// The changes that an assignment of pixels to centres makes, and the pixels that it can skip.
#pragma once

#include "cluster/cluster.h"
#include "math/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::parallel {
class Group;
}

namespace hsi::cluster {

/// Returns the number of sums per cluster: one per band, and for angles also the sum of |x|.
inline size_t stride_of(int bands, Distance distance) {
    return static_cast<size_t>(bands) + (distance == Distance::angle ? 1 : 0);
}

/// The moves between clusters in one assignment.
struct Moves {
    Moves(size_t clusters, size_t stride) : sums(clusters * stride), pixels(clusters) {}
    math::ExactSums sums;        ///< changes of the clusters' sums: added pixels minus removed pixels
    std::vector<int64_t> pixels; ///< changes of the clusters' numbers of pixels
    math::ExactSums inertia{1};
    int64_t moved = 0;

    void add(const Moves& other);
    void exchange(parallel::Group& ranks);
    static uint64_t bytes(size_t clusters, size_t stride);
};

/// Bounds by which kept groups of pixels can be skipped (G. Hamerly: Making k-means even faster, SDM 2010).
struct Bounds {
    /// Per group: Look::gap() when it was last examined, minus the movement of centres since then; at first 0
    std::vector<float> gap;
    std::vector<double> moved; ///< per centre: the distance by which it moved before this assignment
    double most = 0;           ///< the maximum of `moved`
    static uint64_t bytes(int64_t groups) { return static_cast<uint64_t>(groups) * sizeof(float); }

    void move(const Centres& before, const Centres& now) {
        constexpr double rounding = 1 + 1e-9;
        moved.clear();
        for (int k = 0; k < now.count; ++k) {
            double squared = 0;
            for (int b = 0; b < now.bands; ++b)
                squared += (now.of(k)[b] - before.of(k)[b]) * (now.of(k)[b] - before.of(k)[b]);
            moved.push_back(std::sqrt(squared) * rounding);
        }
        most = *std::max_element(moved.begin(), moved.end());
    }
    /// Reduces the gap of a group by the movement of centres. Returns true if its labels certainly do not
    /// change.
    bool stays(size_t group, const uint16_t* labels, int count) {
        double own = 0;
        for (int i = 0; i < count; ++i)
            if (labels[i] != 0) own = std::max(own, moved[static_cast<size_t>(labels[i]) - 1]);
        return set(group, static_cast<double>(gap[group]) - own - most) > 0;
    }
    /// Sets the gap of a group to `value`, rounded down and at least 0.
    float set(size_t group, double value) {
        constexpr double rounding = 1 - 1e-6;
        return gap[group] = value > 0 ? static_cast<float>(value * rounding) : 0.0f;
    }
};

/// A pixel that may become the new centre of an empty cluster, because it is far from its own centre.
struct Outlier {
    double distance = 0;
    int64_t pixel = 0;
    uint16_t label = 0;
    std::vector<double> values;
    bool before(const Outlier& o) const {
        return distance != o.distance ? distance > o.distance : pixel < o.pixel;
    }
};

/// The `most` pixels that are farthest from their centres, the farthest first. Pixels of equal distance are
/// in raster order.
class OutlierList {
  public:
    explicit OutlierList(size_t most) : m_most(most) {}
    bool takes(const Outlier& one) const { return m_list.size() < m_most || one.before(m_list.back()); }
    /// Adds a pixel for which takes() is true.
    void add(Outlier one);
    void exchange(parallel::Group& ranks);
    std::vector<Outlier>& list() { return m_list; }

  private:
    size_t m_most;
    std::vector<Outlier> m_list;
};

} // namespace hsi::cluster
