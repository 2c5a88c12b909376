// SPDX-License-Identifier: MIT
#include "gdal_hsi_quicklook/rings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace hsi::quicklook_tool {

using tools::Canvas;
using tools::TextStyle;

namespace {

std::string fitting(const TextStyle& style, const std::string& name, int64_t width) {
    return style.fitted(name, std::max<int64_t>(3, (width - 4 * style.dot) / style.letter_width()));
}

/// Radii of a ring, in dots: the yellow ring is from inner to middle, its black rim from there to outer.
constexpr double inner = 1.6, middle = 2.3, outer = 2.8;
constexpr int64_t reach = 3; ///< half of the square around a ring, in dots

/// Marks the pixels of a panel that are taken by rings and names.
class Taken {
  public:
    Taken(int64_t samples, int64_t lines)
        : m_samples(samples), m_lines(lines), m_taken(static_cast<size_t>(samples * lines), 0) {}
    /// Returns true if the rectangle is in the panel and free.
    bool is_free(int64_t x0, int64_t y0, int64_t width, int64_t height) const {
        if (x0 < 0 || y0 < 0 || x0 + width > m_samples || y0 + height > m_lines) return false;
        for (int64_t y = y0; y < y0 + height; ++y) {
            const auto row = m_taken.begin() + y * m_samples + x0;
            if (std::find(row, row + width, 1) != row + width) return false;
        }
        return true;
    }
    void take(int64_t x0, int64_t y0, int64_t width, int64_t height) {
        for (int64_t y = std::max<int64_t>(0, y0); y < std::min(m_lines, y0 + height); ++y)
            for (int64_t x = std::max<int64_t>(0, x0); x < std::min(m_samples, x0 + width); ++x)
                m_taken[static_cast<size_t>(y * m_samples + x)] = 1;
    }

  private:
    int64_t m_samples, m_lines;
    std::vector<char> m_taken;
};

/// Draws the black rim or the yellow ring.
void draw_ring(Canvas& panel, const Ring& ring, bool rim) {
    const auto dot = static_cast<double>(panel.style().dot);
    const int64_t half = reach * panel.style().dot;
    const auto cx = static_cast<int64_t>(ring.x), cy = static_cast<int64_t>(ring.y);
    for (int64_t y = cy - half; y <= cy + half; ++y)
        for (int64_t x = cx - half; x <= cx + half; ++x) {
            const double r =
                std::hypot(static_cast<double>(x) + 0.5 - ring.x, static_cast<double>(y) + 0.5 - ring.y);
            if (rim && r >= middle * dot && r < outer * dot) panel.set(x, y, {});
            if (!rim && r >= inner * dot && r < middle * dot) panel.set(x, y, {255, 230, 26});
        }
}

} // namespace

int64_t name_height(const TextStyle& style) { return 11 * style.dot; }

int64_t name_width(const TextStyle& style, const std::string& name, int64_t width) {
    return std::min(width, style.width(fitting(style, name, width)) + 3 * style.dot);
}

void draw_name(Canvas& canvas, int64_t x0, int64_t y0, int64_t width, const std::string& name) {
    const TextStyle& style = canvas.style();
    tools::draw_box(canvas, x0, y0, name_width(style, name, width), name_height(style), {255, 255, 255});
    tools::draw_text(canvas, x0 + 2 * style.dot, y0 + style.dot, fitting(style, name, width));
}

int64_t draw_rings(Canvas& panel, const std::vector<Ring>& rings, const std::string& panel_name) {
    if (rings.empty()) return 0;
    for (const bool rim : {true, false})
        for (const Ring& ring : rings)
            draw_ring(panel, ring, rim);
    const TextStyle& style = panel.style();
    const int64_t half = reach * style.dot, away = half + style.dot, high = name_height(style),
                  room = panel.samples() - 2 * half;
    Taken taken(panel.samples(), panel.lines());
    if (!panel_name.empty()) taken.take(0, 0, name_width(style, panel_name, panel.samples()), high);
    for (const Ring& ring : rings)
        taken.take(static_cast<int64_t>(ring.x) - half, static_cast<int64_t>(ring.y) - half, 2 * half + 1,
                   2 * half + 1);
    int64_t left_out = 0;
    for (const Ring& ring : rings) {
        if (ring.name.empty()) continue;
        const auto x = static_cast<int64_t>(ring.x), y = static_cast<int64_t>(ring.y);
        const int64_t wide = name_width(style, ring.name, room), right = x + away, left = x - away - wide,
                      above = y - away - high, below = y + away;
        // Beside the ring, the name is moved up or down to stay in the panel; above and below, left or right.
        const int64_t level =
                          std::clamp<int64_t>(y - high / 2, 0, std::max<int64_t>(0, panel.lines() - high)),
                      middle_x =
                          std::clamp<int64_t>(x - wide / 2, 0, std::max<int64_t>(0, panel.samples() - wide));
        const std::array<std::array<int64_t, 2>, 8> places{{{right, level},
                                                            {left, level},
                                                            {middle_x, above},
                                                            {middle_x, below},
                                                            {right, above},
                                                            {right, below},
                                                            {left, above},
                                                            {left, below}}};
        const auto place = std::find_if(places.begin(), places.end(), [&](const auto& at) {
            return taken.is_free(at[0], at[1], wide, high);
        });
        if (place == places.end()) {
            ++left_out;
            continue;
        }
        taken.take((*place)[0], (*place)[1], wide, high);
        draw_name(panel, (*place)[0], (*place)[1], room, ring.name);
    }
    return left_out;
}

} // namespace hsi::quicklook_tool
