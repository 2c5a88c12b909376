// SPDX-License-Identifier: MIT
#include "gdal_hsi_quicklook/frame.h"

#include "raster/pixel_size.h"
#include "shared/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::quicklook_tool {
namespace {

using tools::Canvas;
using tools::letter_height;
using tools::letter_width;
using tools::Rgb;

constexpr int64_t margin = 10, tick = 6, text_row = letter_height + 6;

int64_t width_of(const std::string& text) { return static_cast<int64_t>(text.size()) * letter_width; }

std::string number_text(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
}

void draw_box(Canvas& canvas, int64_t x0, int64_t y0, int64_t width, int64_t height, const Rgb& colour) {
    for (int64_t y = y0; y < y0 + height; ++y)
        for (int64_t x = x0; x < x0 + width; ++x)
            canvas.set(x, y, colour);
}

/// A position in pixels of the panel at which the coordinate is a round number.
struct Mark {
    double at;
    std::string text;
};

/// Returns the round coordinates between two edges of the panel, at least `apart` pixels from each other.
/// first, last: coordinates of the edges; pixels: distance of the edges.
std::vector<Mark> marks_between(double first, double last, int64_t pixels, int64_t apart) {
    std::vector<Mark> marks;
    const double range = std::fabs(last - first);
    if (!(range > 0)) return marks;
    double unit = tools::tick_distance(range);
    while (unit / range * static_cast<double>(pixels) < static_cast<double>(apart) && unit < range)
        unit = tools::tick_distance(unit * 10); // tries the next larger distance of marks
    for (double k = std::ceil(std::min(first, last) / unit); k * unit <= std::max(first, last); ++k)
        marks.push_back(
            {(k * unit - first) / (last - first) * static_cast<double>(pixels), number_text(k * unit + 0.0)});
    return marks;
}

/// The georeference of a panel.
struct Ground {
    std::vector<Mark> x, y;       ///< empty if the scene is rotated
    std::optional<double> metres; ///< width of a pixel of the panel, in metres
    /// Unit vector to the north, in pixels of the picture; (0, 0) if unknown.
    double north_x = 0, north_y = 0;
};

Ground ground_of(const FramedPanel& panel) {
    Ground ground;
    const auto& gt = panel.scene.facts().geotransform;
    const auto scale = raster::ground_scale(panel.scene);
    if (!gt || !scale) return ground;
    const auto shape = panel.scene.shape();
    const auto& g = *gt;
    const double sx = static_cast<double>(shape.samples) / static_cast<double>(panel.samples);
    const auto samples = static_cast<double>(shape.samples), lines = static_cast<double>(shape.lines);
    const auto metres = scale->at(g[3] + samples / 2 * g[4] + lines / 2 * g[5]);
    ground.metres = sx * std::hypot(g[1] * metres[0], g[4] * metres[1]);
    const double area = g[1] * g[5] - g[2] * g[4];
    if (area == 0) return ground;
    // A step to the north, in pixels, is the second column of the inverse of the geotransform's matrix.
    const double north_x = -g[2] / area, north_y = g[1] / area, length = std::hypot(north_x, north_y);
    ground.north_x = north_x / length;
    ground.north_y = north_y / length;
    if (g[2] != 0 || g[4] != 0) return ground;
    ground.x = marks_between(g[0], g[0] + samples * g[1], panel.samples, 14 * letter_width);
    ground.y = marks_between(g[3], g[3] + lines * g[5], panel.lines, 3 * text_row);
    return ground;
}

/// Returns the largest number of the form 1, 2 or 5 times a power of ten that is not above `most`.
double round_below(double most) {
    const double power = std::pow(10, std::floor(std::log10(most)));
    for (const double times : {5.0, 2.0})
        if (times * power <= most) return times * power;
    return power;
}

std::string length_text(double metres) {
    constexpr double kilometre = 1000;
    return metres >= kilometre ? number_text(metres / kilometre) + " km" : number_text(metres) + " m";
}

void draw_scale_bar(Canvas& canvas, int64_t x0, int64_t y0, int64_t width, double metres_of_pixel) {
    const double metres = round_below(metres_of_pixel * static_cast<double>(width) / 3);
    const int64_t length = std::max<int64_t>(1, std::llround(metres / metres_of_pixel));
    draw_box(canvas, x0, y0, length, 4, {});
    draw_box(canvas, x0, y0 - 4, 2, 8, {});
    draw_box(canvas, x0 + length - 2, y0 - 4, 2, 8, {});
    tools::draw_text(canvas, x0 + length + 8, y0 - 6, length_text(metres));
}

/// Draws a triangle that points north, with an N next to it.
void draw_arrow(Canvas& canvas, double cx, double cy, double north_x, double north_y) {
    constexpr double half = 14, wide = 7;
    for (auto y = static_cast<int64_t>(cy - half) - 1; static_cast<double>(y) <= cy + half + 1; ++y)
        for (auto x = static_cast<int64_t>(cx - half) - 1; static_cast<double>(x) <= cx + half + 1; ++x) {
            const double dx = static_cast<double>(x) - cx, dy = static_cast<double>(y) - cy;
            const double along = dx * north_x + dy * north_y, across = std::fabs(dx * north_y - dy * north_x);
            if (along >= -half && along <= half && across <= wide * (half - along) / (2 * half))
                canvas.set(x, y, {});
        }
    tools::draw_text(canvas, std::llround(cx) + 18, std::llround(cy) - letter_height / 2, "N");
}

std::vector<Mark> marks_of(const ColourBar& bar, int64_t height) {
    return marks_between(bar.highest, bar.lowest, height, 2 * text_row);
}

int64_t bar_width(const ColourBar& bar, int64_t height) {
    int64_t widest = 0;
    for (const Mark& mark : marks_of(bar, height))
        widest = std::max(widest, width_of(mark.text));
    return 24 + tick + 4 + widest + text_row + margin;
}

void draw_bar(Canvas& canvas, int64_t x0, int64_t y0, int64_t height, const ColourBar& bar) {
    constexpr int64_t wide = 24;
    for (int64_t y = 0; y < height; ++y) {
        const double t = height > 1 ? static_cast<double>(y) / static_cast<double>(height - 1) : 0;
        const uint8_t grey = bar.shade(bar.highest + t * (bar.lowest - bar.highest));
        draw_box(canvas, x0, y0 + y, wide, 1, {grey, grey, grey});
    }
    for (const int64_t y : {y0, y0 + height - 1})
        draw_box(canvas, x0, y, wide, 1, {});
    for (const int64_t x : {x0, x0 + wide - 1})
        draw_box(canvas, x, y0, 1, height, {});
    int64_t widest = 0;
    for (const Mark& mark : marks_of(bar, height)) {
        const int64_t y = y0 + std::min(std::llround(mark.at), static_cast<long long>(height) - 1);
        draw_box(canvas, x0 + wide, y, tick, 1, {});
        tools::draw_text(canvas, x0 + wide + tick + 4, y - letter_height / 2, mark.text);
        widest = std::max(widest, width_of(mark.text));
    }
    const auto label =
        tools::plain_letters(bar.label, static_cast<size_t>(std::max<int64_t>(3, height / letter_width)));
    tools::draw_text(canvas, x0 + wide + tick + 10 + widest, y0 + (height + width_of(label)) / 2, label,
                     true);
}

} // namespace

