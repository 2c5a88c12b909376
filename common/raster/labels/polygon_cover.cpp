// SPDX-License-Identifier: MIT
#include "raster/labels/polygon_cover.h"

#include "core/error.h"
#include "raster/gdal_errors.h"

#include <gdal.h>
#include <ogr_api.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>

namespace hsi::raster {
namespace {

constexpr double rounding = 1e-9;  ///< fractions of a pixel that differ by less than this are equal
constexpr double shortfall = 1e-6; ///< a labelled pixel's fraction may be below the minimum by this amount
/// Smallest fraction of a pixel that counts as overlap, so that borders that were drawn twice do not count.
constexpr double overlap = 0.01;

struct DestroyGeometry {
    void operator()(OGRGeometryH geometry) const { OGR_G_DestroyGeometry(geometry); }
};
using Geometry = std::unique_ptr<std::remove_pointer_t<OGRGeometryH>, DestroyGeometry>;

/// Collects all polygons of a geometry in a multipolygon.
void gather_polygons(OGRGeometryH geometry, OGRGeometryH into) {
    const auto type = OGR_GT_Flatten(OGR_G_GetGeometryType(geometry));
    if (type == wkbPolygon) {
        if (OGR_G_IsEmpty(geometry) == FALSE) OGR_G_AddGeometry(into, geometry);
    } else if (OGR_GT_IsSubClassOf(type, wkbGeometryCollection) != FALSE) {
        for (int i = 0; i < OGR_G_GetGeometryCount(geometry); ++i)
            gather_polygons(OGR_G_GetGeometryRef(geometry, i), into);
    }
}

/// Returns the geometry without heights and without edges that cross, as GEOS requires for a union.
Geometry made_valid(OGRGeometryH geometry) {
    Geometry copy(OGR_G_Clone(geometry));
    OGR_G_FlattenTo2D(copy.get());
    if (OGR_G_IsValid(copy.get()) != FALSE) return copy;
    return Geometry(OGR_G_MakeValid(copy.get()));
}

/// Groups the polygons of a multipolygon that may overlap: polygons are in the same group if their envelopes
/// meet, directly or through other polygons. Uniting each group is much less work than uniting all polygons
/// together.
std::vector<std::vector<int>> neighbourhoods(OGRGeometryH polygons) {
    const int count = OGR_G_GetGeometryCount(polygons);
    std::vector<OGREnvelope> box(static_cast<size_t>(count));
    OGREnvelope all;
    for (int i = 0; i < count; ++i) {
        OGR_G_GetEnvelope(OGR_G_GetGeometryRef(polygons, i), &box[static_cast<size_t>(i)]);
        all.Merge(box[static_cast<size_t>(i)]);
    }
    // The sweep goes along the longer side of the extent, because fewer polygons are open at the same time.
    const bool east = all.MaxX - all.MinX >= all.MaxY - all.MinY;
    const auto begin = [&](size_t i) { return east ? box[i].MinX : box[i].MinY; };
    const auto end = [&](size_t i) { return east ? box[i].MaxX : box[i].MaxY; };
    std::vector<size_t> order(box.size()), parent(box.size()), open;
    std::iota(order.begin(), order.end(), size_t{0});
    std::iota(parent.begin(), parent.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return std::pair(begin(a), a) < std::pair(begin(b), b); });
    const auto root = [&](size_t i) {
        while (parent[i] != i)
            i = parent[i] = parent[parent[i]];
        return i;
    };
    for (const size_t i : order) {
        open.erase(std::remove_if(open.begin(), open.end(), [&](size_t j) { return end(j) < begin(i); }),
                   open.end());
        for (const size_t j : open)
            if (box[i].Intersects(box[j])) parent[std::max(root(i), root(j))] = std::min(root(i), root(j));
        open.push_back(i);
    }
    std::map<size_t, std::vector<int>> groups;
    for (size_t i = 0; i < box.size(); ++i)
        groups[root(i)].push_back(static_cast<int>(i));
    std::vector<std::vector<int>> list;
    for (auto& [first, members] : groups)
        list.push_back(std::move(members));
    return list;
}

/// Returns the mean of max(t - x, 0) along a segment on which x changes evenly from a to b.
double mean_beyond(double t, double a, double b) {
    if (t <= a) return 0;
    return t < b ? (t - a) * (t - a) / (2 * (b - a)) : t - (a + b) / 2;
}

} // namespace

