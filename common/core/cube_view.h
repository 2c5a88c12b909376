// SPDX-License-Identifier: MIT
// A view of a cube in memory that another object owns. The cube is band-sequential, with contiguous samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace hsi {

/// The value of a missing pixel or band.
inline constexpr float no_value = std::numeric_limits<float>::quiet_NaN();

template <class T>
struct CubeView {
    T* data = nullptr;
    int bands = 0;
    int64_t lines = 0;
    int64_t samples = 0;
    ptrdiff_t line_stride = 0; ///< elements from one line to the next
    ptrdiff_t band_stride = 0; ///< elements from one band to the next

    CubeView() = default;
    CubeView(T* p, int b, int64_t l, int64_t s, ptrdiff_t ls, ptrdiff_t bs)
        : data(p), bands(b), lines(l), samples(s), line_stride(ls), band_stride(bs) {}
    /// Returns a packed view: line_stride = samples, band_stride = samples * lines.
    static CubeView packed(T* p, int b, int64_t l, int64_t s) { return CubeView(p, b, l, s, s, s * l); }
    /// Converts a view of T to a view of const T.
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T> && !std::is_same_v<U, T>>>
    CubeView(const CubeView<U>& o)
        : data(o.data), bands(o.bands), lines(o.lines), samples(o.samples), line_stride(o.line_stride),
          band_stride(o.band_stride) {}

    T* row(int band, int64_t line) const { return data + band * band_stride + line * line_stride; }
    T& at(int band, int64_t line, int64_t sample) const { return row(band, line)[sample]; }
    /// Returns a view of the same memory, cut to lines [y, y+h) and samples [x, x+w).
    CubeView cut(int64_t x, int64_t y, int64_t w, int64_t h) const {
        return CubeView(data + y * line_stride + x, bands, h, w, line_stride, band_stride);
    }
    bool is_packed() const { return line_stride == samples && band_stride == samples * lines; }
};

} // namespace hsi
