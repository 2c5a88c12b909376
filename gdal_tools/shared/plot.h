// SPDX-License-Identifier: MIT
// Plots with axes, ticks, labels and curves, written as .svg or as a picture by GDAL.
#pragma once

#include "shared/canvas.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tools {

struct Axis {
    std::string label; ///< text with the unit
    double lowest = 0, highest = 1;
    std::vector<double> ticks; ///< empty: ticks are at multiples of tick_distance(), or at powers of ten
    bool logarithmic = false;  ///< true for a logarithmic axis, whose limits must be above 0
};

/// Returns a distance between ticks: 1, 2 or 5 times a power of ten, about a fifth of `range`. A range of 0
/// counts as 1.
double tick_distance(double range);

/// An entry of a legend.
struct Series {
    std::string name;
    Rgb colour{};
    bool dashed = false;
};
/// Returns a name for a legend: names of more than `longest` letters are cut.
std::string short_name(const std::string& name, int64_t longest);
/// Returns series `k`. Its colour differs from the colours of neighbouring series. From the eleventh series
/// on, colours repeat and curves are dashed.
Series numbered_series(size_t k, std::string name);

/// A plot. Positions are in pixels from the upper left corner.
class Plot {
  public:
    struct Frame {
        int64_t width, height;
        double left, right, top, bottom; ///< edges of the area between the axes
        double inset = 0; ///< distance of the ends of the axes from these edges, where curves stay visible
    };
    using Point = std::array<double, 2>;
    /// Returns the frame with additional space for a title above the axes. An empty title needs none.
    static Frame with_title(Frame frame, const std::string& title);
    /// Returns the frame with additional space for a legend to the right of the axes.
    static Frame with_legend(Frame frame, const std::vector<Series>& series);
    /// Makes a white plot with axes, ticks, tick labels, and grey lines at the ticks of y.
    Plot(const Frame& frame, Axis x, Axis y);
    double x_of(double value) const;
    double y_of(double value) const;
    enum class Anchor { start, middle, end };
    void line(double x0, double y0, double x1, double y1, const Rgb& colour, double width = 1);
    /// Draws a curve through points. A point within a quarter of a pixel of the previous point is skipped.
    void curve(const std::vector<Point>& points, const Rgb& colour, double width = 1, bool dashed = false);
    /// Fills the area between two curves with a light shade of the colour. `other`: points of the second
    /// curve, with the same x.
    void area(const std::vector<Point>& points, const std::vector<Point>& other, const Rgb& colour);
    /// Writes the title, in up to three lines. The frame must come from with_title().
    void title(const std::string& text);
    /// Draws the legend to the right of the axes. The frame must come from with_legend().
    void legend(const std::vector<Series>& series);
    /// Draws a disc. title: text that a viewer of the .svg shows when the mouse is over the disc.
    void disc(double x, double y, double radius, const Rgb& colour, const std::string& title);
    /// Draws text with its base line at y. upwards: true for text that is rotated counter-clockwise about (x,
    /// y).
    void text(double x, double y, Anchor anchor, const std::string& text, bool upwards = false);
    std::string svg() const;
    Canvas picture() const;

  private:
    struct Shape {
        enum class Kind { line, curve, area, disc, text, upward_text } kind;
        double x0, y0, x1, y1;
        double size; ///< width of a line, or radius of a disc
        Rgb colour;
        Anchor anchor;
        std::string text;
        std::vector<Point> points, other{};
        bool dashed = false;
    };
    static std::string svg_of(const Shape& shape);
    Frame m_frame;
    Axis m_x, m_y;
    std::vector<Shape> m_shapes;
};

/// The output file of a plot: a raster if its extension is .png, else a text in the SVG format (also if the
/// result goes to an array instead of a file).
class PlotOutput {
  public:
    /// Checks the extension of the file, which must be .svg, .png or missing. \throws UsageError for other
    /// extensions. `further`: other allowed values of the option, for the message.
    static void check_name(const std::string& role, const std::string& path, const char* further = "");
    PlotOutput(const tool::Run& run, const std::string& role, const std::string& path, bool overwrite);
    /// Throws Error if the file cannot be written.
    void check(const Plot::Frame& frame) const;
    void write(tool::Run& run, const Plot& plot) const;
    bool wanted() const { return !m_text.path.empty(); }

  private:
    bool is_picture() const;
    raster::TextOutput m_text;
    raster::OutputOptions m_picture;
};

} // namespace hsi::tools
