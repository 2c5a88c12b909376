// SPDX-License-Identifier: MIT
// Visits all valid pixels, sixteen at a time. The pixels come from memory if the scene is kept there,
// otherwise from the source.
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
    /// Stores `count` pixels of a line, whose bands are band_stride apart. Several threads may store
    /// different pixels at once.
    void put(int64_t pixel, const float* from, ptrdiff_t band_stride, int64_t count) const;
    /// Reads one pixel's values.
    void get(int64_t pixel, float* to) const;

  private:
    int m_bands = 0;
    int64_t m_pixels = 0;
    HostBuffer<float> m_values;
};

/// The centres in single precision, for a first comparison with pixels. The score x'c - |c|^2/2 (angle: x'c)
/// is greatest for the nearest centre. With n bands, u = 2^-24 and C the greatest |c|, the error of a score
/// is at most u ((n + 3) |x| C + C^2), plus errors below the smallest normal number. The margin is twice this
/// error, plus the errors of distances in double precision. A centre whose score is less than the best score
/// by more than the margin is not the nearest in double precision.
class Screen {
  public:
    /// `centres` must outlive this object.
    Screen(const Centres& centres, Distance distance);
    const Centres& centres() const { return m_centres; }
    const float* singles() const { return m_singles.data(); }
    float half_square(int k) const { return m_half_squares[static_cast<size_t>(k)]; }
    /// Returns the margin for a pixel whose |x|^2 is `squared`.
    double margin(float squared) const;
    static uint64_t bytes(int bands, int count) {
        return static_cast<uint64_t>(count) * (static_cast<uint64_t>(bands) + 1) * sizeof(float);
    }

  private:
    const Centres& m_centres;
    std::vector<float> m_singles, m_half_squares;
    double m_of_length = 0, m_of_square = 0, m_margin = 0, m_least = 0;
};

/// A few pixels and their nearest centres. Each worker has its own object.
class Look {
  public:
    Look(int bands, Distance distance, int centres);
    /// Takes up to `group` pixels with bands band_stride apart; their memory must remain valid while they are
    /// examined.
    void take(const float* first, ptrdiff_t band_stride, int count);
    /// Finds the nearest centre of each pixel whose bit is set. Single precision excludes centres; if several
    /// remain, double precision decides. Among equally near centres, the first wins.
    void find_nearest(const Screen& screen, uint32_t pixels);
    int index(int i) const { return m_index[static_cast<size_t>(i)]; }
    /// Returns the gap of the group of pixels: no pixel changes its nearest centre while the movement of that
    /// centre plus the movement of any other centre is less than the gap. 0 if the gap is unknown.
    double gap() const { return m_gap; }

    /// Returns the values from which distances are computed, [band][group]: the spectra, for angles divided
    /// by their lengths.
    const double* values() {
        expand();
        return m_values.data();
    }
    /// Returns one pixel's values, followed by |x| for angles.
    void get(int i, double* to);
    /// Returns the squared distances of the pixels from their nearest centres, found by find_nearest(). For
    /// angles returns 2 - 2u'c, which is only good for ranking pixels: near a centre, it is mostly rounding
    /// error.
    const std::array<double, group>& distances(const Centres& centres);
    /// Returns the squared distance of each pixel from the centre of its label: the sum of (x - c)^2, for
    /// angles of (u - c)^2. Label k belongs to centre k - 1. Undefined for label 0.
    const std::array<double, group>& squares(const Centres& centres, const uint16_t* labels);
    static uint64_t bytes(int bands, int centres) {
        return (static_cast<uint64_t>(bands) * 3 + static_cast<uint64_t>(centres) + 64) * group *
               sizeof(float);
    }

  private:
    void expand();
    double gap_of(double squared, double best, double second, double margin) const;
    void find_exactly(const Centres& centres, const std::vector<int>& among, uint32_t pixels);
    /// Compares the pixels with `count` centres from `first` on. Returns each pixel's best distance (for
    /// angles, the best u'c) and the index of its centre, counted from `first`.
    void measure(const Centres& centres, int first, int count, double* best, int32_t* index) const;
    /// Returns the distance of each pixel i from centre number(i); undefined if number(i) is negative. Calls
    /// one(k, to) once for each different centre k, to compute the distances of all pixels from it.
    template <class Number, class One>
    const std::array<double, group>& of_each(const Number& number, const One& one);

    const int m_bands;
    const Distance m_distance;
    int m_count = 0;
    const float* m_raw = nullptr; ///< [band][group]
    bool m_expanded = false;
    double m_gap = 0;
    HostBuffer<float> m_copy, m_products;
    HostBuffer<double> m_values; ///< [band][group], see values()
    std::array<double, group> m_length{}, m_distances{};
    std::array<int32_t, group> m_index{};
    std::vector<int> m_among;
};

/// Examines pixels. Each worker has its own object.
class Visitor {
  public:
    virtual ~Visitor() = default;
    /// Examines `count` pixels, from number `pixel` on in raster order. It may change their labels; 0 marks
    /// invalid pixels. At least one pixel is valid.
    virtual void take(const float* first, ptrdiff_t band_stride, int64_t pixel, int count,
                      uint16_t* labels) = 0;
};

/// The scene, its pixels in memory if they are kept, and its labels.
struct Scene {
    const stream::CubeSource& source;
    const MakePass& make_pass;
    Kept kept;
    /// Label of every pixel; with several ranks, each rank has only the labels of its own tiles
    std::vector<uint16_t> labels;
    uint64_t held = 0; ///< bytes of memory that labels and kept pixels take, and passes cannot use
    std::vector<stream::PassReport> passes;
};

/// Visits all valid pixels once. make() creates a visitor for each worker; a visitor takes visitor_bytes of
/// memory. merge() merges a visitor's results, on one thread at a time. A rank visits only the pixels of its
/// own tiles, which are the same in each walk.
void walk(Scene& scene, const std::string& name, uint64_t visitor_bytes,
          const std::function<std::unique_ptr<Visitor>()>& make, const std::function<void(Visitor&)>& merge);

/// Returns an operation with the memory needs of a walk, for plans.
std::unique_ptr<stream::Operation> plan_walk(const stream::CubeShape& scene, uint64_t visitor_bytes);

} // namespace hsi::cluster
