// SPDX-License-Identifier: MIT
// Shapes with numbers, burned into the pixels of a grid strip by strip.
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

/// Which pixels a shape labels. A point labels its pixel, and a line the pixels that it passes; neither has
/// an inside.
enum class Cover {
    centres, ///< those whose centre a polygon covers
    touched, ///< all pixels that a polygon or a line touches
    inside   ///< those that are entirely in one polygon: no side of it passes through them
};

/// A position within a millionth of a pixel border counts as on the border. A shape labels the same pixels
/// for any lines that are read.
class ShapeBurner {
  public:
    /// `place`: geotransform of the grid, `samples` wide. Later shapes win. `none`: the value of pixels that
    /// no shape labels; shapes may have it. `path`: for messages.
    ShapeBurner(std::vector<Shape> shapes, int64_t samples, const GeoTransform& place, Cover cover,
                uint16_t none, std::string path);

    /// Whole lines into out (count x samples values). Throws Error when GDAL cannot burn.
    void read(int64_t line, int64_t count, uint16_t* out);
    /// In the lines read so far: pixels that shapes of several values label, as a lower bound. Shapes are
    /// burned first to last and last to first, so that among three shapes in one pixel the middle one may be
    /// missed.
    int64_t disputed() const { return m_disputed; }
    /// Shapes that reach into `lines` lines of the grid and label none of its pixels, because they are too
    /// small or narrow.
    int64_t without_pixel(int64_t lines) const;
    /// For each polygon, also each part of a multipolygon: its value and the pixels of `lines` lines of the
    /// grid (line * samples + sample, ascending) that it touches. Polygons with the value `none` are skipped.
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
