// SPDX-License-Identifier: MIT
// All valid pixels, sixteen at a time, from memory or from the source, with the same interface.
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

/// Pixels in memory, group after group in raster order: [pixel / group][band][pixel % group].
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
    /// The values of a group: `group` values per band.
    float* values(int64_t g) const { return m_values.data() + g * m_bands * group; }
    /// `count` pixels of a row, whose bands are band_stride apart. Thread-safe for different pixels.
    void put(int64_t pixel, const float* from, ptrdiff_t band_stride, int64_t count) const;
    /// One pixel's values.
    void get(int64_t pixel, float* to) const;

  private:
    int m_bands = 0;
    int64_t m_pixels = 0;
    HostBuffer<float> m_values;
};

/// Centres in the layout for a comparison with pixels, which is first made in single precision. With n bands,
/// u = 2^-24 and C the greatest |c|, x'c - |c|^2/2 (angle: x'c), which is greatest for the nearest centre,
/// has an error of at most u ((n + 3) |x| C + C^2), and further errors below the least normal number. A
/// centre that is worse than the best one by more than twice these errors, and by the errors of distances in
/// double precision, is not the nearest in double precision.
class Screen {
  public:
    /// `centres` must outlive it.
    Screen(const Centres& centres, Distance distance);
    const Centres& centres() const { return m_centres; }
    const float* singles() const { return m_singles.data(); }
    float half_square(int k) const { return m_half_squares[static_cast<size_t>(k)]; }
    /// The margin of that, for a pixel with this |x|^2.
    double margin(float squared) const;
    static uint64_t bytes(int bands, int count) {
        return static_cast<uint64_t>(count) * (static_cast<uint64_t>(bands) + 1) * sizeof(float);
    }

  private:
    const Centres& m_centres;
    std::vector<float> m_singles, m_half_squares;
    double m_of_length = 0, m_of_square = 0, m_margin = 0, m_least = 0;
};

/// A few pixels and their nearest centres; one a lane.
class Look {
  public:
    Look(int bands, Distance distance, int centres);
    /// Up to group pixels, bands band_stride apart, which stay there while they are looked at.
    void take(const float* first, ptrdiff_t band_stride, int count);
    /// For the pixels with set bits: finds the nearest centre in double precision, among equal ones the
    /// first, where single precision does not decide.
    void find_nearest(const Screen& screen, uint32_t pixels);
    int index(int i) const { return m_index[static_cast<size_t>(i)]; }
    /// For those pixels: the nearest centre stays the same as long as its own movement and any other centre's
    /// together are less than that. 0: not known.
    double gap() const { return m_gap; }

    /// [band][group]: the values for distances.
    const double* values() {
        expand();
        return m_values.data();
    }
    /// One pixel's values, followed by |x| if angles count.
    void get(int i, double* to);
    /// Squared distances of the pixels from the centres that find_nearest() found; for angles 2 - 2u'c, which
    /// only ranks pixels: near a centre the rest of it is rounding.
    const std::array<double, group>& distances(const Centres& centres);
    /// Sums of (x - c)^2, for angles of (u - c)^2, to the centres that labels name, from 1 on; 0: any number.
    const std::array<double, group>& squares(const Centres& centres, const uint16_t* labels);
    static uint64_t bytes(int bands, int centres) {
        return (static_cast<uint64_t>(bands) * 3 + static_cast<uint64_t>(centres) + 64) * group *
               sizeof(float);
    }

  private:
    void expand();
    double gap_of(double squared, double best, double second, double margin) const;
    void find_exactly(const Centres& centres, const std::vector<int>& among, uint32_t pixels);
    /// Measures centre k, or all: the best one, and its index.
    void measure(const Centres& centres, int first, int count, double* best, int32_t* index) const;
    /// distances[i] of those with number(i) >= 0: one(k, to) for each k among them, once.
    template <class Number, class One>
    const std::array<double, group>& of_each(const Number& number, const One& one);

    const int m_bands;
    const Distance m_distance;
    int m_count = 0;
    const float* m_raw = nullptr; ///< [band][group]
    bool m_expanded = false;
    double m_gap = 0;
    HostBuffer<float> m_copy, m_products;
    HostBuffer<double> m_values; ///< [band][group], as the distance takes them
    std::array<double, group> m_length{}, m_distances{};
    std::array<int32_t, group> m_index{};
    std::vector<int> m_among;
};

/// Looks at pixels; one a lane.
class Visitor {
  public:
    virtual ~Visitor() = default;
    /// `count` pixels from `pixel` (in raster order) on, and their labels (0: invalid). Never without a valid
    /// one.
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

/// One walk over all valid pixels. make(): a visitor for each lane, which takes so many bytes; merge():
/// combines its results, on one thread at a time. A rank sees the pixels of its own tiles, the same ones in
/// each walk.
void walk(Scene& scene, const std::string& name, uint64_t visitor_bytes,
          const std::function<std::unique_ptr<Visitor>()>& make, const std::function<void(Visitor&)>& merge);

/// The walk's operation, for plans.
std::unique_ptr<stream::Operation> plan_walk(const stream::CubeShape& scene, uint64_t visitor_bytes);

} // namespace hsi::cluster
