// SPDX-License-Identifier: MIT
// How much of every pixel of a grid the polygons of a class cover.
#pragma once

#include "raster/labels/labels_impl.h"
#include "raster/labels/shape_burner.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

/// The polygons of a class are united first (by GEOS), so that areas covered by several polygons count once.
/// The share of a pixel is the exact area of that union in its square, but for rounding; every line is
/// computed for itself, so nothing depends on how lines are read. As in ShapeBurner, a line within a
/// millionth of a pixel of a pixel border is on the border, and a share may be less than `least` by as much.
class PolygonCover {
  public:
    /// Points and lines cover nothing. `least`: the smallest share of a labelled pixel; `none`: the value of
    /// pixels without a label; shapes with this value remove the label of the pixels that they cover most.
    /// Throws Error when GDAL has no GEOS or GEOS cannot unite the polygons, naming `path`.
    PolygonCover(const std::vector<Shape>& shapes, int64_t samples, int64_t lines, const GeoTransform& place,
                 double least, uint16_t none, std::string path);

    /// Whole lines into out (count x samples values): the class of the largest share, of equal ones the
    /// smallest number, where that share is `least` or more.
    void read(int64_t line, int64_t count, uint16_t* out);
    /// The share that class `value` covers of each pixel, from 0 to 1.
    void shares(int64_t line, int64_t count, uint16_t value, float* out) const;
    /// The classes that have a polygon, ascending; not `none`.
    std::vector<uint16_t> values() const;
    /// In the lines read so far: labelled pixels where polygons of several classes overlap, in more than a
    /// hundredth of the pixel.
    int64_t overlapping() const { return m_overlapping; }
    /// Connected patches of polygons that are entirely on the grid and label no pixel; correct when all lines
    /// are read.
    int64_t without_pixel() const;

  private:
    /// From top to bottom; sign: 1 if the polygon is to the right, else -1.
    struct Edge {
        double x0, y0, x1, y1, sign;
    };
    /// A polygon with its holes, in pixels from the grid's upper left corner.
    struct Part {
        std::vector<Edge> edges;
        double left = 0, right = 0, top = 0, bottom = 0;
        bool on_grid = false, labels = false;
    };
    struct Class {
        uint16_t value = 0;
        std::vector<Part> parts;
    };
    /// Shares of the pixels of a part of the grid.
    struct Window {
        int64_t x = 0, y = 0, w = 0, h = 0;
        std::vector<double> share;
        size_t at(int64_t sample, int64_t line) const {
            return static_cast<size_t>((line - y) * w + sample - x);
        }
        /// visit(sample, line, share) of every pixel that is covered at all.
        template <class Visit>
        void each(Visit visit) const {
            for (int64_t row = y; row < y + h; ++row)
                for (int64_t column = x; column < x + w; ++column)
                    if (const double s = share[at(column, row)]; s > 0) visit(column, row, s);
        }
    };

    void add_class(uint16_t value, const std::vector<const Shape*>& shapes);
    void add_polygon(OGRGeometryH polygon, std::vector<Part>& parts) const;
    void add_ring(OGRGeometryH ring, bool hole, Part& part) const;
    /// A window in the lines [line, line + count), as wide and high as the parts in it.
    Window window_of(const std::vector<const Part*>& parts, int64_t line, int64_t count) const;
    static void add_edge(const Edge& edge, Window& sums);
    static std::vector<const Part*> parts_in(const Class& one, int64_t line, int64_t count);
    /// The cover of these lines by the class; a pixel is in one window, or is the sum of several.
    std::vector<Window> windows_of(const Class& one, int64_t line, int64_t count) const;
    void find_labelling_parts(Class& one, const std::vector<double>& all, int64_t line, int64_t count) const;

    std::vector<Class> m_classes; ///< `none` first, then by value
    int64_t m_samples, m_lines;
    GeoTransform m_inverse{};
    double m_least;
    uint16_t m_none;
    std::string m_path;
    std::vector<bool> m_counted; ///< lines whose overlaps are counted
    int64_t m_overlapping = 0;
};

} // namespace hsi::raster
