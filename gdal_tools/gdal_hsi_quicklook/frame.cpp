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
using tools::Rgb;
using tools::TextStyle;

// Lengths in dots
constexpr int64_t margin = 5, tick = 3, tick_gap = 2;
constexpr int64_t bar_gap = 8, bar_wide = 12;

std::string number_text(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
}

/// A position in pixels of the panel at which the coordinate is a round number.
struct Mark {
    double at;
    std::string text;
};

/// Returns the width of the texts of the marks.
int64_t widest_of(const TextStyle& style, const std::vector<Mark>& marks) {
    int64_t widest = 0;
    for (const Mark& mark : marks)
        widest = std::max(widest, style.width(mark.text));
    return widest;
}

/// Returns the round coordinates between two edges of the panel, `rows` rows of text apart, or next to each
/// other if 0. first, last: coordinates of the edges; pixels: distance of the edges.
std::vector<Mark> marks_between(const TextStyle& style, double first, double last, int64_t pixels,
                                int64_t rows) {
    const double range = std::fabs(last - first);
    if (!(range > 0)) return {};
    for (double unit = tools::tick_distance(range);; unit = tools::tick_distance(unit * 10)) {
        std::vector<Mark> marks;
        for (double k = std::ceil(std::min(first, last) / unit); k * unit <= std::max(first, last); ++k)
            marks.push_back({(k * unit - first) / (last - first) * static_cast<double>(pixels),
                             number_text(k * unit + 0.0)});
        const int64_t apart =
            rows > 0 ? rows * style.row() : widest_of(style, marks) + 3 * style.letter_width();
        if (unit / range * static_cast<double>(pixels) >= static_cast<double>(apart) || unit >= range)
            return marks;
    }
}

/// The georeference of a panel.
struct Ground {
    std::vector<Mark> x, y;       ///< empty if the scene is rotated
    std::string srs;              ///< name and unit of the coordinates
    std::optional<double> metres; ///< width of a pixel of the panel, in metres
    /// Unit vector to the north, in pixels of the picture; (0, 0) if unknown.
    double north_x = 0, north_y = 0;
};

/// Returns the name of the SRS and the unit of its coordinates.
std::string srs_text(const raster::RasterSource& scene, const raster::GroundScale& scale) {
    const double degree = std::asin(1.0) / 90;
    const bool geographic = scale.semi_major != 0;
    const std::string name = scene.facts().srs_name();
    const std::string unit = std::fabs(scale.unit - (geographic ? degree : 1)) < 1e-9 * scale.unit
                                 ? (geographic ? "degrees" : "m")
                                 : "unit of " + number_text(scale.unit) + (geographic ? " rad" : " m");
    return (name.empty() ? "map coordinates" : name) + " (" + unit + ")";
}

Ground ground_of(const FramedPanel& panel, const TextStyle& style) {
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
    ground.x = marks_between(style, g[0], g[0] + samples * g[1], panel.samples, 0);
    ground.y = marks_between(style, g[3], g[3] + lines * g[5], panel.lines, 3);
    ground.srs = srs_text(panel.scene, *scale);
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
    const int64_t dot = canvas.style().dot;
    const double metres = round_below(metres_of_pixel * static_cast<double>(width) / 3);
    const int64_t length = std::max<int64_t>(1, std::llround(metres / metres_of_pixel));
    tools::draw_box(canvas, x0, y0, length, 2 * dot, {});
    tools::draw_box(canvas, x0, y0 - 2 * dot, dot, 4 * dot, {});
    tools::draw_box(canvas, x0 + length - dot, y0 - 2 * dot, dot, 4 * dot, {});
    tools::draw_text(canvas, x0 + length + 4 * dot, y0 - 3 * dot, length_text(metres));
}

/// Draws a triangle that points north, with an N next to it.
void draw_arrow(Canvas& canvas, double cx, double cy, double north_x, double north_y) {
    const auto& style = canvas.style();
    const double half = 7 * static_cast<double>(style.dot), wide = half / 2;
    for (auto y = static_cast<int64_t>(cy - half) - 1; static_cast<double>(y) <= cy + half + 1; ++y)
        for (auto x = static_cast<int64_t>(cx - half) - 1; static_cast<double>(x) <= cx + half + 1; ++x) {
            const double dx = static_cast<double>(x) - cx, dy = static_cast<double>(y) - cy;
            const double along = dx * north_x + dy * north_y, across = std::fabs(dx * north_y - dy * north_x);
            if (along >= -half && along <= half && across <= wide * (half - along) / (2 * half))
                canvas.set(x, y, {});
        }
    tools::draw_text(canvas, std::llround(cx) + 9 * style.dot, std::llround(cy) - style.letter_height() / 2,
                     "N");
}

