// SPDX-License-Identifier: MIT
// What a valid pixel is: one whose values are all finite and not all zero. The rule stands here and nowhere
// else, in the forms that loops need: value by value (PixelLook, is_valid_pixel), from a sum that is taken
// anyway (is_valid_sum), and for a row of pixels whose values come band by band (PixelRow). All forms judge
// alike, however small or large the values: a denormal number is not zero, and -0 is.
//
// zero_is_invalid = false where a pixel that is zero throughout is a value: components instead of spectra,
// and a single band that is compared. What asks for more than a valid pixel (SID: a positive value) adds it
// where it is needed.
#pragma once

#include "core/host_device.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hsi {

/// A look at a pixel's values, one after another, in any order. T: float or double.
template <class T>
class PixelLook {
  public:
    HSI_HOST_DEVICE void at(T value) {
        m_rest += value * T{0}; // NaN and infinities leave NaN
        m_nonzero = m_nonzero || value != 0;
    }
    HSI_HOST_DEVICE bool is_valid(bool zero_is_invalid = true) const {
        return m_rest == 0 && (m_nonzero || !zero_is_invalid);
    }

  private:
    T m_rest = 0;
    bool m_nonzero = false;
};

/// The pixel whose `bands` values lie `stride` apart.
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

/// The pixel of whose values `sum` is the sum of the squares or magnitudes. It is that of floats, or of
/// doubles that are sums of a few floats, taken in double precision: the squares of finite ones stay below
/// 1e78, and those of others than zero above 1e-90. In single precision magnitudes vanish as little (squares
/// do: they must not come here), but finite ones may add up to an infinity; see below.
template <class T>
HSI_HOST_DEVICE inline bool is_valid_sum(T sum, bool zero_is_invalid = true) {
    return sum <= greatest_finite<T> && (sum > 0 || !zero_is_invalid); // false for NaN
}

/// The same of magnitudes added in single precision: where their sum is infinite, the values decide.
inline bool is_valid_sum(float sum, const float* first, int bands, ptrdiff_t stride) {
    return is_valid_sum(sum) || (std::isinf(sum) && is_valid_pixel(first, bands, stride));
}

/// A row of pixels whose values come band by band: start(), look() at all values, then judge().
class PixelRow {
  public:
    void start(size_t pixels) {
        m_rest.assign(pixels, 0.0f);
        m_greatest.assign(pixels, 0.0f);
    }
    /// A band's values, one a pixel.
    void look(const float* band) {
        float *const rest = m_rest.data(), *const greatest = m_greatest.data();
        for (size_t i = 0, count = m_rest.size(); i < count; ++i)
            take(band[i], rest[i], greatest[i]);
    }
    /// One value of pixel i, for loops that do something else with it, too.
    void look(size_t i, float value) { take(value, m_rest[i], m_greatest[i]); }
    /// Which pixels are valid, once all values were looked at; returns how many.
    int64_t judge(bool zero_is_invalid = true) {
        // What the greatest magnitude has to be above.
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
    /// After judge().
    bool is_valid(size_t i) const { return m_rest[i] == 0; }
    /// The greatest magnitude among a pixel's numbers; of a valid pixel it is finite.
    float greatest(size_t i) const { return m_greatest[i]; }

  private:
    /// Without branches, so that a compiler takes several pixels at once.
    static void take(float value, float& rest, float& greatest) {
        const float size = std::fabs(value);
        rest += value * 0.0f; // NaN and infinities leave NaN
        greatest = size > greatest ? size : greatest;
    }

    std::vector<float> m_rest;     ///< 0, or NaN where a value is not finite or, judged, the pixel is invalid
    std::vector<float> m_greatest; ///< |value|
};

} // namespace hsi
