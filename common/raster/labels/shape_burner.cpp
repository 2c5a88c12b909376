// SPDX-License-Identifier: MIT
#include "raster/labels/shape_burner.h"

#include "core/error.h"
#include "raster/gdal_errors.h"

#include <cpl_string.h>
#include <gdal_alg.h>
#include <gdal_priv.h>
#include <ogr_api.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi::raster {
namespace {

struct Edge {
    double x0, y0, x1, y1; ///< y0 <= y1
    double at(double y) const { return y0 == y1 ? x0 : snapped(x0 + (y - y0) * (x1 - x0) / (y1 - y0)); }
};

/// A polygon with its holes.
struct Outline {
    std::vector<Edge> edges;
    double left = 0, right = 0, top = 0, bottom = 0;
};

void add_ring(OGRGeometryH ring, const GeoTransform& inverse, Outline& outline) {
    const int count = OGR_G_GetPointCount(ring);
    double last_x = 0, last_y = 0;
    for (int i = 0; i < count; ++i) {
        const double east = OGR_G_GetX(ring, i), north = OGR_G_GetY(ring, i);
        const double x = snapped(inverse[0] + inverse[1] * east + inverse[2] * north),
                     y = snapped(inverse[3] + inverse[4] * east + inverse[5] * north);
        if (i == 0 && outline.edges.empty()) {
            outline.left = outline.right = x;
            outline.top = outline.bottom = y;
        }
        outline.left = std::min(outline.left, x);
        outline.right = std::max(outline.right, x);
        outline.top = std::min(outline.top, y);
        outline.bottom = std::max(outline.bottom, y);
        if (i > 0)
            outline.edges.push_back(last_y <= y ? Edge{last_x, last_y, x, y} : Edge{x, y, last_x, last_y});
        last_x = x;
        last_y = y;
    }
}

/// Adds the outlines of the polygons of a geometry. Points and lines have no outline.
void add_outlines(OGRGeometryH geometry, const GeoTransform& inverse, std::vector<Outline>& outlines) {
    const auto type = OGR_GT_Flatten(OGR_G_GetGeometryType(geometry));
    const int parts = OGR_G_GetGeometryCount(geometry);
    if (type == wkbPolygon) {
        outlines.emplace_back();
        for (int i = 0; i < parts; ++i)
            add_ring(OGR_G_GetGeometryRef(geometry, i), inverse, outlines.back());
    } else if (OGR_GT_IsSubClassOf(type, wkbGeometryCollection) != FALSE) {
        for (int i = 0; i < parts; ++i)
            add_outlines(OGR_G_GetGeometryRef(geometry, i), inverse, outlines);
    }
}

std::vector<Outline> outlines_of(const Shape& shape, const GeoTransform& inverse) {
    std::vector<Outline> outlines;
    add_outlines(OGRGeometry::ToHandle(shape.geometry.get()), inverse, outlines);
    return outlines;
}

/// The pixels [first, end) of a row.
struct Span {
    int64_t first, end;
};

/// Selects the pixels of a row that Rows::mark() marks.
enum class Of {
    centre, ///< pixels whose centre is inside
    whole,  ///< pixels that are entirely inside: the centre is inside, and no edge passes through
    met     ///< pixels whose centre is inside, or through which an edge passes
};

/// The intersections of an outline with the rows [first, first + count).
class Rows {
  public:
    Rows(const Outline& outline, int64_t first, int64_t count, int64_t samples)
        : m_samples(samples), m_crossings(static_cast<size_t>(count)), m_sides(static_cast<size_t>(count)) {
        m_from = std::clamp<int64_t>(ceil_of(std::floor(outline.left)), 0, samples);
        m_to = std::clamp<int64_t>(ceil_of(outline.right), m_from, samples);
        const auto top = static_cast<double>(first), bottom = static_cast<double>(first + count);
        for (const Edge& e : outline.edges) {
            if (e.y1 < top || e.y0 > bottom) continue;
            const auto from = static_cast<int64_t>(std::floor(std::max(e.y0, top))),
                       to = static_cast<int64_t>(std::ceil(std::min(e.y1, bottom)));
            // An edge on a border between two rows is in neither row.
            for (int64_t row = from; row < to; ++row)
                add(e, row, static_cast<size_t>(row - first));
        }
    }

    /// Returns the first column that the outline may touch.
    int64_t from() const { return m_from; }

    /// Marks the requested pixels of a row with 1, among the columns that the outline may touch.
    void mark(size_t row, Of of, std::vector<uint8_t>& pixels) {
        pixels.assign(static_cast<size_t>(m_to - m_from), 0);
        auto& crossings = m_crossings[row];
        std::sort(crossings.begin(), crossings.end());
        for (size_t i = 0; i + 1 < crossings.size(); i += 2)
            fill({ceil_of(crossings[i] - 0.5), ceil_of(crossings[i + 1] - 0.5)}, 1, pixels);
        if (of == Of::centre) return;
        for (const Span& side : m_sides[row])
            fill(side, of == Of::met ? 1 : 0, pixels);
    }