std::vector<Mark> marks_of(const TextStyle& style, const ColourBar& bar, int64_t height) {
    return marks_between(style, bar.highest, bar.lowest, height, 2);
}

/// Returns the width of a colour bar and of the gap before it.
int64_t bar_room(const TextStyle& style, const ColourBar& bar, int64_t height) {
    return (bar_gap + bar_wide + tick + tick_gap + margin) * style.dot + style.row() +
           widest_of(style, marks_of(style, bar, height));
}

void draw_bar(Canvas& canvas, int64_t x0, int64_t y0, int64_t height, const ColourBar& bar) {
    const auto& style = canvas.style();
    const int64_t wide = bar_wide * style.dot, thin = style.thin();
    for (int64_t y = 0; y < height; ++y) {
        const double t = height > 1 ? static_cast<double>(y) / static_cast<double>(height - 1) : 0;
        const uint8_t grey = bar.shade(bar.highest + t * (bar.lowest - bar.highest));
        tools::draw_box(canvas, x0, y0 + y, wide, 1, {grey, grey, grey});
    }
    for (const int64_t y : {y0, y0 + height - thin})
        tools::draw_box(canvas, x0, y, wide, thin, {});
    for (const int64_t x : {x0, x0 + wide - thin})
        tools::draw_box(canvas, x, y0, thin, height, {});
    const auto marks = marks_of(style, bar, height);
    const int64_t right = x0 + wide + (tick + tick_gap) * style.dot;
    for (const Mark& mark : marks) {
        const int64_t y = y0 + std::min<int64_t>(std::llround(mark.at), height - thin);
        tools::draw_box(canvas, x0 + wide, y, tick * style.dot, thin, {});
        // The text at an end of the bar is moved into the height of the panel.
        tools::draw_text(canvas, right,
                         std::clamp<int64_t>(y - style.letter_height() / 2, y0,
                                             std::max(y0, y0 + height - style.letter_height())),
                         mark.text);
    }
    const auto label = style.fitted(bar.label, std::max<int64_t>(3, height / style.letter_width()));
    tools::draw_text(canvas, right + widest_of(style, marks) + 3 * style.dot,
                     y0 + (height + style.width(label)) / 2, label, true);
}

/// Returns true if the bars have the same values and shades.
bool equal_bars(const ColourBar& a, const ColourBar& b) {
    const double between = (a.lowest + a.highest) / 2;
    return a.lowest == b.lowest && a.highest == b.highest && a.unit == b.unit &&
           a.shade(between) == b.shade(between);
}

/// Returns the bar that all panels share; nullopt if there are fewer than two panels, or if their bars
/// differ.
std::optional<ColourBar> common_bar(const std::vector<DrawnPanel>& panels) {
    if (panels.size() < 2 || !panels[0].bar) return {};
    ColourBar common = *panels[0].bar;
    for (const auto& panel : panels) {
        if (!panel.bar || !equal_bars(*panel.bar, common)) return {};
        if (panel.bar->label != common.label)
            common.label = common.unit.empty() ? "value" : "value (" + common.unit + ")";
    }
    return common;
}

} // namespace

