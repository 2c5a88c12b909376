// SPDX-License-Identifier: MIT
// Burns shapes with class numbers into the pixels of a grid, strip by strip.
#pragma once

#include "raster/labels/labels_impl.h"

#include <ogr_geometry.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

struct Shape {
    std::unique_ptr<OGRGeometry>
        geometry; ///< points, lines and polygons without curves, and collections of them
    OGREnvelope envelope;
    uint16_t value = 0;
};

/// Selects the pixels that a shape labels. A point labels the pixel that contains it, and a line labels the
/// pixels through which it passes. Points and lines have no inside.
enum class Cover {
    centres, ///< pixels whose centre a polygon covers
    touched, ///< all pixels that a polygon or a line touches
    inside   ///< pixels that are entirely in one polygon, so that no edge of the polygon passes through them
};

/// Burns shapes. A position that is at most a millionth of a pixel away from a pixel border counts as on the
/// border. The labels do not depend on the order in which lines are read.
class ShapeBurner {
  public:
    /// `place`: geotransform of the grid, which is `samples` wide. Later shapes replace earlier ones. `none`
    /// is the value of pixels that no shape labels; shapes may also have this value. `path` is the file's
    /// name in messages.
    ShapeBurner(std::vector<Shape> shapes, int64_t samples, const GeoTransform& place, Cover cover,
                uint16_t none, std::string path);

    /// Writes the labels of the lines [line, line + count) to out (count x samples values). Throws Error if
    /// GDAL cannot burn the shapes.
    void read(int64_t line, int64_t count, uint16_t* out);
    /// Returns a lower bound of the number of pixels, in the lines read so far, that shapes of several values
    /// label. Shapes are burned in their order and in the reverse order, and pixels with different results
    /// are counted. A pixel that three shapes cover is not counted if the first and the last have the same
    /// value.
    int64_t disputed() const { return m_disputed; }
    /// Returns the number of shapes with polygons that are entirely on a grid of `lines` lines but label no
    /// pixel, because they are too small or narrow.
    int64_t without_pixel(int64_t lines) const;
    /// Receives the value of a polygon and the pixels of a grid of `lines` lines (line * samples + sample,
    /// ascending) that the polygon touches. Each part of a multipolygon is passed separately. Polygons with
    /// the value `none` are skipped.
    using EachPolygon = std::function<void(uint16_t value, const std::vector<int64_t>& pixels)>;
    void each_polygon(int64_t lines, const EachPolygon& visit) const;

  private:
    using Strip = std::vector<uint16_t>;
    void burn(int64_t first);
    void burn_in_gdal(const std::vector<const Shape*>& shapes, int64_t first, Strip& strip) const;
    void burn_inside(const Shape& shape, int64_t first, Strip& strip) const;

    std::vector<Shape> m_shapes;
    int64_t m_samples;
    GeoTransform m_place, m_inverse{};
    Cover m_cover;
    uint16_t m_none;
    std::string m_path;
    bool m_several = false; ///< shapes have more than one value
    Strip m_strip;
    int64_t m_burned = -1, m_disputed = 0;
    std::vector<bool> m_compared; ///< strips whose disputed pixels are counted
};

} // namespace hsi::raster