PolygonCover::PolygonCover(const std::vector<Shape>& shapes, int64_t samples, int64_t lines,
                           const GeoTransform& place, double least, uint16_t none, std::string path)
    : m_samples(samples), m_lines(lines), m_least(least), m_none(none), m_path(std::move(path)) {
    GeoTransform forward = place;
    if (!GDALInvGeoTransform(forward.data(), m_inverse.data()))
        throw Error("'" + m_path + "' cannot be placed: the scene's geotransform cannot be inverted");
    if (!OGRGeometryFactory::haveGEOS())
        throw Error("fractions of pixels need GEOS, but this GDAL was built without it",
                    "Use a GDAL with GEOS, or -inside-only instead of -min-cover.");
    std::map<uint16_t, std::vector<const Shape*>> by_value;
    for (const Shape& shape : shapes)
        by_value[shape.value].push_back(&shape);
    if (const auto nothing = by_value.find(none); nothing != by_value.end()) add_class(none, nothing->second);
    for (const auto& [value, all] : by_value)
        if (value != none) add_class(value, all);
    m_counted.resize(static_cast<size_t>(lines), false);
}

void PolygonCover::add_class(uint16_t value, const std::vector<const Shape*>& shapes) {
    GdalErrors errors; // GEOS reports why a polygon is not valid
    const auto fail = [&] {
        throw Error("'" + m_path + "': the polygons of class " + std::to_string(value) +
                        " cannot be united: " + errors.text(),
                    "Repair them first, for example with ogr2ogr -makevalid.");
    };
    const Geometry all(OGR_G_CreateGeometry(wkbMultiPolygon));
    for (const Shape* shape : shapes) {
        const Geometry own(OGR_G_CreateGeometry(wkbMultiPolygon));
        gather_polygons(OGRGeometry::ToHandle(shape->geometry.get()), own.get());
        for (int i = 0; i < OGR_G_GetGeometryCount(own.get()); ++i) {
            const Geometry valid = made_valid(OGR_G_GetGeometryRef(own.get(), i));
            if (!valid) fail();
            gather_polygons(valid.get(), all.get());
        }
    }
    Class one;
    one.value = value;
    for (const auto& group : neighbourhoods(all.get())) {
        if (group.size() == 1) {
            add_polygon(OGR_G_GetGeometryRef(all.get(), group.front()), one.parts);
            continue;
        }
        const Geometry some(OGR_G_CreateGeometry(wkbMultiPolygon)),
            polygons(OGR_G_CreateGeometry(wkbMultiPolygon));
        for (const int i : group)
            OGR_G_AddGeometry(some.get(), OGR_G_GetGeometryRef(all.get(), i));
        const Geometry united(OGR_G_UnionCascaded(some.get()));
        if (!united) fail();
        gather_polygons(united.get(), polygons.get());
        for (int i = 0; i < OGR_G_GetGeometryCount(polygons.get()); ++i)
            add_polygon(OGR_G_GetGeometryRef(polygons.get(), i), one.parts);
    }
    if (!one.parts.empty()) m_classes.push_back(std::move(one));
}

void PolygonCover::add_polygon(OGRGeometryH polygon, std::vector<Part>& parts) const {
    Part part;
    for (int i = 0; i < OGR_G_GetGeometryCount(polygon); ++i)
        add_ring(OGR_G_GetGeometryRef(polygon, i), i > 0, part);
    if (part.edges.empty()) return;
    part.on_grid = part.left >= 0 && part.top >= 0 && part.right <= static_cast<double>(m_samples) &&
                   part.bottom <= static_cast<double>(m_lines);
    parts.push_back(std::move(part));
}

void PolygonCover::add_ring(OGRGeometryH ring, bool hole, Part& part) const {
    const int count = OGR_G_GetPointCount(ring);
    std::vector<std::pair<double, double>> points;
    // Limits coordinates (also NaN) to values that are far outside of every grid but still exact in double
    // precision.
    const auto counted_with = [](double v) { return snapped(std::fmin(std::fmax(v, -1e12), 1e12)); };
    for (int i = 0; i < count; ++i) {
        const double east = OGR_G_GetX(ring, i), north = OGR_G_GetY(ring, i);
        points.emplace_back(counted_with(m_inverse[0] + m_inverse[1] * east + m_inverse[2] * north),
                            counted_with(m_inverse[3] + m_inverse[4] * east + m_inverse[5] * north));
    }
    // Twice the signed area of the ring. It is negative if the inside is to the right of edges that lead
    // down.
    double twice = 0;
    for (size_t i = 0; i + 1 < points.size(); ++i) {
        const auto& [x0, y0] = points[i];
        const auto& [x1, y1] = points[i + 1];
        // Coordinates are relative to a corner of the ring, because large coordinates would lose digits.
        const auto& [cx, cy] = points.front();
        twice += (x0 - cx) * (y1 - cy) - (x1 - cx) * (y0 - cy);
    }
    const double right = (twice < 0) != hole ? 1 : -1;
    for (size_t i = 0; i < points.size(); ++i) {
        const auto& [x, y] = points[i];
        const bool first = part.edges.empty() && i == 0;
        part.left = first ? x : std::min(part.left, x);
        part.right = first ? x : std::max(part.right, x);
        part.top = first ? y : std::min(part.top, y);
        part.bottom = first ? y : std::max(part.bottom, y);
        if (i == 0) continue;
        const auto& [from_x, from_y] = points[i - 1];
        if (from_y < y) part.edges.push_back({from_x, from_y, x, y, right});
        if (from_y > y) part.edges.push_back({x, y, from_x, from_y, -right});
    }
}