Canvas framed(const Canvas& picture, const std::string& title, bool frame, const FramedPanel& panel,
              const ColourBar* bar) {
    const Ground ground = frame ? ground_of(panel) : Ground{};
    const std::string heading = tools::plain_letters(
        title, static_cast<size_t>(std::max<int64_t>(8, (picture.samples() + 400) / letter_width)));
    int64_t left = 0, above = title.empty() ? 0 : text_row + margin, below = 0, right = 0;
    for (const Mark& mark : ground.y) {
        left = std::max(left, margin + width_of(mark.text) + tick + 4);
        above = std::max(above, margin); // space for half of the coordinate at the corner
    }
    if (!ground.x.empty()) {
        left = std::max(left, margin);
        below += tick + text_row;
        right = 5 * letter_width; // space for half of the coordinate at the corner
    }
    const bool drawn = ground.metres.has_value();
    if (drawn) below += 40;
    const int64_t gap = 16;
    if (bar != nullptr) right = std::max(right, gap + bar_width(*bar, panel.lines));
    Canvas canvas(std::max(left + picture.samples() + right, left + width_of(heading)),
                  above + picture.lines() + below, picture.keeps_texts());
    canvas.paste(left, above, picture);
    tools::draw_text(canvas, left, 4, heading);
    for (const Mark& mark : ground.y) {
        const int64_t y = above + std::min<int64_t>(std::llround(mark.at), panel.lines - 1);
        draw_box(canvas, left - tick, y, tick, 1, {});
        tools::draw_text(canvas, left - tick - 4 - width_of(mark.text), y - letter_height / 2, mark.text);
    }
    const int64_t under = above + picture.lines();
    for (const Mark& mark : ground.x) {
        const int64_t x = left + std::min<int64_t>(std::llround(mark.at), panel.samples - 1);
        draw_box(canvas, x, under, 1, tick, {});
        tools::draw_text(canvas, std::max<int64_t>(0, x - width_of(mark.text) / 2), under + tick + 2,
                         mark.text);
    }
    if (drawn) {
        const int64_t y = under + below - 20;
        draw_scale_bar(canvas, left, y, panel.samples, *ground.metres);
        if (ground.north_x != 0 || ground.north_y != 0)
            draw_arrow(canvas,
                       static_cast<double>(left + std::max<int64_t>(panel.samples - 40, panel.samples / 2)),
                       static_cast<double>(y), ground.north_x, ground.north_y);
    }
    if (bar != nullptr) draw_bar(canvas, left + picture.samples() + gap, above, panel.lines, *bar);
    return canvas;
}

namespace {

std::string fitting(const std::string& name, int64_t width) {
    return tools::plain_letters(name, static_cast<size_t>(std::max<int64_t>(3, (width - 8) / letter_width)));
}

} // namespace

int64_t name_width(const std::string& name, int64_t width) {
    return std::min(width, width_of(fitting(name, width)) + 6);
}

void draw_name(Canvas& canvas, int64_t x0, int64_t y0, int64_t width, const std::string& name) {
    const auto text = fitting(name, width);
    draw_box(canvas, x0, y0, name_width(name, width), name_height, {255, 255, 255});
    tools::draw_text(canvas, x0 + 4, y0 + 3, text);
}

} // namespace hsi::quicklook_tool
