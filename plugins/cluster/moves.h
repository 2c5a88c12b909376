// SPDX-License-Identifier: MIT
// What an assignment of pixels to centres changes.
#pragma once

#include "cluster/cluster.h"
#include "math/exact_sum.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::parallel {
class Group;
}

namespace hsi::cluster {

/// Numbers that are summed of a cluster: a band each, and for angles the length.
inline size_t stride_of(int bands, Distance distance) {
    return static_cast<size_t>(bands) + (distance == Distance::angle ? 1 : 0);
}

/// What moves between clusters in one assignment.
struct Moves {
    Moves(size_t clusters, size_t stride) : sums(clusters * stride), pixels(clusters) {}
    math::ExactSums sums; ///< that come, less those that go
    std::vector<int64_t> pixels;
    math::ExactSums inertia{1};
    int64_t moved = 0;

    void add(const Moves& other);
    void exchange(parallel::Group& ranks);
    static uint64_t bytes(size_t clusters, size_t stride);
};

/// A pixel far from its centre.
struct Outlier {
    double distance = 0;
    int64_t pixel = 0;
    uint16_t label = 0;
    std::vector<double> values;
    bool before(const Outlier& o) const {
        return distance != o.distance ? distance > o.distance : pixel < o.pixel;
    }
};

/// The farthest pixels, `most` at most, the farthest first, of equal ones the first in raster order.
class OutlierList {
  public:
    explicit OutlierList(size_t most) : m_most(most) {}
    bool takes(const Outlier& one) const { return m_list.size() < m_most || one.before(m_list.back()); }
    /// Where takes() is true.
    void add(Outlier one);
    void exchange(parallel::Group& ranks);
    std::vector<Outlier>& list() { return m_list; }

  private:
    size_t m_most;
    std::vector<Outlier> m_list;
};

} // namespace hsi::cluster