  private:
    int64_t ceil_of(double x) const {
        return static_cast<int64_t>(std::ceil(std::clamp(x, -1.0, static_cast<double>(m_samples) + 1)));
    }

    void add(const Edge& e, int64_t row, size_t at) {
        const auto above = static_cast<double>(row), centre = above + 0.5;
        if (e.y0 <= centre && centre < e.y1)
            m_crossings[at].push_back(e.x0 + (centre - e.y0) * (e.x1 - e.x0) / (e.y1 - e.y0));
        double a = e.x0, b = e.x1;
        if (e.y0 < e.y1) {
            a = e.y0 < above ? e.at(above) : e.x0;
            b = e.y1 > above + 1 ? e.at(above + 1) : e.x1;
        }
        if (a > b) std::swap(a, b);
        // The intervals are open, so an edge on the border between two pixels passes through neither pixel.
        const int64_t first = ceil_of(std::floor(a)), end = ceil_of(b);
        if (first < end) m_sides[at].push_back({first, end});
    }

    void fill(const Span& span, uint8_t value, std::vector<uint8_t>& pixels) const {
        const int64_t first = std::clamp<int64_t>(span.first, m_from, m_to),
                      end = std::clamp<int64_t>(span.end, first, m_to);
        std::fill(pixels.begin() + (first - m_from), pixels.begin() + (end - m_from), value);
    }

    int64_t m_samples, m_from = 0, m_to = 0;
    std::vector<std::vector<double>> m_crossings; ///< x at which edges cross the middle of each row
    std::vector<std::vector<Span>> m_sides;       ///< pixels of each row through which edges pass
};

} // namespace

ShapeBurner::ShapeBurner(std::vector<Shape> shapes, int64_t samples, const GeoTransform& place, Cover cover,
                         uint16_t none, std::string path)
    : m_shapes(std::move(shapes)), m_samples(samples), m_place(place), m_cover(cover), m_none(none),
      m_path(std::move(path)) {
    GeoTransform forward = place;
    if (!GDALInvGeoTransform(forward.data(), m_inverse.data()))
        throw Error("'" + m_path + "' cannot be placed: the scene's geotransform cannot be inverted");
    for (const Shape& s : m_shapes)
        m_several = m_several || s.value != m_shapes.front().value;
}

void ShapeBurner::read(int64_t line, int64_t count, uint16_t* out) {
    for (int64_t y = line; y < line + count;) {
        const int64_t first = y / strip_lines * strip_lines;
        burn(first);
        const int64_t n = std::min(first + strip_lines, line + count) - y;
        std::copy_n(m_strip.begin() + (y - first) * m_samples, n * m_samples, out + (y - line) * m_samples);
        y += n;
    }
}

/// Fills m_strip with the lines [first, first + strip_lines).
void ShapeBurner::burn(int64_t first) {
    if (first == m_burned) return;
    m_burned = -1;
    m_strip.assign(static_cast<size_t>(strip_lines * m_samples), m_none);
    OGREnvelope box;
    for (const double x : {-1.0, static_cast<double>(m_samples) + 1})
        for (const double y :
             {-1.0 + static_cast<double>(first), static_cast<double>(first + strip_lines) + 1})
            box.Merge(m_place[0] + m_place[1] * x + m_place[2] * y,
                      m_place[3] + m_place[4] * x + m_place[5] * y);
    std::vector<const Shape*> here;
    for (const Shape& s : m_shapes)
        if (s.envelope.Intersects(box)) here.push_back(&s);
    const auto all = [&](Strip& strip) {
        if (m_cover != Cover::inside) return burn_in_gdal(here, first, strip);
        for (const Shape* s : here)
            burn_inside(*s, first, strip);
    };
    all(m_strip);
    m_burned = first;
    const auto number = static_cast<size_t>(first / strip_lines);
    if (m_compared.size() <= number) m_compared.resize(number + 1);
    if (!m_several || m_compared[number] || here.size() < 2) return;
    m_compared[number] = true;
    std::reverse(here.begin(), here.end());
    Strip backwards(m_strip.size(), m_none);
    all(backwards);
    for (size_t i = 0; i < m_strip.size(); ++i)
        m_disputed += m_strip[i] != backwards[i] && m_strip[i] != m_none && backwards[i] != m_none;
}

