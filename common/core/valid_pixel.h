// SPDX-License-Identifier: MIT
// Defines a valid pixel: all values are finite and not all are zero. Only this header contains the rule. It
// has the forms that loops need: value by value (PixelLook, is_valid_pixel), from a sum that is computed
// anyway (is_valid_sum), and for a row of pixels whose values arrive band by band (PixelRow). All forms
// give the same result, however small or large the values are: a denormal number is not zero, and -0 is
// zero.
//
// Pass zero_is_invalid = false if a pixel of zeros is valid: for components instead of spectra, or if a
// single band is compared. Code with further conditions (SID: positive values) checks them itself.
#pragma once

#include "core/host_device.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hsi {

/// Checks the values of a pixel one after another, in any order. T is float or double.
template <class T>
class PixelLook {
  public:
    HSI_HOST_DEVICE void at(T value) {
        m_rest += value * T{0}; // becomes NaN if the value is NaN or infinite
        m_nonzero = m_nonzero || value != 0;
    }
    HSI_HOST_DEVICE bool is_valid(bool zero_is_invalid = true) const {
        return m_rest == 0 && (m_nonzero || !zero_is_invalid);
    }

  private:
    T m_rest = 0;
    bool m_nonzero = false;
};

/// Returns whether a pixel is valid. Its `bands` values are `stride` elements apart.
template <class T>
HSI_HOST_DEVICE inline bool is_valid_pixel(const T* first, int bands, ptrdiff_t stride,
                                           bool zero_is_invalid = true) {
    PixelLook<T> look;
    for (int b = 0; b < bands; ++b)
        look.at(first[b * stride]);
    return look.is_valid(zero_is_invalid);
}

template <class T>
inline constexpr T greatest_finite = std::numeric_limits<T>::max();

/// Returns whether a pixel is valid, where `sum` is the sum of the squares or of the magnitudes of its
/// values. In double precision, the values must be floats or sums of a few floats. The squares of finite
/// values are then below 1e78, and the squares of nonzero values above 1e-90. So the sum neither overflows
/// nor vanishes. In single precision, `sum` must be the sum of the magnitudes, since squares can vanish.
/// Finite magnitudes may add up to infinity; the next function handles this case.
template <class T>
HSI_HOST_DEVICE inline bool is_valid_sum(T sum, bool zero_is_invalid = true) {
    return sum <= greatest_finite<T> && (sum > 0 || !zero_is_invalid); // false for NaN
}

/// Returns whether a pixel is valid, where `sum` is the sum of the magnitudes of its values in single
/// precision. If `sum` is infinite, the values are checked one by one.
inline bool is_valid_sum(float sum, const float* first, int bands, ptrdiff_t stride) {
    return is_valid_sum(sum) || (std::isinf(sum) && is_valid_pixel(first, bands, stride));
}

/// Checks a row of pixels whose values arrive band by band. Call start(), then look() for all values, then
/// judge().
class PixelRow {
  public:
    void start(size_t pixels) {
        m_rest.assign(pixels, 0.0f);
        m_greatest.assign(pixels, 0.0f);
    }
    /// Adds the values of a band, one per pixel.
    void look(const float* band) {
        float *const rest = m_rest.data(), *const greatest = m_greatest.data();
        for (size_t i = 0, count = m_rest.size(); i < count; ++i)
            take(band[i], rest[i], greatest[i]);
    }
    /// Adds one value of pixel i, for loops that also use the value for other computations.
    void look(size_t i, float value) { take(value, m_rest[i], m_greatest[i]); }
    /// Decides which pixels are valid, after all values were added. Returns the number of valid pixels.
    int64_t judge(bool zero_is_invalid = true) {
        // The greatest magnitude of a valid pixel exceeds this limit.
        const float below = zero_is_invalid ? 0.0f : -1.0f;
        float* const rest = m_rest.data();
        const float* const greatest = m_greatest.data();
        int64_t valid = 0;
        for (size_t i = 0, count = m_rest.size(); i < count; ++i) {
            rest[i] = greatest[i] > below ? rest[i] : std::numeric_limits<float>::quiet_NaN();
            valid += rest[i] == 0;
        }
        return valid;
    }
    /// Returns whether pixel i is valid, after judge().
    bool is_valid(size_t i) const { return m_rest[i] == 0; }
    /// Returns the greatest magnitude among a pixel's values, which is finite for a valid pixel.
    float greatest(size_t i) const { return m_greatest[i]; }

  private:
    /// Has no branches, so that a compiler vectorises it.
    static void take(float value, float& rest, float& greatest) {
        const float size = std::fabs(value);
        rest += value * 0.0f; // becomes NaN if the value is NaN or infinite
        greatest = size > greatest ? size : greatest;
    }

    /// 0 for valid pixels. NaN if a value is not finite and, after judge(), for all invalid pixels.
    std::vector<float> m_rest;
    std::vector<float> m_greatest; ///< greatest |value| of each pixel
};

} // namespace hsi