/// Adds the area to the right of an edge to `sums`. Its values are differences between the covers of
/// neighbouring pixels of a line; window_of() sums them.
void PolygonCover::add_edge(const Edge& e, Window& sums) {
    const auto first = std::max(e.y0, static_cast<double>(sums.y)),
               last = std::min(e.y1, static_cast<double>(sums.y + sums.h));
    if (!(first < last)) return;
    const auto at = [&](double y) {
        return y <= e.y0 ? e.x0 : y >= e.y1 ? e.x1 : e.x0 + (y - e.y0) * ((e.x1 - e.x0) / (e.y1 - e.y0));
    };
    // The column is limited to one column outside of the window. All pixels of the window are to the right of
    // an edge that is left of the window.
    const auto column_of = [&](double x) {
        return static_cast<int64_t>(std::floor(
            std::clamp(x, static_cast<double>(sums.x) - 1, static_cast<double>(sums.x + sums.w) + 1)));
    };
    for (auto row = static_cast<int64_t>(std::floor(first)); static_cast<double>(row) < last; ++row) {
        const double top = std::max(e.y0, static_cast<double>(row)),
                     bottom = std::min(e.y1, static_cast<double>(row) + 1);
        double a = at(top), b = at(bottom);
        if (a > b) std::swap(a, b);
        const double height = e.sign * (bottom - top);
        const int64_t end = std::min(column_of(b) + 2, sums.x + sums.w);
        double before = 0; // cover of the pixel to the left
        for (int64_t column = std::max(column_of(a), sums.x); column < end; ++column) {
            const auto x = static_cast<double>(column);
            const double own = height * (mean_beyond(x + 1, a, b) - mean_beyond(x, a, b));
            sums.share[sums.at(column, row)] += own - before;
            before = own;
        }
    }
}

std::vector<const PolygonCover::Part*> PolygonCover::parts_in(const Class& one, int64_t line, int64_t count) {
    std::vector<const Part*> here;
    for (const Part& part : one.parts)
        if (part.bottom > static_cast<double>(line) && part.top < static_cast<double>(line + count))
            here.push_back(&part);
    return here;
}

PolygonCover::Window PolygonCover::window_of(const std::vector<const Part*>& parts, int64_t line,
                                             int64_t count) const {
    Window window;
    if (parts.empty()) return window;
    double left = parts.front()->left, right = left, top = parts.front()->top, bottom = top;
    for (const Part* part : parts) {
        left = std::min(left, part->left);
        right = std::max(right, part->right);
        top = std::min(top, part->top);
        bottom = std::max(bottom, part->bottom);
    }
    const auto within = [](double v, int64_t from, int64_t to) {
        return static_cast<int64_t>(std::clamp(v, static_cast<double>(from), static_cast<double>(to)));
    };
    window.x = within(std::floor(left), 0, m_samples);
    window.w = within(std::ceil(right), window.x, m_samples) - window.x;
    window.y = within(std::floor(top), line, line + count);
    window.h = within(std::ceil(bottom), window.y, line + count) - window.y;
    if (window.w == 0 || window.h == 0) return {};
    window.share.assign(static_cast<size_t>(window.w * window.h), 0.0);
    for (const Part* part : parts)
        for (const Edge& edge : part->edges)
            add_edge(edge, window);
    for (int64_t y = 0; y < window.h; ++y) {
        double sum = 0;
        for (int64_t x = 0; x < window.w; ++x) {
            double& share = window.share[static_cast<size_t>(y * window.w + x)];
            sum += share;
            share = sum < rounding ? 0.0 : sum > 1 - rounding ? 1.0 : sum;
        }
    }
    return window;
}

