// SPDX-License-Identifier: MIT
// All valid pixels, sixteen at a time, from memory or from the source; the same for whoever looks at them.
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
    /// Of a group: group values a band.
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

/// A few pixels and their nearest centres; one a lane.
class Look {
  public:
    Look(int bands, Distance distance);
    /// The pixels' numbers as the distance takes them: up to group of them, bands band_stride apart.
    void take(const float* first, ptrdiff_t band_stride, int count);
    void find_nearest(const Centres& centres);

    const double* values() const { return m_values.data(); } ///< [band][group]
    /// One pixel's values, and behind them |x| where angles count.
    void get(int i, double* to) const;
    int index(int i) const { return m_index[static_cast<size_t>(i)]; }
    /// The squared distance from that centre.
    double distance(int i) const {
        const double v = m_best[static_cast<size_t>(i)];
        return m_distance == Distance::angle ? 2 - 2 * v : v;
    }
    static uint64_t bytes(int bands) { return (static_cast<uint64_t>(bands) * group + 64) * sizeof(double); }

  private:
    const int m_bands;
    const Distance m_distance;
    HostBuffer<double> m_values;
    std::array<double, group> m_length{}, m_best{};
    std::array<int32_t, group> m_index{};
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

/// Where the pixels come from.
struct Scene {
    const stream::CubeSource& source;
    const MakePass& make_pass;
    Kept kept;
    std::vector<uint16_t> labels; ///< of every pixel; of several ranks each knows those of its own tiles
    uint64_t held = 0;            ///< bytes beside a pass
    std::vector<stream::PassReport> passes;
};

/// One walk over all valid pixels. make(): a visitor for each lane, which takes so many bytes; merge(): what
/// it has gathered, by one thread at a time. A rank sees the pixels of its own tiles, each time the same
/// ones.
void walk(Scene& scene, const std::string& name, uint64_t visitor_bytes,
          const std::function<std::unique_ptr<Visitor>()>& make, const std::function<void(Visitor&)>& merge);

/// The walk's operation, for plans.
std::unique_ptr<stream::Operation> plan_walk(const stream::CubeShape& scene, uint64_t visitor_bytes);

} // namespace hsi::cluster
