// SPDX-License-Identifier: MIT
#include "shared/plot.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/drivers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hsi::tools {
namespace {

constexpr Rgb black{}, grey{221, 221, 221};
constexpr double tick_length = 5;
constexpr double legend_gap = 16, legend_line = 28, legend_row = 22;
constexpr double legend_margin = 24; ///< between the legend and the edge of the plot
constexpr int64_t longest_name = 48; ///< maximum number of letters of a name in the legend
constexpr TextStyle plot_style;      ///< of a picture of the plot
constexpr double dash = 7, dash_gap = 5;
constexpr double area_share = 0.2; ///< opacity of an area

std::string number_in(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string place(double value) { return number_in("%.2f", value); }

std::string colour_text(const Rgb& colour) {
    char text[8];
    std::snprintf(text, sizeof text, "#%02x%02x%02x", colour[0], colour[1], colour[2]);
    return text;
}

std::vector<double> ticks_of(const Axis& axis) {
    if (!axis.ticks.empty()) return axis.ticks;
    constexpr double rounding = 1e-9;
    std::vector<double> ticks;
    if (axis.logarithmic) {
        for (double k = std::ceil(std::log10(axis.lowest) - rounding);
             k <= std::log10(axis.highest) + rounding; ++k)
            ticks.push_back(std::pow(10, k));
        return ticks;
    }
    const double unit = tick_distance(axis.highest - axis.lowest);
    for (double k = std::ceil(axis.lowest / unit - rounding); k * unit <= axis.highest + rounding * unit; ++k)
        ticks.push_back(k * unit + 0.0); // turns -0 into 0
    return ticks;
}

/// Draws a straight line. `before`: length of the curve before this line, which positions the dashes;
/// negative for a solid line.
void draw_line(Canvas& canvas, double x0, double y0, double x1, double y1, const Rgb& colour, double width,
               double before = -1) {
    const double dx = x1 - x0, dy = y1 - y0, length = std::hypot(dx, dy);
    const auto steps = static_cast<int64_t>(std::ceil(std::max({std::fabs(dx), std::fabs(dy), 1.0})));
    const auto wide = std::max<int64_t>(1, std::llround(width));
    const bool flat = std::fabs(dx) >= std::fabs(dy);
    for (int64_t s = 0; s <= steps; ++s) {
        const double t = static_cast<double>(s) / static_cast<double>(steps);
        if (before >= 0 && std::fmod(before + t * length, dash + dash_gap) > dash) continue;
        const int64_t x = std::llround(x0 + t * dx), y = std::llround(y0 + t * dy);
        for (int64_t k = 0; k < wide; ++k)
            canvas.set(flat ? x : x + k - wide / 2, flat ? y + k - wide / 2 : y, colour);
    }
}

void draw_curve(Canvas& canvas, const std::vector<Plot::Point>& points, const Rgb& colour, double width,
                bool dashed) {
    double length = 0;
    for (size_t k = 1; k < points.size(); ++k) {
        const auto &a = points[k - 1], &b = points[k];
        draw_line(canvas, a[0], a[1], b[0], b[1], colour, width, dashed ? length : -1);
        length += std::hypot(b[0] - a[0], b[1] - a[1]);
    }
}

/// Fills the area between two curves, column by column. Both curves must have the same ascending x.
void draw_area(Canvas& canvas, const std::vector<Plot::Point>& points, const std::vector<Plot::Point>& other,
               const Rgb& colour) {
    for (size_t k = 1; k < points.size(); ++k) {
        const auto from = std::llround(points[k - 1][0]), to = std::llround(points[k][0]);
        for (int64_t x = from; x < to; ++x) {
            const double t = static_cast<double>(x - from) / static_cast<double>(to - from);
            const auto at = [&](const std::vector<Plot::Point>& line) {
                return std::llround(line[k - 1][1] + t * (line[k][1] - line[k - 1][1]));
            };
            for (int64_t y = std::max<int64_t>(0, std::min(at(points), at(other)));
                 y <= std::max(at(points), at(other)) && y < canvas.lines(); ++y) {
                if (x < 0 || x >= canvas.samples()) continue;
                Rgb mixed = canvas.at(x, y);
                for (size_t c = 0; c < mixed.size(); ++c)
                    mixed[c] = static_cast<uint8_t>(
                        std::lround((1 - area_share) * mixed[c] + area_share * colour[c]));
                canvas.set(x, y, mixed);
            }
        }
    }
}

std::string points_text(const std::vector<Plot::Point>& points) {
    std::string text;
    for (const auto& point : points)
        text += (text.empty() ? "" : " ") + number_in("%.1f", point[0]) + "," + number_in("%.1f", point[1]);
    return text;
}

double scaled_to(const Axis& axis, double value) { return axis.logarithmic ? std::log10(value) : value; }
/// Returns the position of a value on the axis: 0 at the lower limit, 1 at the upper limit.
double place_on(const Axis& axis, double value) {
    const double low = scaled_to(axis, axis.lowest), range = scaled_to(axis, axis.highest) - low;
    return range > 0 ? (scaled_to(axis, value) - low) / range : 0;
}

void draw_disc(Canvas& canvas, double x0, double y0, double radius, const Rgb& colour) {
    for (auto y = static_cast<int64_t>(std::floor(y0 - radius)); static_cast<double>(y) <= y0 + radius; ++y)
        for (auto x = static_cast<int64_t>(std::floor(x0 - radius)); static_cast<double>(x) <= x0 + radius;
             ++x)
            if (std::hypot(static_cast<double>(x) - x0, static_cast<double>(y) - y0) <= radius)
                canvas.set(x, y, colour);
}

} // namespace

double tick_distance(double range) {
    constexpr double wanted = 5, most = 8;
    if (!(range > 0)) range = 1;
    const double power = std::pow(10, std::floor(std::log10(range / wanted)));
    for (const double times : {1.0, 2.0, 5.0})
        if (range / (power * times) <= most) return power * times;
    return power * 10;
}

Plot::Plot(const Frame& frame, Axis x, Axis y) : m_frame(frame), m_x(std::move(x)), m_y(std::move(y)) {
    const auto& f = m_frame;
    for (const double tick : ticks_of(m_y)) {
        line(f.left, y_of(tick), f.right, y_of(tick), grey);
        line(f.left - tick_length, y_of(tick), f.left, y_of(tick), black);
        text(f.left - 2 * tick_length, y_of(tick) + 5, Anchor::end, number_in("%.6g", tick));
    }
    for (const double tick : ticks_of(m_x)) {
        line(x_of(tick), f.bottom, x_of(tick), f.bottom + tick_length, black);
        text(x_of(tick), f.bottom + 22, Anchor::middle, number_in("%.6g", tick));
    }
    line(f.left, f.top, f.left, f.bottom, black);
    line(f.left, f.bottom, f.right, f.bottom, black);
    text((f.left + f.right) / 2, f.bottom + 46, Anchor::middle, m_x.label);
    text(20, (f.top + f.bottom) / 2, Anchor::middle, m_y.label, true);
}

double Plot::x_of(double value) const {
    const double from = m_frame.left + m_frame.inset, to = m_frame.right - m_frame.inset;
    return from + (to - from) * place_on(m_x, value);
}

double Plot::y_of(double value) const {
    const double from = m_frame.bottom - m_frame.inset, to = m_frame.top + m_frame.inset;
    return from + (to - from) * place_on(m_y, value);
}

Series numbered_series(size_t k, std::string name) {
    constexpr std::array<Rgb, 10> colours{{{0, 85, 170},
                                           {204, 51, 17},
                                           {0, 140, 80},
                                           {230, 140, 0},
                                           {130, 70, 160},
                                           {60, 60, 60},
                                           {0, 170, 190},
                                           {200, 60, 140},
                                           {140, 90, 40},
                                           {120, 150, 0}}};
    return {std::move(name), colours[k % colours.size()], k / colours.size() % 2 == 1};
}

std::string short_name(const std::string& name, int64_t longest) {
    return TextStyle{Letters::all}.fitted(name, longest);
}

namespace {

std::vector<std::string> title_lines(const Plot::Frame& frame, const std::string& title) {
    const auto room = static_cast<int64_t>(frame.right - frame.left) / plot_style.letter_width();
    return TextStyle{Letters::all}.lines(title, room);
}

} // namespace

Plot::Frame Plot::with_title(Frame frame, const std::string& title) {
    const double rows = legend_row * static_cast<double>(title_lines(frame, title).size());
    frame.top += rows;
    frame.bottom += rows;
    frame.height += static_cast<int64_t>(rows);
    return frame;
}

void Plot::title(const std::string& text) {
    double y = legend_row + legend_gap / 2;
    for (const auto& line : title_lines(m_frame, text)) {
        this->text(m_frame.left, y, Anchor::start, line);
        y += legend_row;
    }
}

Plot::Frame Plot::with_legend(Frame frame, const std::vector<Series>& series) {
    int64_t longest = 0;
    for (const auto& one : series)
        longest = std::max(longest, plot_style.width(plot_style.fitted(one.name, longest_name)));
    const double right = frame.right + 2 * legend_gap + legend_line + static_cast<double>(longest);
    frame.width = std::max(frame.width, static_cast<int64_t>(right + legend_margin));
    const double below = frame.top + legend_row * (static_cast<double>(series.size()) + 1);
    frame.height = std::max(frame.height, static_cast<int64_t>(below));
    return frame;
}

void Plot::legend(const std::vector<Series>& series) {
    double y = m_frame.top + legend_row;
    const double left = m_frame.right + legend_gap;
    for (const auto& one : series) {
        curve({{left, y - 5}, {left + legend_line, y - 5}}, one.colour, 3, one.dashed);
        text(left + legend_line + legend_gap / 2, y, Anchor::start, short_name(one.name, longest_name));
        y += legend_row;
    }
}

void Plot::line(double x0, double y0, double x1, double y1, const Rgb& colour, double width) {
    m_shapes.push_back({Shape::Kind::line, x0, y0, x1, y1, width, colour, Anchor::start, "", {}});
}
void Plot::curve(const std::vector<Point>& points, const Rgb& colour, double width, bool dashed) {
    constexpr double least = 0.25;
    std::vector<Point> kept;
    for (size_t k = 0; k < points.size(); ++k)
        if (kept.empty() || k + 1 == points.size() ||
            std::hypot(points[k][0] - kept.back()[0], points[k][1] - kept.back()[1]) > least)
            kept.push_back(points[k]);
    m_shapes.push_back({Shape::Kind::curve, 0, 0, 0, 0, width, colour, Anchor::start, "", std::move(kept)});
    m_shapes.back().dashed = dashed;
}
void Plot::area(const std::vector<Point>& points, const std::vector<Point>& other, const Rgb& colour) {
    m_shapes.push_back({Shape::Kind::area, 0, 0, 0, 0, 0, colour, Anchor::start, "", points, other});
}
void Plot::disc(double x, double y, double radius, const Rgb& colour, const std::string& title) {
    m_shapes.push_back({Shape::Kind::disc, x, y, 0, 0, radius, colour, Anchor::start, title, {}});
}
void Plot::text(double x, double y, Anchor anchor, const std::string& text, bool upwards) {
    m_shapes.push_back(
        {upwards ? Shape::Kind::upward_text : Shape::Kind::text, x, y, 0, 0, 0, black, anchor, text, {}});
}

std::string Plot::svg_of(const Shape& s) {
    const std::string x0 = place(s.x0), y0 = place(s.y0), colour = colour_text(s.colour);
    const auto stroke = [&] {
        return " stroke='" + colour + "' stroke-width='" + number_in("%g", s.size) + "'";
    };
    switch (s.kind) {
    case Shape::Kind::line:
        return "<line x1='" + x0 + "' y1='" + y0 + "' x2='" + place(s.x1) + "' y2='" + place(s.y1) + "'" +
               stroke() + "/>\n";
    case Shape::Kind::curve:
        return "<polyline points='" + points_text(s.points) + "' fill='none' stroke-linejoin='round'" +
               (s.dashed
                    ? " stroke-dasharray='" + number_in("%g", dash) + " " + number_in("%g", dash_gap) + "'"
                    : std::string()) +
               stroke() + "/>\n";
    case Shape::Kind::area: {
        auto around = s.points;
        around.insert(around.end(), s.other.rbegin(), s.other.rend());
        return "<polygon points='" + points_text(around) + "' fill='" + colour + "' fill-opacity='" +
               number_in("%g", area_share) + "'/>\n";
    }
    case Shape::Kind::disc:
        return "<circle cx='" + x0 + "' cy='" + y0 + "' r='" + number_in("%g", s.size) + "' fill='" + colour +
               "'><title>" + escaped_text(s.text) + "</title></circle>\n";
    default:
        break;
    }
    const char* const anchor = s.anchor == Anchor::start    ? "start"
                               : s.anchor == Anchor::middle ? "middle"
                                                            : "end";
    return "<text x='" + x0 + "' y='" + y0 + "' text-anchor='" + anchor + "'" +
           (s.kind == Shape::Kind::upward_text ? " transform='rotate(-90 " + x0 + " " + y0 + ")'"
                                               : std::string()) +
           ">" + escaped_text(s.text) + "</text>\n";
}

std::string Plot::svg() const {
    const std::string width = std::to_string(m_frame.width), height = std::to_string(m_frame.height),
                      size = "width='" + width + "' height='" + height + "'";
    std::string svg = "<svg xmlns='http://www.w3.org/2000/svg' " + size + " viewBox='0 0 " + width + " " +
                      height + "' font-family='sans-serif' font-size='14'>\n<rect " + size +
                      " fill='white'/>\n";
    for (const Shape& shape : m_shapes)
        svg += svg_of(shape);
    return svg + "</svg>\n";
}

Canvas Plot::picture() const {
    Canvas canvas(m_frame.width, m_frame.height);
    for (const Shape& s : m_shapes) {
        if (s.kind == Shape::Kind::line) {
            draw_line(canvas, s.x0, s.y0, s.x1, s.y1, s.colour, s.size);
        } else if (s.kind == Shape::Kind::curve) {
            draw_curve(canvas, s.points, s.colour, s.size, s.dashed);
        } else if (s.kind == Shape::Kind::area) {
            draw_area(canvas, s.points, s.other, s.colour);
        } else if (s.kind == Shape::Kind::disc) {
            draw_disc(canvas, s.x0, s.y0, s.size, s.colour);
        } else {
            const bool upwards = s.kind == Shape::Kind::upward_text;
            const int64_t room = upwards ? m_frame.height : m_frame.width;
            const auto text = plot_style.fitted(s.text, room / plot_style.letter_width());
            const auto length = static_cast<double>(plot_style.width(text));
            const double back = s.anchor == Anchor::start    ? 0
                                : s.anchor == Anchor::middle ? length / 2
                                                             : length;
            // (x, y) is the upper left corner of a horizontal text, or the lower left corner of a vertical
            // text.
            const int64_t x = std::llround(upwards ? s.x0 - static_cast<double>(plot_style.letter_height())
                                                   : s.x0 - back),
                          y = std::llround(upwards ? s.y0 + back
                                                   : s.y0 - static_cast<double>(plot_style.letter_height()));
            draw_text(canvas, x, y, text, upwards);
        }
    }
    return canvas;
}

void PlotOutput::check_name(const std::string& role, const std::string& path, const char* further) {
    const std::string extension = raster::extension_of(path);
    if (path.empty() || extension.empty() || equal_names(extension, "svg") || equal_names(extension, "png"))
        return;
    throw UsageError("-" + role + ": '" + path + "' does not end in .svg or .png" + further,
                     "Choose the format by the extension.");
}

PlotOutput::PlotOutput(const tool::Run& run, const std::string& role, const std::string& path, bool overwrite)
    : m_text(run.text_output("-" + role, path, overwrite)), m_picture(run.side_output("-" + role, path)) {
    m_picture.overwrite = overwrite;
    m_picture.nodata.reset();
    m_picture.creation_options.clear();
}

bool PlotOutput::is_picture() const { return equal_names(raster::extension_of(m_text.path), "png"); }

void PlotOutput::check(const Plot::Frame& frame) const {
    if (is_picture())
        picture_output(m_picture, frame.width, frame.height).check();
    else
        raster::check_text_output(m_text);
}

void PlotOutput::write(tool::Run& run, const Plot& plot) const {
    if (!wanted()) return;
    if (is_picture())
        write_picture(run, m_picture, plot.picture(), 0);
    else
        raster::write_text_output(m_text, plot.svg());
}

} // namespace hsi::tools
