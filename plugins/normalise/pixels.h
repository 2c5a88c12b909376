// SPDX-License-Identifier: MIT
// The properties of the pixels of a line that are needed before their bands are read.
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

/// Returns an angle of a pixel in degrees; NaN if unknown. `input` is a constant, or a band of `in`. `planes`
/// is the index of the first band with angles.
double value_of(const AngleInput& input, const CubeView<float>& in, int64_t y, int64_t x, int planes);

enum PixelState : uint8_t {
    is_valid = 1,
    is_usable = 2,   ///< valid, and all angles that the method needs are known
    is_in_range = 4, ///< NDVI is in range; only set for usable pixels
    is_lit = 8       ///< cos i is at least Method::min_cos_i; only set for usable pixels
};

/// The properties of the pixels of a line. look() fills the lists, one value per pixel. Each worker has its
/// own object.
class Pixels {
  public:
    Pixels(const SceneTask& task, const Method& method) : m_task(task), m_method(method) {}
    /// Reads line `y` of a window. If `want_kernels` is true, also computes kernels.
    void look(const CubeView<float>& in, int64_t y, bool want_kernels);
    /// Returns the bytes of an object for this number of samples.
    static uint64_t bytes(int64_t samples) { return static_cast<uint64_t>(samples) * 96; }

    size_t count() const { return state.size(); }
    bool is(size_t i, uint8_t all) const { return (state[i] & all) == all; }

    std::vector<uint8_t> state;
    std::vector<double> ndvi;
    /// Index of the NDVI cell, 0 for the first cell in range; only for pixels in range.
    std::vector<int> cell;
    std::vector<double> zenith, tilt; ///< solar zenith and slope in degrees
    std::vector<double> cos_i, a;     ///< cos i, and the factor a of normalise.h
    /// Methods without a fit: factors for bands from 720 nm on, and for bands below 720 nm.
    std::vector<double> factor[2];
    std::vector<float> volume, geometric; ///< volume and geometric kernel

  private:
    /// Cosine and sine of the last angle. They are kept, because the next pixel usually has the same angle.
    struct Cosines {
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
