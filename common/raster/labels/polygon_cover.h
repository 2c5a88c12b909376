// SPDX-License-Identifier: MIT
// The fraction of every pixel of a grid that the polygons of a class cover.
#pragma once

#include "raster/labels/labels_impl.h"
#include "raster/labels/shape_burner.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

/// The polygons of a class are united first (with GEOS), so that areas covered by several polygons count
/// once. The fraction is the exact area of the union in the pixel, except for rounding. Every line is
/// computed separately, so results do not depend on the order of reading. An edge that is at most a millionth
/// of a pixel away from a pixel border is moved to the border, as in ShapeBurner. The fraction of a labelled
/// pixel may therefore be smaller than `least` by a millionth.
class PolygonCover {
  public:
    /// Points and lines cover nothing. `least` is the smallest fraction that labels a pixel. `none` is the
    /// value of pixels without a label. Polygons may also have this value: a pixel that they cover more than
    /// any class does has no label. Throws Error that names `path` if GDAL has no GEOS or GEOS cannot unite
    /// the polygons.
    PolygonCover(const std::vector<Shape>& shapes, int64_t samples, int64_t lines, const GeoTransform& place,
                 double least, uint16_t none, std::string path);

    /// Reads whole lines to out (count x samples values): the class with the largest fraction, if this is at
    /// least `least`. Among equal fractions, the smallest class number wins.
    void read(int64_t line, int64_t count, uint16_t* out);
    /// Computes the fraction of each pixel that class `value` covers, from 0 to 1.
    void shares(int64_t line, int64_t count, uint16_t value, float* out) const;
    /// Returns the classes that have a polygon, ascending, without `none`.
    std::vector<uint16_t> values() const;
    /// Returns the number of labelled pixels, in the lines read so far, in which polygons of several classes
    /// overlap. Overlaps of up to a hundredth of the pixel are not counted.
    int64_t overlapping() const { return m_overlapping; }
    /// Returns the number of patches that are entirely on the grid and label no pixel. A patch is a connected
    /// part of the united polygons of a class. The number is complete when all lines are read.
    int64_t without_pixel() const;

  private:
    /// An edge from top to bottom. `sign` is 1 if the polygon is to the right of the edge, otherwise -1.
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
    /// The fractions of the pixels in a part of the grid.
    struct Window {
        int64_t x = 0, y = 0, w = 0, h = 0;
        std::vector<double> share;
        size_t at(int64_t sample, int64_t line) const {
            return static_cast<size_t>((line - y) * w + sample - x);
        }
        /// Calls visit(sample, line, share) for every pixel with a cover above 0.
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
    /// Returns the fractions of pixels that `parts` cover in the lines [line, line + count). The window
    /// contains only the pixels that the parts may cover.
    Window window_of(const std::vector<const Part*>& parts, int64_t line, int64_t count) const;
    static void add_edge(const Edge& edge, Window& sums);
    static std::vector<const Part*> parts_in(const Class& one, int64_t line, int64_t count);
    /// Returns the fractions of pixels that a class covers in the lines [line, line + count). If a pixel is
    /// in several windows, its fraction is the sum of their values.
    std::vector<Window> windows_of(const Class& one, int64_t line, int64_t count) const;
    void find_labelling_parts(Class& one, const std::vector<double>& all, int64_t line, int64_t count) const;

    std::vector<Class> m_classes; ///< class `none` first, then the other classes by value
    int64_t m_samples, m_lines;
    GeoTransform m_inverse{};
    double m_least;
    uint16_t m_none;
    std::string m_path;
    std::vector<bool> m_counted; ///< lines whose overlaps are counted
    int64_t m_overlapping = 0;
};

} // namespace hsi::raster