/// Returns one window per part if the parts are small, which saves the pixels between them. Otherwise returns
/// one window for all parts.
std::vector<PolygonCover::Window> PolygonCover::windows_of(const Class& one, int64_t line,
                                                           int64_t count) const {
    const auto here = parts_in(one, line, count);
    const auto area_of = [&](double left, double right, double top, double bottom) {
        const auto height = std::min(bottom, static_cast<double>(line + count)) -
                            std::max(top, static_cast<double>(line)),
                   width = std::min(right, static_cast<double>(m_samples)) - std::max(left, 0.0);
        return std::max(0.0, width + 2) * (height + 2);
    };
    double alone = 0;
    for (const Part* part : here)
        alone += area_of(part->left, part->right, part->top, part->bottom);
    std::vector<Window> windows;
    if (alone < area_of(0, static_cast<double>(m_samples), static_cast<double>(line),
                        static_cast<double>(line + count)))
        for (const Part* part : here)
            windows.push_back(window_of({part}, line, count));
    else
        windows.push_back(window_of(here, line, count));
    return windows;
}

void PolygonCover::read(int64_t line, int64_t count, uint16_t* out) {
    const auto pixels = static_cast<size_t>(count * m_samples);
    std::fill_n(out, pixels, m_none);
    // Fractions of each pixel that are covered by the best class so far, by all classes together, and by the
    // current class.
    std::vector<double> best(pixels, 0.0), sum(m_classes.size() > 1 ? pixels : 0), own(pixels, 0.0);
    const auto at = [&](int64_t x, int64_t y) { return static_cast<size_t>((y - line) * m_samples + x); };
    for (Class& one : m_classes) {
        const auto windows = windows_of(one, line, count);
        for (const Window& window : windows)
            window.each([&](int64_t x, int64_t y, double share) { own[at(x, y)] += share; });
        if (one.value != m_none) find_labelling_parts(one, own, line, count);
        for (const Window& window : windows)
            window.each([&](int64_t x, int64_t y, double /*of one part, perhaps*/) {
                const size_t i = at(x, y);
                // Set to 0, so that a pixel in several windows counts once.
                const double share = std::exchange(own[i], 0.0);
                if (!sum.empty()) sum[i] += share;
                if (share > best[i] + rounding) {
                    best[i] = share;
                    out[i] = one.value;
                }
            });
    }
    for (size_t i = 0; i < pixels; ++i)
        if (best[i] < m_least - shortfall) out[i] = m_none;
    if (sum.empty()) return;
    for (int64_t y = line; y < line + count; ++y) {
        if (m_counted[static_cast<size_t>(y)]) continue;
        m_counted[static_cast<size_t>(y)] = true;
        for (int64_t x = 0; x < m_samples; ++x)
            m_overlapping += out[at(x, y)] != m_none && sum[at(x, y)] > 1 + overlap;
    }
}

/// Finds the parts that label a pixel. `all` is the cover of each pixel by the whole class. A part labels a
/// pixel that it touches, even if the minimum fraction is reached only together with other parts.
void PolygonCover::find_labelling_parts(Class& one, const std::vector<double>& all, int64_t line,
                                        int64_t count) const {
    for (Part& part : one.parts) {
        if (part.labels || !part.on_grid) continue;
        if (!(part.bottom > static_cast<double>(line) && part.top < static_cast<double>(line + count)))
            continue;
        window_of({&part}, line, count).each([&](int64_t x, int64_t y, double) {
            part.labels =
                part.labels || all[static_cast<size_t>((y - line) * m_samples + x)] >= m_least - shortfall;
        });
    }
}

void PolygonCover::shares(int64_t line, int64_t count, uint16_t value, float* out) const {
    std::vector<double> own(static_cast<size_t>(count * m_samples), 0.0);
    for (const Class& one : m_classes)
        if (one.value == value)
            for (const Window& window : windows_of(one, line, count))
                window.each([&](int64_t x, int64_t y, double share) {
                    own[static_cast<size_t>((y - line) * m_samples + x)] += share;
                });
    std::transform(own.begin(), own.end(), out,
                   [](double share) { return static_cast<float>(std::min(share, 1.0)); });
}

std::vector<uint16_t> PolygonCover::values() const {
    std::vector<uint16_t> all;
    for (const Class& one : m_classes)
        if (one.value != m_none) all.push_back(one.value);
    return all;
}

int64_t PolygonCover::without_pixel() const {
    int64_t count = 0;
    for (const Class& one : m_classes)
        if (one.value != m_none)
            count += std::count_if(one.parts.begin(), one.parts.end(),
                                   [](const Part& part) { return part.on_grid && !part.labels; });
    return count;
}

} // namespace hsi::raster