Canvas assembled(std::vector<DrawnPanel> panels, int64_t columns, int64_t gap) {
    const TextStyle style = panels[0].canvas.style();
    const int64_t samples = panels[0].canvas.samples(), lines = panels[0].canvas.lines();
    const auto common = common_bar(panels);
    std::vector<int64_t> left(static_cast<size_t>(columns) + 1, 0); // of the columns, and of the common bar
    for (size_t k = 0; k < panels.size(); ++k)
        if (panels[k].bar && !common) {
            int64_t& room = left[k % static_cast<size_t>(columns) + 1];
            room = std::max(room, bar_room(style, *panels[k].bar, lines));
        }
    for (size_t c = 1; c < left.size(); ++c)
        left[c] += left[c - 1] + samples + gap;
    const int64_t rows = (static_cast<int64_t>(panels.size()) + columns - 1) / columns,
                  wide = left.back() - gap + (common ? bar_room(style, *common, lines) : 0);
    Canvas picture(wide, rows * (lines + gap) - gap, style);
    for (size_t k = 0; k < panels.size(); ++k) {
        const int64_t x0 = left[k % static_cast<size_t>(columns)],
                      y0 = static_cast<int64_t>(k) / columns * (lines + gap);
        picture.paste(x0, y0, panels[k].canvas);
        panels[k].canvas = Canvas(0, 0); // releases its memory
        if (panels[k].bar && !common)
            draw_bar(picture, x0 + samples + bar_gap * style.dot, y0, lines, *panels[k].bar);
    }
    if (common) draw_bar(picture, left.back() - gap + bar_gap * style.dot, 0, lines, *common);
    return picture;
}

Canvas framed(const Canvas& picture, const std::string& title, bool frame, const FramedPanel& panel) {
    const auto& style = picture.style();
    const int64_t dot = style.dot, row = style.row(), thin = style.thin();
    const Ground ground = frame ? ground_of(panel, style) : Ground{};
    int64_t left = title.empty() ? 0 : margin * dot, above = 0, below = left, right = left;
    for (const Mark& mark : ground.y) {
        left = std::max(left, (margin + tick + tick_gap) * dot + style.width(mark.text));
        above = margin * dot; // space for half of the coordinate at the corner
    }
    for (const Mark& mark : ground.x) {
        left = std::max(left, margin * dot);
        right =
            std::max<int64_t>(right, std::llround(mark.at) + style.width(mark.text) / 2 - picture.samples());
    }
    const int64_t under_ticks = ground.x.empty() ? 0 : tick * dot + row;
    below = std::max(below, under_ticks);
    if (!ground.srs.empty()) below += row;
    const bool drawn = ground.metres.has_value();
    if (drawn) below += 2 * row;
    // A narrow picture is widened for its title and for the name of the SRS.
    constexpr int64_t least_letters = 33;
    const auto room = [&] { return (left + picture.samples() + right - left) / style.letter_width(); };
    const auto heading = style.lines(title, std::max(least_letters, room()));
    const std::string srs = style.fitted(ground.srs, std::max(least_letters, room()));
    if (!heading.empty()) above = static_cast<int64_t>(heading.size()) * row + margin * dot;
    int64_t widest = style.width(srs);
    for (const auto& line : heading)
        widest = std::max(widest, style.width(line));
    Canvas canvas(left + std::max(picture.samples() + right, widest), above + picture.lines() + below, style);
    canvas.paste(left, above, picture);
    for (size_t k = 0; k < heading.size(); ++k)
        tools::draw_text(canvas, left, 2 * dot + static_cast<int64_t>(k) * row, heading[k]);
    for (const Mark& mark : ground.y) {
        const int64_t y = above + std::min<int64_t>(std::llround(mark.at), panel.lines - thin);
        tools::draw_box(canvas, left - tick * dot, y, tick * dot, thin, {});
        tools::draw_text(canvas, left - (tick + tick_gap) * dot - style.width(mark.text),
                         y - style.letter_height() / 2, mark.text);
    }
    const int64_t under = above + picture.lines();
    for (const Mark& mark : ground.x) {
        const int64_t x = left + std::min<int64_t>(std::llround(mark.at), panel.samples - thin);
        tools::draw_box(canvas, x, under, thin, tick * dot, {});
        tools::draw_text(canvas, std::max<int64_t>(0, x - style.width(mark.text) / 2),
                         under + (tick + 1) * dot, mark.text);
    }
    if (!srs.empty()) tools::draw_text(canvas, left, under + under_ticks + dot, srs);
    if (drawn) {
        const int64_t y = under + below - row;
        draw_scale_bar(canvas, left, y, panel.samples, *ground.metres);
        if (ground.north_x != 0 || ground.north_y != 0)
            draw_arrow(
                canvas,
                static_cast<double>(left + std::max<int64_t>(panel.samples - 20 * dot, panel.samples / 2)),
                static_cast<double>(y), ground.north_x, ground.north_y);
    }
    return canvas;
}

} // namespace hsi::quicklook_tool
