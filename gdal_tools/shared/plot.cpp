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

std::string number_in(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string place(double value) { return number_in("%.2f", value); }

/// Text of XML: field names may hold anything.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : utf8_text(text)) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '&' || c == '<' || c == '>' || c == '\'')
            out += "&#" + std::to_string(code) + ";";
        else
            out += code < ' ' ? ' ' : c; // XML has no control characters
    }
    return out;
}

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
        ticks.push_back(k * unit + 0.0); // not -0
    return ticks;
}

void draw_line(Canvas& canvas, double x0, double y0, double x1, double y1, const Rgb& colour, double width) {
    const double dx = x1 - x0, dy = y1 - y0;
    const auto steps = static_cast<int64_t>(std::ceil(std::max({std::fabs(dx), std::fabs(dy), 1.0})));
    const auto wide = std::max<int64_t>(1, std::llround(width));
    const bool flat = std::fabs(dx) >= std::fabs(dy);
    for (int64_t s = 0; s <= steps; ++s) {
        const double t = static_cast<double>(s) / static_cast<double>(steps);
        const int64_t x = std::llround(x0 + t * dx), y = std::llround(y0 + t * dy);
        for (int64_t k = 0; k < wide; ++k)
            canvas.set(flat ? x : x + k - wide / 2, flat ? y + k - wide / 2 : y, colour);
    }
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
    const double range = m_x.highest - m_x.lowest;
    return range > 0 ? m_frame.left + (m_frame.right - m_frame.left) * (value - m_x.lowest) / range
                     : m_frame.left;
}

double Plot::y_of(double value) const {
    const auto scaled = [&](double v) { return m_y.logarithmic ? std::log10(v) : v; };
    const double range = scaled(m_y.highest) - scaled(m_y.lowest);
    return range > 0 ? m_frame.bottom -
                           (m_frame.bottom - m_frame.top) * (scaled(value) - scaled(m_y.lowest)) / range
                     : m_frame.bottom;
}

void Plot::line(double x0, double y0, double x1, double y1, const Rgb& colour, double width) {
    m_shapes.push_back({Shape::Kind::line, x0, y0, x1, y1, width, colour, Anchor::start, ""});
}
void Plot::disc(double x, double y, double radius, const Rgb& colour, const std::string& title) {
    m_shapes.push_back({Shape::Kind::disc, x, y, 0, 0, radius, colour, Anchor::start, title});
}
void Plot::text(double x, double y, Anchor anchor, const std::string& text, bool upwards) {
    m_shapes.push_back(
        {upwards ? Shape::Kind::upward_text : Shape::Kind::text, x, y, 0, 0, 0, black, anchor, text});
}

std::string Plot::svg() const {
    const std::string width = std::to_string(m_frame.width), height = std::to_string(m_frame.height),
                      size = "width='" + width + "' height='" + height + "'";
    std::string svg = "<svg xmlns='http://www.w3.org/2000/svg' " + size + " viewBox='0 0 " + width + " " +
                      height + "' font-family='sans-serif' font-size='14'>\n<rect " + size +
                      " fill='white'/>\n";
    for (const Shape& s : m_shapes) {
        const std::string x0 = place(s.x0), y0 = place(s.y0);
        const char* const anchor = s.anchor == Anchor::start    ? "start"
                                   : s.anchor == Anchor::middle ? "middle"
                                                                : "end";
        if (s.kind == Shape::Kind::line)
            svg += "<line x1='" + x0 + "' y1='" + y0 + "' x2='" + place(s.x1) + "' y2='" + place(s.y1) +
                   "' stroke='" + colour_text(s.colour) + "' stroke-width='" + number_in("%g", s.size) +
                   "'/>\n";
        else if (s.kind == Shape::Kind::disc)
            svg += "<circle cx='" + x0 + "' cy='" + y0 + "' r='" + number_in("%g", s.size) + "' fill='" +
                   colour_text(s.colour) + "'><title>" + escaped(s.text) + "</title></circle>\n";
        else
            svg += "<text x='" + x0 + "' y='" + y0 + "' text-anchor='" + anchor + "'" +
                   (s.kind == Shape::Kind::upward_text ? " transform='rotate(-90 " + x0 + " " + y0 + ")'"
                                                       : std::string()) +
                   ">" + escaped(s.text) + "</text>\n";
    }
    return svg + "</svg>\n";
}

Canvas Plot::picture() const {
    Canvas canvas(m_frame.width, m_frame.height);
    for (const Shape& s : m_shapes) {
        if (s.kind == Shape::Kind::line) {
            draw_line(canvas, s.x0, s.y0, s.x1, s.y1, s.colour, s.size);
        } else if (s.kind == Shape::Kind::disc) {
            draw_disc(canvas, s.x0, s.y0, s.size, s.colour);
        } else {
            const bool upwards = s.kind == Shape::Kind::upward_text;
            const int64_t room = upwards ? m_frame.height : m_frame.width;
            const auto text = plain_letters(s.text, static_cast<size_t>(room / letter_width));
            const auto length = static_cast<double>(static_cast<int64_t>(text.size()) * letter_width);
            const double back = s.anchor == Anchor::start    ? 0
                                : s.anchor == Anchor::middle ? length / 2
                                                             : length;
            // The upper left corner, or the lower left one of a text upwards.
            const int64_t x = std::llround(upwards ? s.x0 - letter_height : s.x0 - back),
                          y = std::llround(upwards ? s.y0 + back : s.y0 - letter_height);
            draw_text(canvas, x, y, text, upwards);
        }
    }
    return canvas;
}

void PlotOutput::check_name(const std::string& role, const std::string& path, const char* further) {
    const std::string extension = raster::extension_of(path);
    if (path.empty() || extension.empty() || equal_names(extension, "svg") || equal_names(extension, "png"))
        return;
    throw UsageError("-" + role + ": '" + path + "' ends neither in .svg nor in .png" + further,
                     "The extension says the format.");
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
        write_picture(run, m_picture, plot.picture(), 0.01);
    else
        raster::write_text_output(m_text, plot.svg());
}

} // namespace hsi::tools