void ShapeBurner::burn_in_gdal(const std::vector<const Shape*>& shapes, int64_t first, Strip& strip) const {
    if (shapes.empty()) return;
    std::vector<OGRGeometryH> geometries;
    std::vector<double> values;
    for (const Shape* s : shapes) {
        geometries.push_back(OGRGeometry::ToHandle(s->geometry.get()));
        values.push_back(s->value);
    }
    GeoTransform gt = m_place;
    gt[0] += gt[2] * static_cast<double>(first);
    gt[3] += gt[5] * static_cast<double>(first);
    GdalErrors errors;
    GDALDriver* memory = GetGDALDriverManager()->GetDriverByName("MEM");
    DatasetHandle target(memory ? memory->Create("", static_cast<int>(m_samples),
                                                 static_cast<int>(strip_lines), 0, GDT_UInt16, nullptr)
                                : nullptr);
    char pointer[64];
    pointer[CPLPrintPointer(pointer, strip.data(), sizeof pointer - 1)] = 0;
    CPLStringList band;
    band.SetNameValue("DATAPOINTER", pointer);
    if (!target || target->AddBand(GDT_UInt16, band.List()) != CE_None ||
        target->SetGeoTransform(gt.data()) != CE_None)
        throw Error("no memory raster to burn '" + m_path + "' into: " + errors.text());
    CPLStringList options;
    if (m_cover == Cover::touched) options.SetNameValue("ALL_TOUCHED", "TRUE");
    int number = 1;
    const CPLErr status = GDALRasterizeGeometries(
        GDALDataset::ToHandle(target.get()), 1, &number, static_cast<int>(geometries.size()),
        geometries.data(), nullptr, nullptr, values.data(), options.List(), nullptr, nullptr);
    target->FlushCache();
    if (status != CE_None) throw Error("'" + m_path + "' cannot be burned: " + errors.text());
}

void ShapeBurner::burn_inside(const Shape& shape, int64_t first, Strip& strip) const {
    std::vector<uint8_t> pixels;
    for (const Outline& outline : outlines_of(shape, m_inverse)) {
        const auto upper = static_cast<double>(first), lower = static_cast<double>(first + strip_lines);
        const auto top = static_cast<int64_t>(std::floor(std::clamp(outline.top, upper, lower))),
                   bottom = static_cast<int64_t>(std::ceil(std::clamp(outline.bottom, upper, lower)));
        if (bottom <= top) continue;
        Rows rows(outline, top, bottom - top, m_samples);
        for (int64_t row = top; row < bottom; ++row) {
            rows.mark(static_cast<size_t>(row - top), Of::whole, pixels);
            for (size_t s = 0; s < pixels.size(); ++s)
                if (pixels[s] != 0)
                    strip[static_cast<size_t>((row - first) * m_samples + rows.from()) + s] = shape.value;
        }
    }
}

int64_t ShapeBurner::without_pixel(int64_t lines) const {
    if (m_cover == Cover::touched) return 0;
    const Of of = m_cover == Cover::inside ? Of::whole : Of::centre;
    int64_t count = 0;
    std::vector<uint8_t> pixels;
    for (const Shape& shape : m_shapes) {
        const auto outlines = outlines_of(shape, m_inverse);
        const bool beside = std::any_of(outlines.begin(), outlines.end(), [&](const Outline& o) {
            return o.left < 0 || o.top < 0 || o.right > static_cast<double>(m_samples) ||
                   o.bottom > static_cast<double>(lines);
        });
        if (outlines.empty() || beside)
            continue; // features that are partly or entirely outside of the grid are not counted
        bool found = false;
        for (const Outline& o : outlines)
            for (int64_t row = static_cast<int64_t>(std::floor(o.top));
                 !found && static_cast<double>(row) < o.bottom; row += 16) {
                Rows rows(o, row, 16, m_samples);
                for (size_t k = 0; k < 16 && !found; ++k) {
                    rows.mark(k, of, pixels);
                    found = std::any_of(pixels.begin(), pixels.end(), [](uint8_t p) { return p != 0; });
                }
            }
        count += found ? 0 : 1;
    }
    return count;
}

void ShapeBurner::each_polygon(int64_t lines, const EachPolygon& visit) const {
    std::vector<uint8_t> marks;
    std::vector<int64_t> pixels;
    for (const Shape& shape : m_shapes) {
        if (shape.value == m_none) continue;
        for (const Outline& o : outlines_of(shape, m_inverse)) {
            pixels.clear();
            const auto within = [&](double y) {
                return static_cast<int64_t>(std::clamp(y, 0.0, static_cast<double>(lines)));
            };
            const int64_t end = within(std::ceil(o.bottom));
            for (int64_t first = within(std::floor(o.top)); first < end; first += strip_lines) {
                const int64_t count = std::min(strip_lines, end - first);
                Rows rows(o, first, count, m_samples);
                for (int64_t row = 0; row < count; ++row) {
                    rows.mark(static_cast<size_t>(row), Of::met, marks);
                    for (size_t s = 0; s < marks.size(); ++s)
                        if (marks[s] != 0)
                            pixels.push_back((first + row) * m_samples + rows.from() +
                                             static_cast<int64_t>(s));
                }
            }
            visit(shape.value, pixels);
        }
    }
}

} // namespace hsi::raster
