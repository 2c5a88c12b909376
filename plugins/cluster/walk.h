// SPDX-License-Identifier: MIT
// Visits all valid pixels, sixteen at a time, from memory or from the source, with the same interface.
#pragma once

#include "cluster/cluster.h"
#include "cluster/nearest_simd.h"
#include "core/host_memory.h"
#include "stream/operation.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hsi::cluster {

/// Pixels in memory, group by group in raster order: [pixel / group][band][pixel % group].
class Kept {
  public:
    Kept() = default;
    explicit Kept(const stream::CubeShape& scene)
        : m_bands(scene.bands), m_pixels(scene.pixels()),
          m_values(static_cast<size_t>(bytes(scene) / sizeof(float))) {}
    static uint64_t bytes(const stream::CubeShape& scene) {
        return static_cast<uint64_t>((scene.pixels() + group - 1) / group * group) *
               static_cast<uint64_t>(scene.bands) * sizeof(float);
    }
    bool any() const { return m_values.size() > 0; }
    int64_t groups() const { return (m_pixels + group - 1) / group; }
    /// Returns the values of a group: `group` values per band.
    float* values(int64_t g) const { return m_values.data() + g * m_bands * group; }
    /// Stores `count` pixels of a row, whose bands are band_stride apart. Thread-safe for different pixels.
    void put(int64_t pixel, const float* from, ptrdiff_t band_stride, int64_t count) const;
    /// Reads one pixel's values.
    void get(int64_t pixel, float* to) const;

  private:
    int m_bands = 0;
    int64_t m_pixels = 0;
    HostBuffer<float> m_values;
};

/// Centres in the layout for a first comparison with pixels in single precision. With n bands, u = 2^-24 and
/// C the greatest |c|, x'c - |c|^2/2 (angle: x'c) is greatest for the nearest centre. Its error is at most u
/// ((n + 3) |x| C + C^2), plus errors below the smallest normal number. A centre that is worse than the best
/// by more than twice these errors, plus the errors of distances in double precision, is not the nearest in
/// double precision.
class Screen {
  public:
    /// `centres` must outlive this object.
    Screen(const Centres& centres, Distance distance);
    const Centres& centres() const { return m_centres; }
    const float* singles() const { return m_singles.data(); }
    float half_square(int k) const { return m_half_squares[static_cast<size_t>(k)]; }
    /// Returns that margin for a pixel with this |x|^2.
    double margin(float squared) const;
    static uint64_t bytes(int bands, int count) {
        return static_cast<uint64_t>(count) * (static_cast<uint64_t>(bands) + 1) * sizeof(float);
    }

  private:
    const Centres& m_centres;
    std::vector<float> m_singles, m_half_squares;
    double m_of_length = 0, m_of_square = 0, m_margin = 0, m_least = 0;
};

/// A few pixels and their nearest centres; one object per lane.
class Look {
  public:
    Look(int bands, Distance distance, int centres);
    /// Takes up to `group` pixels with bands band_stride apart; their memory must remain valid while they are
    /// examined.
    void take(const float* first, ptrdiff_t band_stride, int count);
    /// Finds the nearest centre (the first of equal ones) of the pixels with set bits, in double precision if
    /// single precision does not decide.
    void find_nearest(const Screen& screen, uint32_t pixels);
    int index(int i) const { return m_index[static_cast<size_t>(i)]; }
    /// Returns the gap of these pixels: the nearest centre is unchanged while its movement plus that of any
    /// other centre is less than the gap. 0: unknown.
    double gap() const { return m_gap; }

    /// Returns [band][group], the values for distances.
    const double* values() {
        expand();
        return m_values.data();
    }
    /// Returns one pixel's values, followed by |x| for angles.
    void get(int i, double* to);
    /// Returns the squared distances of the pixels from the centres of find_nearest(). For angles returns 2 -
    /// 2u'c, which is only for ranking pixels: near a centre it is dominated by rounding.
    const std::array<double, group>& distances(const Centres& centres);
    /// Returns sums of (x - c)^2, for angles of (u - c)^2, to the centres of the labels, from 1 on; undefined
    /// for label 0.
    const std::array<double, group>& squares(const Centres& centres, const uint16_t* labels);
    static uint64_t bytes(int bands, int centres) {
        return (static_cast<uint64_t>(bands) * 3 + static_cast<uint64_t>(centres) + 64) * group *
               sizeof(float);
    }

  private:
    void expand();
    double gap_of(double squared, double best, double second, double margin) const;
    void find_exactly(const Centres& centres, const std::vector<int>& among, uint32_t pixels);
    /// Computes distances to `count` centres from `first` on: the best distance and its index.
    void measure(const Centres& centres, int first, int count, double* best, int32_t* index) const;
    /// Returns distances[i] of those with number(i) >= 0: calls one(k, to) once for each k among them.
    template <class Number, class One>
    const std::array<double, group>& of_each(const Number& number, const One& one);

    const int m_bands;
    const Distance m_distance;
    int m_count = 0;
    const float* m_raw = nullptr; ///< [band][group]
    bool m_expanded = false;
    double m_gap = 0;
    HostBuffer<float> m_copy, m_products;
    HostBuffer<double> m_values; ///< [band][group], in the form for distances
    std::array<double, group> m_length{}, m_distances{};
    std::array<int32_t, group> m_index{};
    std::vector<int> m_among;
};

/// Examines pixels; one object per lane.
class Visitor {
  public:
    virtual ~Visitor() = default;
    /// Takes `count` pixels from `pixel` (in raster order) on, and their labels (0: invalid). At least one is
    /// valid.
    virtual void take(const float* first, ptrdiff_t band_stride, int64_t pixel, int count,
                      uint16_t* labels) = 0;
};

/// The source of the pixels.
struct Scene {
    const stream::CubeSource& source;
    const MakePass& make_pass;
    Kept kept;
    std::vector<uint16_t> labels; ///< of every pixel; with several ranks, each has those of its own tiles
    uint64_t held = 0;            ///< bytes in addition to a pass
    std::vector<stream::PassReport> passes;
};

/// Visits all valid pixels once. make(): creates a visitor for each lane, which takes visitor_bytes; merge():
/// merges its results, on one thread at a time. A rank visits the pixels of its own tiles, the same ones in
/// each walk.
void walk(Scene& scene, const std::string& name, uint64_t visitor_bytes,
          const std::function<std::unique_ptr<Visitor>()>& make, const std::function<void(Visitor&)>& merge);

/// Returns the walk's operation, for plans.
std::unique_ptr<stream::Operation> plan_walk(const stream::CubeShape& scene, uint64_t visitor_bytes);

} // namespace hsi::cluster
