// SPDX-License-Identifier: MIT
// The facts about the pixels of a line before their bands are read.
#pragma once

#include "core/cube_view.h"
#include "core/valid_pixel.h"
#include "normalise/normalise.h"

#include <cstdint>
#include <vector>

namespace hsi::normalise {

inline constexpr double degree = 3.14159265358979323846 / 180;

/// Converts a stored value to reflectance.
struct Scaling {
    double scale = 1, offset = 0;
    float value(float stored) const {
        return scale == 1 && offset == 0 ? stored
                                         : static_cast<float>(static_cast<double>(stored) * scale + offset);
    }
    float stored(double r) const {
        return scale == 1 && offset == 0 ? static_cast<float>(r) : static_cast<float>((r - offset) / scale);
    }
};
inline Scaling scaling_of(const SceneTask& task, int band) {
    const auto b = static_cast<size_t>(band);
    return {task.scale.empty() ? 1 : task.scale[b], task.offset.empty() ? 0 : task.offset[b]};
}

/// Returns an angle of a pixel in degrees, from its input; `planes` is the first band of angles. NaN:
/// unknown.
double value_of(const AngleInput& input, const CubeView<float>& in, int64_t y, int64_t x, int planes);

enum PixelState : uint8_t {
    is_valid = 1,
    is_usable = 2,   ///< valid, with all angles that the method needs
    is_in_range = 4, ///< of NDVI; only of usable pixels
    is_lit = 8       ///< cos i is at least Method::min_cos_i; only of usable pixels
};

/// A line of pixels, filled by look(). Use one object per worker.
class Pixels {
  public:
    Pixels(const SceneTask& task, const Method& method) : m_task(task), m_method(method) {}
    /// Reads line `y` of a window; `want_kernels`: also computes kernels.
    void look(const CubeView<float>& in, int64_t y, bool want_kernels);
    /// Returns the bytes for this number of samples.
    static uint64_t bytes(int64_t samples) { return static_cast<uint64_t>(samples) * 96; }

    size_t count() const { return state.size(); }
    bool is(size_t i, uint8_t all) const { return (state[i] & all) == all; }

    std::vector<uint8_t> state;
    std::vector<double> ndvi;
    std::vector<int> cell;                ///< 0: the first in range; for pixels in range
    std::vector<double> zenith, tilt;     ///< of the sun, slope: degrees
    std::vector<double> cos_i, a;         ///< a: see normalise.h
    std::vector<double> factor[2];        ///< for methods without a fit: of bands from 720 nm on, and below
    std::vector<float> volume, geometric; ///< kernels

  private:
    struct Cosines { ///< of the last angle, because the next pixel usually has the same
        double of = 1e9, cosine = 1, sine = 0;
        void take(double degrees);
    };
    void resize(size_t count);
    void look_at(const CubeView<float>& in, int64_t y, size_t i, bool want_kernels);
    void light(size_t i, const double (&v)[view::angle_count]);
    void limit(size_t i);

    const SceneTask& m_task;
    const Method& m_method;
    PixelRow m_row;
    Cosines m_sun, m_slope, m_azimuth, m_threshold;
};

} // namespace hsi::normalise
