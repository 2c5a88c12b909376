// SPDX-License-Identifier: MIT
// Pixel windows: half open in both directions, 64-bit, with the origin at the upper left pixel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace hsi {

struct Rect {
    int64_t x = 0; ///< first sample
    int64_t y = 0; ///< first line
    int64_t w = 0; ///< samples
    int64_t h = 0; ///< lines

    int64_t right() const { return x + w; }
    int64_t bottom() const { return y + h; }
    int64_t area() const { return w * h; }
    bool empty() const { return w <= 0 || h <= 0; }
    bool contains(const Rect& r) const {
        return r.x >= x && r.y >= y && r.right() <= right() && r.bottom() <= bottom();
    }
    friend bool operator==(const Rect& a, const Rect& b) {
        return a.x == b.x && a.y == b.y && a.w == b.w && a.h == b.h;
    }
};

/// Returns a size as messages show it, samples before lines: "512x614".
inline std::string size_text(int64_t samples, int64_t lines) {
    return std::to_string(samples) + "x" + std::to_string(lines);
}

inline Rect intersect(const Rect& a, const Rect& b) {
    const int64_t x0 = std::max(a.x, b.x), y0 = std::max(a.y, b.y);
    const int64_t x1 = std::min(a.right(), b.right()), y1 = std::min(a.bottom(), b.bottom());
    return Rect{x0, y0, std::max<int64_t>(0, x1 - x0), std::max<int64_t>(0, y1 - y0)};
}

/// Returns r grown by n pixels on every side, without a cut at the border of the scene.
inline Rect grow(const Rect& r, int64_t n) { return Rect{r.x - n, r.y - n, r.w + 2 * n, r.h + 2 * n}; }

} // namespace hsi
