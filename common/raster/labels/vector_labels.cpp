// SPDX-License-Identifier: MIT
// Labels from a vector file: its layer, its class field and names, and the positions of its features on the
// grid.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/labels/labels_impl.h"
#include "raster/labels/point_table.h"
#include "raster/labels/polygon_cover.h"
#include "raster/labels/shape_burner.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>
#include <ogr_api.h>
#include <ogrsf_frmts.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

bool equal_nocase(const std::string& a, const std::string& b) { return EQUAL(a.c_str(), b.c_str()); }

std::string field_list(const OGRFeatureDefn& definition) {
    std::string text;
    for (int i = 0; i < definition.GetFieldCount(); ++i)
        text += (i ? ", " : "") + std::string(definition.GetFieldDefn(i)->GetNameRef());
    return text.empty() ? "none" : text;
}

int find_field(const OGRFeatureDefn& definition, const std::string& name) {
    for (int i = 0; i < definition.GetFieldCount(); ++i)
        if (equal_nocase(definition.GetFieldDefn(i)->GetNameRef(), name)) return i;
    return -1;
}

bool is_text(const OGRFieldDefn& f) { return f.GetType() == OFTString; }
bool is_number(const OGRFieldDefn& f) {
    return f.GetType() == OFTInteger || f.GetType() == OFTInteger64 || f.GetType() == OFTReal;
}

/// Returns the field of class names that belongs to a field of class numbers, as their names show: Level_1_ID
/// and Level_1, class and class_name. -1 if there is none.
int companion(const OGRFeatureDefn& definition, int numbers) {
    const std::string name = definition.GetFieldDefn(numbers)->GetNameRef();
    std::vector<std::string> wanted{name + "_name", name + "name"};
    for (const char* suffix : {"_id", "_code", "_nr", "_no", "_value", "id", "code"}) {
        const size_t n = std::string(suffix).size();
        if (name.size() > n && equal_nocase(name.substr(name.size() - n), suffix)) {
            wanted.push_back(name.substr(0, name.size() - n));
            wanted.push_back(name.substr(0, name.size() - n) + "_name");
        }
    }
    for (const auto& w : wanted)
        if (const int i = find_field(definition, w); i >= 0 && is_text(*definition.GetFieldDefn(i))) return i;
    return -1;
}

int number_field(const OGRFeatureDefn& definition, const char* name) {
    const int i = find_field(definition, name);
    return i >= 0 && is_number(*definition.GetFieldDefn(i)) ? i : -1;
}

/// Returns true if the features have the fields sample and line, which points written by this suite have.
bool has_pixel_fields(const OGRFeatureDefn& definition) {
    return number_field(definition, "sample") >= 0 && number_field(definition, "line") >= 0;
}

/// Converts a geometry to a geometry that GDAL can burn. GDAL silently skips curves and surfaces.
std::unique_ptr<OGRGeometry> burnable(std::unique_ptr<OGRGeometry> geometry) {
    if (geometry->hasCurveGeometry()) geometry.reset(geometry->getLinearGeometry());
    const auto type = wkbFlatten(geometry->getGeometryType());
    if (OGR_GT_IsSubClassOf(type, wkbPolyhedralSurface) || type == wkbTriangle)
        geometry.reset(OGRGeometryFactory::forceToMultiPolygon(geometry.release()));
    return geometry;
}

/// Calls of_point or of_line for every point, line and ring of a geometry that GDAL can burn.
template <class OfPoint, class OfLine>
void for_each_part(OGRGeometry& geometry, const OfPoint& of_point, const OfLine& of_line) {
    const auto type = wkbFlatten(geometry.getGeometryType());
    if (type == wkbPoint) {
        of_point(*geometry.toPoint());
    } else if (OGR_GT_IsSubClassOf(type, wkbLineString)) {
        of_line(*geometry.toLineString());
    } else if (type == wkbPolygon) {
        for (OGRLinearRing* const ring : *geometry.toPolygon())
            of_line(*ring);
    } else if (OGR_GT_IsSubClassOf(type, wkbGeometryCollection)) {
        for (OGRGeometry* const part : *geometry.toGeometryCollection())
            for_each_part(*part, of_point, of_line);
    }
}

/// Moves a geometry that GDAL can burn by `by` along the first axis.
void move_along(OGRGeometry& geometry, double by) {
    for_each_part(
        geometry, [&](OGRPoint& point) { point.setX(point.getX() + by); },
        [&](OGRLineString& line) {
            for (int i = 0; i < line.getNumPoints(); ++i)
                line.setPoint(i, line.getX(i) + by, line.getY(i));
        });
}

/// Adds points to edges before reprojection. Edges are straight in the SRS of their features, but curved in
/// another SRS. For example, a parallel of six degrees at latitude 45 deviates by four kilometres from the
/// straight line between its ends in UTM. Points are added until the straight edges between them deviate by
/// at most a tenth of a pixel.
class BentEdges {
  public:
    /// `pixel`: the shorter side of a pixel, in the target SRS of `way`.
    BentEdges(OGRCoordinateTransformation& way, double pixel) : m_way(way), m_pixel(pixel) {}

    void add_points(OGRGeometry& geometry) {
        // Points that cannot be transformed are reported when the feature itself is transformed.
        const GdalErrors quiet;
        geometry.flattenTo2D();
        for_each_part(
            geometry, [](OGRPoint&) {}, [&](OGRLineString& line) { add_points(line); });
    }

  private:
    struct Place {
        double x = 0, y = 0;
    };

    void add_points(OGRLineString& line) {
        m_found.clear();
        for (int i = 0; i < line.getNumPoints(); ++i) {
            const Place to{line.getX(i), line.getY(i)}, there = turned(to);
            if (i > 0) divide(m_last, m_last_there, to, there, 0);
            m_found.push_back(to);
            m_last = to;
            m_last_there = there;
        }
        if (m_found.size() == static_cast<size_t>(line.getNumPoints())) return;
        line.setNumPoints(static_cast<int>(m_found.size()), FALSE);
        for (size_t i = 0; i < m_found.size(); ++i)
            line.setPoint(static_cast<int>(i), m_found[i].x, m_found[i].y);
    }

    Place turned(Place p) const {
        if (!m_way.Transform(1, &p.x, &p.y)) p.x = p.y = HUGE_VAL;
        return p;
    }

    void divide(const Place& a, const Place& a_there, const Place& b, const Place& b_there, int depth) {
        constexpr int most = 12;   // maximum number of halvings of an edge
        constexpr double few = 16; // in pixels; shorter edges are treated as straight
        const double length = std::hypot(b_there.x - a_there.x, b_there.y - a_there.y);
        if (depth == most || !std::isfinite(length) || length < few * m_pixel) return;
        const auto between = [](const Place& p, const Place& q, double t) {
            return Place{p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)};
        };
        const auto is_off = [&](const Place& there, double t) {
            constexpr double much = 0.1; // in pixels
            const Place straight = between(a_there, b_there, t);
            return std::hypot(there.x - straight.x, there.y - straight.y) > much * m_pixel;
        };
        const Place middle = between(a, b, 0.5), there = turned(middle);
        if (!std::isfinite(there.x + there.y)) return;
        // An edge that is curved to both sides may meet the straight line in its middle, so the quarters are
        // also compared.
        if (!is_off(there, 0.5) && !is_off(turned(between(a, b, 0.25)), 0.25) &&
            !is_off(turned(between(a, b, 0.75)), 0.75))
            return;
        divide(a, a_there, middle, there, depth + 1);
        m_found.push_back(middle);
        divide(middle, there, b, b_there, depth + 1);
    }

    OGRCoordinateTransformation& m_way;
    const double m_pixel;
    std::vector<Place> m_found;
    Place m_last, m_last_there;
};

/// A feature as read from the file, before it is decided whether 0 is a class.
struct Found {
    std::unique_ptr<OGRGeometry> geometry;
    bool by_fields = false; ///< the feature is placed by its fields sample and line, and has no geometry yet
    double sample = 0, line = 0;
    double number = 0;      ///< class number of the feature, or its value
    std::string text, name; ///< class as text, and class name
    std::string group;      ///< value of LabelOptions::group_field
};

/// The placement of features on the grid.
enum class Placing {
    map,    ///< by coordinates in an SRS
    pixels, ///< by coordinates that are sample and line
    fields  ///< points by their fields sample and line
};

/// Returns true if GDAL has assumed the SRS. Readers of GeoJSON treat every position as degrees on WGS 84,
/// but only files with "crs" state their SRS.
bool srs_is_a_guess(GDALDataset& dataset, const std::string& path) {
    const char* const driver = dataset.GetDriverName();
    if (!STARTS_WITH_CI(driver, "GeoJSON") && !EQUAL(driver, "TopoJSON")) return false;
    std::string text = path; // GDAL also accepts the text of a GeoJSON document as a name
    if (is_regular_file(path)) text = beginning_of_file(path, size_t{1} << 16);
    return text.find("\"crs\"") == std::string::npos;
}

bool is_point(const OGRGeometry& geometry) { return wkbFlatten(geometry.getGeometryType()) == wkbPoint; }

bool has_area(const OGRGeometry& geometry) {
    return OGR_G_GetDimension(OGRGeometry::ToHandle(const_cast<OGRGeometry*>(&geometry))) == 2;
}

/// Returns the number for "12", "+7" and "3.0". A text with more than five digits is a code, not a number.
std::optional<double> whole_number(std::string text) {
    if (const size_t point = text.find('.');
        point != std::string::npos && text.find_first_not_of('0', point + 1) == std::string::npos)
        text.erase(point);
    const size_t digits = text.find_first_of("+-") == 0 ? 1 : 0;
    if (text.size() <= digits || text.size() > digits + 5 ||
        text.find_first_not_of("0123456789", digits) != std::string::npos)
        return {};
    return CPLAtof(text.c_str());
}

class VectorLabels final : public LabelSource {
  public:
    VectorLabels(DatasetHandle dataset, const LabelOptions& options, const Grid* grid,
                 std::vector<std::string> notes) {
        m_path = options.path;
        m_notes = std::move(notes);
        if (!grid)
            throw Error("'" + m_path + "' is a vector file and has no pixels",
                        "Give a raster with the pixel grid with -like.");
        m_grid = *grid;
        OGRLayer& layer = choose_layer(*dataset, options);
        if (layer.GetLayerDefn()->GetGeomFieldCount() > 1)
            m_notes.push_back("'" + m_path + "': features have several geometries; only the first, " +
                              layer.GetLayerDefn()->GetGeomFieldDefn(0)->GetNameRef() + ", is used");
        choose_fields(*layer.GetLayerDefn(), options);
        choose_placing(layer, options, srs_is_a_guess(*dataset, m_path));
        std::vector<Found> found = read_features(layer, options);
        m_description += ", " + counted(found.size(), "feature");
        place(found, options.pixel_coordinates);
        if (options.values) {
            find_pixels(found, options);
            return;
        }
        if (m_text_classes) read_texts(found);
        decide_zero(options.zero, found);
        burn_into(found, options);
    }

    std::vector<ValueSample> values() override { return std::move(m_samples); }
    bool of_features() const override { return true; }

    void read_lines(int64_t line, int64_t count, uint16_t* out) override {
        m_min_cover ? m_cover->read(line, count, out) : m_burner->read(line, count, out);
    }

    std::vector<std::string> reading_notes() const override {
        const std::string file = "'" + m_path + "': ";
        std::vector<std::string> notes;
        if (!m_min_cover) {
            if (const int64_t n = m_burner->disputed(); n > 0)
                notes.push_back(file + "at least " + counted(n, "pixel has", "pixels have") +
                                " features of several classes; the last feature sets the class");
            return notes;
        }
        if (const int64_t n = m_cover->overlapping(); n > 0)
            notes.push_back(
                file + counted(n, "labelled pixel has", "labelled pixels have") +
                " overlapping polygons of several classes; the class with the largest share is used");
        if (const int64_t n = m_cover->without_pixel(); n > 0)
            notes.push_back(
                file + counted(n, "polygon or group of polygons", "polygons or groups of polygons") +
                worded(n, " covers", " cover") + " less than " + CPLSPrintf("%.9g", *m_min_cover) +
                " of every pixel" + worded(n, " and labels", " and label") +
                " no pixel (a smaller -min-cover labels more)");
        return notes;
    }

    std::vector<uint16_t> polygon_classes() const override { return m_cover->values(); }
    void shares(int64_t line, int64_t count, uint16_t value, float* out) override {
        m_cover->shares(line, count, value, out);
    }
    void each_polygon(const EachPolygon& visit) const override {
        m_burner->each_polygon(m_grid.lines, visit);
    }
    int64_t outside() const override { return m_outside; }
    int64_t too_small() const override { return m_min_cover ? m_cover->without_pixel() : m_too_small; }

  private:
    OGRLayer& choose_layer(GDALDataset& dataset, const LabelOptions& options) {
        if (!options.layer.empty()) {
            OGRLayer* layer = dataset.GetLayerByName(options.layer.c_str());
            if (layer) return *layer;
            std::string names;
            for (int i = 0; i < dataset.GetLayerCount(); ++i)
                names += (i ? ", " : "") + std::string(dataset.GetLayer(i)->GetName());
            throw Error("'" + m_path + "' has no layer '" + options.layer + "'",
                        "Its layers: " + names + ".");
        }
        OGRLayer *first = nullptr, *chosen = nullptr;
        std::string others;
        for (int i = 0; i < dataset.GetLayerCount(); ++i) {
            OGRLayer* layer = dataset.GetLayer(i);
            if (layer->GetGeomType() == wkbNone && !has_pixel_fields(*layer->GetLayerDefn())) continue;
            if (!first) first = layer;
            if (!options.mask && !options.field.empty() &&
                find_field(*layer->GetLayerDefn(), options.field) < 0)
                continue;
            if (!chosen)
                chosen = layer;
            else
                others += (others.empty() ? "" : ", ") + std::string(layer->GetName());
        }
        if (!first) throw Error("'" + m_path + "' has no layer with geometries");
        if (!others.empty())
            m_notes.push_back("'" + m_path + "': the layer " + chosen->GetName() +
                              " is used; other layers: " + others);
        // If no layer has the field, class_field() reports the missing field.
        return chosen ? *chosen : *first;
    }

    /// Refuses fields of dates, lists and bytes. They are not classes, although GDAL converts them to texts
    /// and to the number 0.
    void check_holds_classes(const OGRFeatureDefn& definition, int field, const std::string& advice) const {
        const OGRFieldDefn& f = *definition.GetFieldDefn(field);
        if (!is_text(f) && !is_number(f))
            throw Error("'" + m_path + "': field '" + f.GetNameRef() + "' does not have numbers or names (" +
                            OGRFieldDefn::GetFieldTypeName(f.GetType()) + ")",
                        advice);
    }

    int class_field(const OGRFeatureDefn& definition, const LabelOptions& options) const {
        const std::string advice =
            "Name the class field with -field. Fields: " + field_list(definition) + ".";
        if (!options.field.empty()) {
            const int i = find_field(definition, options.field);
            if (i < 0) throw Error("'" + m_path + "' has no field '" + options.field + "'", advice);
            check_holds_classes(definition, i, advice);
            return i;
        }
        int called = -1;
        for (const char* name : {"class", "classid", "class_id", "class_name", "classname", "label"})
            if (called < 0) called = find_field(definition, name);
        for (int i = 0; i < definition.GetFieldCount() && called < 0; ++i)
            if (names_class_column(definition.GetFieldDefn(i)->GetNameRef())) called = i;
        if (called >= 0) {
            check_holds_classes(definition, called, advice);
            return called;
        }
        std::vector<int> fitting;
        for (int i = 0; i < definition.GetFieldCount(); ++i) {
            const auto& f = *definition.GetFieldDefn(i);
            if (i == m_sample_field || i == m_line_field) continue;
            if (is_text(f) || f.GetType() == OFTInteger || f.GetType() == OFTInteger64) fitting.push_back(i);
        }
        if (fitting.size() == 1) return fitting.front();
        throw Error("'" + m_path + "': the field with the classes is not known", advice);
    }

    /// Selects the fields of classes, of class names and of pixel positions.
    void choose_fields(const OGRFeatureDefn& definition, const LabelOptions& options) {
        if (has_pixel_fields(definition)) {
            m_sample_field = number_field(definition, "sample");
            m_line_field = number_field(definition, "line");
        }
        if (options.mask) return;
        if (options.values) return choose_value_field(definition, options);
        m_field = class_field(definition, options);
        m_text_classes = is_text(*definition.GetFieldDefn(m_field));
        m_value_name = definition.GetFieldDefn(m_field)->GetNameRef();
        if (!options.name_field.empty()) {
            m_name_field = find_field(definition, options.name_field);
            if (m_name_field < 0)
                throw Error("'" + m_path + "' has no field '" + options.name_field + "'",
                            "Fields: " + field_list(definition) + ".");
            check_holds_classes(definition, m_name_field,
                                "Name a field of texts or numbers. Fields: " + field_list(definition) + ".");
        } else if (!m_text_classes) {
            m_name_field = companion(definition, m_field);
        }
    }

    /// Chooses the field of numbers, and the field of groups.
    void choose_value_field(const OGRFeatureDefn& definition, const LabelOptions& options) {
        const std::string advice = "Fields: " + field_list(definition) + ".";
        const auto wanted = [&](const std::string& name) {
            const int i = find_field(definition, name);
            if (i < 0) throw Error("'" + m_path + "' has no field '" + name + "'", advice);
            return i;
        };
        if (!options.group_field.empty()) m_group_field = wanted(options.group_field);
        if (!options.field.empty()) m_field = wanted(options.field);
        std::vector<int> numbers;
        for (int i = 0; i < definition.GetFieldCount(); ++i)
            if (is_number(*definition.GetFieldDefn(i)) && i != m_sample_field && i != m_line_field &&
                i != m_group_field)
                numbers.push_back(i);
        if (m_field < 0 && numbers.size() != 1)
            throw Error("'" + m_path + "' has " +
                            (numbers.empty() ? "no numeric field" : "several numeric fields"),
                        (numbers.empty() ? "" : "Choose one with -field NAME. ") + advice);
        if (m_field < 0) m_field = numbers.front();
        if (!is_number(*definition.GetFieldDefn(m_field)))
            throw Error("'" + m_path + "': field '" + options.field + "' does not have numbers", advice);
        m_value_name = definition.GetFieldDefn(m_field)->GetNameRef();
    }

    void choose_placing(OGRLayer& layer, const LabelOptions& options, bool guessed) {
        m_description = "vector";
        const std::string own = wkt_of(layer.GetSpatialRef());
        if (options.pixel_coordinates) {
            m_placing = Placing::pixels;
        } else if (!m_grid.geotransform) {
            // Features with a position on Earth cannot be placed on a grid without a position on Earth. A
            // point may also have the fields sample and line, which place it.
            if (!own.empty() || m_grid.placed_otherwise)
                m_placing = m_line_field >= 0 ? Placing::fields : Placing::map;
            if (m_placing == Placing::map && !m_grid.placed_otherwise && (own.empty() || guessed))
                m_placing = Placing::pixels;
            if (m_placing == Placing::map) throw no_place();
        } else if (own.empty() || m_grid.srs_wkt.empty()) {
            if (own.empty() != m_grid.srs_wkt.empty())
                m_srs_note = (own.empty() ? "'" + m_path + "'" : m_grid.owner) +
                             " has no SRS: the SRS of the other file is assumed";
        } else if (!same_srs(own, m_grid.srs_wkt)) {
            m_description = "vector, reprojected";
            m_in_degrees = counts_degrees(own);
            m_transformation = transformation(own, m_grid.srs_wkt, m_path, true);
        }
        // If one SRS is unknown, the other SRS is assumed for both.
        const std::string& srs = m_grid.srs_wkt.empty() ? own : m_grid.srs_wkt;
        if (m_placing == Placing::map && m_grid.geotransform && counts_degrees(srs)) {
            const GeoTransform& gt = *m_grid.geotransform;
            m_middle = gt[0] + gt[1] * static_cast<double>(m_grid.samples) / 2 +
                       gt[2] * static_cast<double>(m_grid.lines) / 2;
        }
    }

    Error no_place() const {
        return Error(m_grid.owner + " has no " + (m_grid.placed_otherwise ? "geotransform" : "georeference") +
                         ": the features of '" + m_path + "' cannot be located in it",
                     std::string(m_grid.placed_otherwise
                                     ? "Warp it to a grid (gdalwarp, gdal_hsi_orthorectify)"
                                     : "Georeference it (gdal_translate -a_srs -a_ullr)") +
                         ", give labels as a raster, or use -pixel-coordinates if the features' coordinates "
                         "are samples and lines.");
    }

    std::vector<Found> read_features(OGRLayer& layer, const LabelOptions& options) {
        std::vector<Found> all;
        int64_t without_class = 0, without_geometry = 0, without_area = 0, not_placed = 0;
        std::optional<OGREnvelope> unplaced; // the extent of the first unplaced feature
        GdalErrors errors;
        layer.ResetReading();
        while (const std::unique_ptr<OGRFeature> feature{layer.GetNextFeature()}) {
            Found one;
            if (!read_class(*feature, one)) {
                ++without_class;
                continue;
            }
            one.geometry.reset(feature->StealGeometry());
            if (one.geometry && one.geometry->IsEmpty()) one.geometry.reset();
            if (one.geometry && m_placing == Placing::fields && !is_point(*one.geometry)) throw no_place();
            if (!one.geometry || m_placing == Placing::fields) read_pixel(*feature, one);
            if (!one.geometry && !one.by_fields) {
                ++without_geometry;
                continue;
            }
            if (one.geometry) one.geometry = burnable(std::move(one.geometry));
            if ((options.inside_only || options.min_cover) && (one.by_fields || !has_area(*one.geometry))) {
                ++without_area;
                continue;
            }
            OGREnvelope box;
            if (one.geometry) one.geometry->getEnvelope(&box);
            const OGREnvelope own = box;
            const auto is_not_placed = [&] {
                if (not_placed++ == 0) unplaced = own;
            };
            if (one.geometry && m_transformation) {
                const GeoTransform& gt = *m_grid.geotransform;
                BentEdges(*m_transformation, std::min(std::hypot(gt[1], gt[4]), std::hypot(gt[2], gt[5])))
                    .add_points(*one.geometry);
            }
            if (one.geometry && m_transformation &&
                one.geometry->transform(m_transformation.get()) != OGRERR_NONE) {
                is_not_placed();
                continue;
            }
            if (one.geometry) one.geometry->getEnvelope(&box);
            // The scene or the features may have longitudes from 0 to 360.
            if (one.geometry && m_middle && std::isfinite(box.MinX + box.MaxX)) {
                const double turns = std::round((*m_middle - (box.MinX + box.MaxX) / 2) / full_turn);
                if (turns != 0) {
                    move_along(*one.geometry, turns * full_turn);
                    one.geometry->getEnvelope(&box);
                }
            }
            if (!std::isfinite(box.MinX + box.MaxX + box.MinY + box.MaxY) && one.geometry) {
                is_not_placed();
                continue;
            }
            all.push_back(std::move(one));
        }
        if (errors.any() && not_placed == 0) throw Error("'" + m_path + "' cannot be read: " + errors.text());
        const auto left_out = [&](int64_t n, const char* one, const char* many) {
            if (n) m_notes.push_back("'" + m_path + "': " + counted(n, one, many) + " left out");
        };
        left_out(without_class,
                 options.values ? "feature has no value and is" : "feature has no class and is",
                 options.values ? "features have no value and are" : "features have no class and are");
        left_out(without_geometry, "feature has no geometry and is", "features have no geometry and are");
        left_out(without_area,
                 options.min_cover ? "feature has no area and covers no pixel, and is"
                                   : "feature has no area and contains no pixel, and is",
                 options.min_cover ? "features have no area and cover no pixel, and are"
                                   : "features have no area and contain no pixel, and are");
        left_out(not_placed, "feature cannot be reprojected and is",
                 "features cannot be reprojected and are");
        if (all.empty() && unplaced)
            throw Error(
                "'" + m_path + "': " + counted(not_placed, "feature") + worded(not_placed, " lies", " lie") +
                    " outside its SRS: (" + CPLSPrintf("%.9g, %.9g", unplaced->MinX, unplaced->MinY) +
                    ") is not " + (m_in_degrees ? "a longitude and latitude" : "a valid position") +
                    ", so no feature can be used",
                std::string(m_in_degrees ? "Coordinates of GeoJSON without \"crs\" are degrees. " : "") +
                    "Set the SRS of its coordinates: ogr2ogr -a_srs EPSG:CODE "
                    "out.gpkg " +
                    m_path + ".");
        if (all.empty())
            throw Error("'" + m_path + "' has no feature that can be used",
                        "Layer: " + std::string(layer.GetName()) +
                            "; fields: " + field_list(*layer.GetLayerDefn()) + ".");
        return all;
    }

    /// Returns false if the feature has no class.
    bool read_class(OGRFeature& feature, Found& one) const {
        if (m_field < 0) { // the features are a mask
            one.number = 1;
            return true;
        }
        if (!feature.IsFieldSetAndNotNull(m_field)) return false;
        if (m_text_classes) {
            one.text = clean_name(feature.GetFieldAsString(m_field));
            const OGRFieldDefn& f = *feature.GetFieldDefnRef(m_field);
            if (f.GetSubType() == OFSTJSON && (one.text.rfind('[', 0) == 0 || one.text.rfind('{', 0) == 0))
                throw Error("'" + m_path + "': field '" + f.GetNameRef() +
                                "' has lists or objects, such as '" + one.text.substr(0, 40) + "'",
                            "Give each feature one class: a number or a name.");
            return !one.text.empty();
        }
        one.number = feature.GetFieldAsDouble(m_field);
        if (m_group_field >= 0 && feature.IsFieldSetAndNotNull(m_group_field))
            one.group = feature.GetFieldAsString(m_group_field);
        if (m_name_field >= 0 && feature.IsFieldSetAndNotNull(m_name_field))
            one.name = clean_name(feature.GetFieldAsString(m_name_field));
        return !std::isnan(one.number);
    }

    /// Places a point by its fields sample and line, if they are set.
    void read_pixel(OGRFeature& feature, Found& one) const {
        if (m_line_field < 0 || !feature.IsFieldSetAndNotNull(m_sample_field) ||
            !feature.IsFieldSetAndNotNull(m_line_field))
            return;
        one.sample = std::floor(feature.GetFieldAsDouble(m_sample_field));
        one.line = std::floor(feature.GetFieldAsDouble(m_line_field));
        one.by_fields = std::isfinite(one.sample) && std::isfinite(one.line);
        if (one.by_fields) one.geometry.reset();
    }

    /// Determines the geotransform of the features' coordinates, and counts the features outside of the grid.
    /// Line numbers of pixel coordinates may grow downwards or, negative, upwards.
    void place(std::vector<Found>& found, bool asked) {
        m_place = m_grid.geotransform.value_or(GeoTransform{0, 1, 0, 0, 0, 1});
        if (m_placing == Placing::pixels) {
            m_place = {0, 1, 0, 0, 0, 1};
            int64_t down = 0, up = 0;
            for (const Found& one : found) {
                if (!one.geometry) continue;
                OGREnvelope box;
                one.geometry->getEnvelope(&box);
                const double y = (box.MinY + box.MaxY) / 2;
                down += y >= 0 && y < static_cast<double>(m_grid.lines);
                up += y < 0 && -y <= static_cast<double>(m_grid.lines);
            }
            if (up > down) m_place[5] = -1;
            m_description += ", pixel coordinates";
            if (!asked && (up > 0 || down > 0))
                m_coordinates_note = "'" + m_path + "': its coordinates are read as samples and lines of " +
                                     m_grid.owner + ", " +
                                     (up > down ? "with negative lines, as in QGIS"
                                                : "with lines counted downwards from the upper left corner");
        }
        place_by_fields(found);
        const OGREnvelope grid = extent();
        const auto beside = std::count_if(found.begin(), found.end(), [&](const Found& one) {
            OGREnvelope box;
            one.geometry->getEnvelope(&box);
            return !grid.Intersects(box);
        });
        if (m_placing == Placing::map) {
            m_outside = beside - m_beside_by_fields;
            return;
        }
        if (beside > 0)
            m_notes.push_back("'" + m_path + "': " + std::to_string(beside) + " of " +
                              counted(found.size(), "feature") + worded(beside, " lies", " lie") +
                              " outside " + m_grid.owner + " by samples and lines");
    }

    /// Returns the extent of the grid in the coordinates of the features.
    OGREnvelope extent() const {
        OGREnvelope box;
        for (const double x : {0.0, static_cast<double>(m_grid.samples)})
            for (const double y : {0.0, static_cast<double>(m_grid.lines)})
                box.Merge(m_place[0] + m_place[1] * x + m_place[2] * y,
                          m_place[3] + m_place[4] * x + m_place[5] * y);
        return box;
    }

    void place_by_fields(std::vector<Found>& found) {
        int64_t by_fields = 0, beside = 0;
        for (Found& one : found) {
            if (!one.by_fields) {
                if (!m_srs_note.empty()) m_notes.push_back(std::exchange(m_srs_note, {}));
                continue;
            }
            ++by_fields;
            beside += !(one.sample >= 0 && one.sample < static_cast<double>(m_grid.samples) &&
                        one.line >= 0 && one.line < static_cast<double>(m_grid.lines));
            const double x = one.sample + 0.5, y = one.line + 0.5;
            // Uses GDAL's C functions for the reason in vector_sink.cpp.
            OGRGeometryH const point = OGR_G_CreateGeometry(wkbPoint);
            OGR_G_SetPoint_2D(point, 0, m_place[0] + m_place[1] * x + m_place[2] * y,
                              m_place[3] + m_place[4] * x + m_place[5] * y);
            one.geometry.reset(OGRGeometry::FromHandle(point));
        }
        if (by_fields == 0) return;
        m_beside_by_fields = beside;
        m_description += ", placed by sample and line";
        // For the other placings, place() counts all features outside of the grid.
        if (beside > 0 && m_placing == Placing::map)
            m_notes.push_back("'" + m_path + "': " + std::to_string(beside) + " of " +
                              counted(by_fields, "point") + worded(beside, " lies", " lie") + " outside " +
                              m_grid.owner + " by samples and lines");
        if (m_placing == Placing::fields)
            m_coordinates_note = "'" + m_path + "': " + counted(by_fields, "point is", "points are") +
                                 " located by the fields sample and line, since " + m_grid.owner +
                                 " has no geotransform";
    }

    /// Makes class numbers from texts: the numbers themselves if all texts are numbers, otherwise 1, 2 ... in
    /// alphabetical order of the texts.
    void read_texts(std::vector<Found>& found) {
        std::map<std::string, int> value;
        size_t numbers = 0;
        for (const Found& one : found)
            numbers += whole_number(one.text).has_value();
        if (numbers == found.size()) {
            for (Found& one : found)
                one.number = *whole_number(one.text);
            return;
        }
        if (numbers > 0)
            m_notes.push_back("'" + m_path + "': " + std::to_string(numbers) + " of " +
                              counted(found.size(), "class text") +
                              " are numbers and the others are not: all are read as names and numbered in "
                              "alphabetical order");
        for (const Found& one : found)
            value[one.text] = 0;
        if (value.size() > static_cast<size_t>(max_class))
            throw Error("'" + m_path + "': " + std::to_string(value.size()) +
                        " different class names are too many");
        int next = 0;
        for (auto& [name, v] : value)
            v = ++next;
        for (Found& one : found) {
            one.number = value[one.text];
            one.name = one.text;
        }
    }

    /// Decides whether 0 is a class. Someone drew the features of class 0 on purpose, so 0 is a class unless
    /// all of them are called "Unclassified" or similar.
    void decide_zero(ZeroMeans means, const std::vector<Found>& found) {
        constexpr uint16_t beyond = max_class;
        if (m_field < 0) return;
        if (means == ZeroMeans::a_class) m_none = beyond;
        if (means != ZeroMeans::what_is_plain) return;
        int64_t zeros = 0, named = 0, nothing = 0;
        std::string word;
        for (const Found& one : found) {
            if (one.number != 0) continue;
            ++zeros;
            const bool is_name = names_a_class(one.name);
            named += is_name;
            // Names that are numbers do not decide whether 0 is a class.
            if (!is_name && one.name.find_first_not_of("0123456789") != std::string::npos) {
                ++nothing;
                word = one.name;
            }
        }
        if (zeros == 0) return;
        if (nothing == zeros) {
            m_notes.push_back(
                "'" + m_path + "': " + counted(zeros, "feature of class 0 is", "features of class 0 are") +
                " called '" + word + "' and read as 'no label'; if 0 is a class, use -zero class");
            return;
        }
        m_none = beyond;
        if (named == 0)
            m_notes.push_back("'" + m_path + "': 0 is read as a class, since " +
                              counted(zeros, "feature has", "features have") +
                              " it; if it means 'no label', use -zero none");
    }

    void burn_into(std::vector<Found>& found, const LabelOptions& options) {
        std::vector<Shape> shapes;
        std::map<int, std::map<std::string, int64_t>> names;
        int64_t negative = 0;
        for (Found& one : found) {
            Shape shape;
            // A feature with the value "no label" also replaces earlier features.
            shape.value = class_of(one.number, m_none, m_path);
            if (one.number < 0) {
                ++negative;
                m_least = std::min(m_least, one.number);
            }
            if (shape.value != m_none) m_known.insert(shape.value);
            if (shape.value != m_none && !one.name.empty()) ++names[shape.value][one.name];
            shape.geometry = std::move(one.geometry);
            shape.geometry->getEnvelope(&shape.envelope);
            shapes.push_back(std::move(shape));
        }
        if (negative > 0)
            m_notes.push_back(
                negative_note(m_path, counted(negative, "feature has", "features have"), m_least));
        name_classes(names);
        m_min_cover = options.min_cover;
        if (m_min_cover || options.shares) {
            m_cover = std::make_unique<PolygonCover>(shapes, m_grid.samples, m_grid.lines, m_place,
                                                     m_min_cover.value_or(1), m_none, m_path);
            if (m_cover->values().empty())
                throw Error("'" + m_path + "' has no polygon with a class, so no pixel is covered",
                            "Points and lines have no area: leave out -min-cover and -cover.");
        }
        m_burner = std::make_unique<ShapeBurner>(std::move(shapes), m_grid.samples, m_place,
                                                 options.inside_only   ? Cover::inside
                                                 : options.all_touched ? Cover::touched
                                                                       : Cover::centres,
                                                 m_none, m_path);
        if (m_min_cover) return; // features that label no pixel are only known after all lines are read
        m_too_small = m_burner->without_pixel(m_grid.lines);
        if (const int64_t n = m_too_small; n > 0)
            m_notes.push_back("'" + m_path + "': " +
                              (options.inside_only ? counted(n, "feature contains no whole pixel and labels",
                                                             "features contain no whole pixel and label")
                                                   : counted(n, "feature covers no pixel centre and labels",
                                                             "features cover no pixel centre and label")) +
                              " no pixel" +
                              (options.inside_only ? "" : " (-all-touched labels every touched pixel)"));
    }

    /// Burns each feature separately, into the part of the grid around it.
    void find_pixels(std::vector<Found>& found, const LabelOptions& options) {
        GeoTransform forward = m_place, inverse{};
        if (!GDALInvGeoTransform(forward.data(), inverse.data()))
            throw Error("'" + m_path + "' cannot be placed: the scene's geotransform cannot be inverted");
        for (Found& one : found) {
            if (!std::isfinite(one.number)) continue;
            OGREnvelope box;
            one.geometry->getEnvelope(&box);
            double left = HUGE_VAL, right = -HUGE_VAL, top = HUGE_VAL, bottom = -HUGE_VAL;
            for (const double east : {box.MinX, box.MaxX})
                for (const double north : {box.MinY, box.MaxY}) {
                    const double x = inverse[0] + inverse[1] * east + inverse[2] * north,
                                 y = inverse[3] + inverse[4] * east + inverse[5] * north;
                    left = std::min(left, x);
                    right = std::max(right, x);
                    top = std::min(top, y);
                    bottom = std::max(bottom, y);
                }
            const auto within = [](double v, int64_t size) {
                return static_cast<int64_t>(std::clamp(v, 0.0, static_cast<double>(size)));
            };
            // Here w and h are the right and lower end, not sizes.
            const Rect part{
                within(std::floor(left) - 1, m_grid.samples), within(std::floor(top) - 1, m_grid.lines),
                within(std::ceil(right) + 1, m_grid.samples), within(std::ceil(bottom) + 1, m_grid.lines)};
            m_samples.push_back({one.number, std::move(one.group), {}});
            if (part.w > part.x && part.h > part.y) burn_alone(one, part, options, m_samples.back().pixels);
        }
        const auto empty = std::count_if(m_samples.begin(), m_samples.end(),
                                         [](const ValueSample& one) { return one.pixels.empty(); });
        if (empty > 0)
            m_notes.push_back("'" + m_path + "': " + std::to_string(empty) + " of " +
                              counted(m_samples.size(), "feature") + worded(empty, " has", " have") +
                              " no pixel of " + m_grid.owner + worded(empty, " and is", " and are") +
                              " left out");
    }

    void burn_alone(Found& one, const Rect& part, const LabelOptions& options, std::vector<int64_t>& pixels) {
        const auto x = static_cast<double>(part.x), y = static_cast<double>(part.y);
        const int64_t samples = part.w - part.x, lines = part.h - part.y;
        GeoTransform place = m_place;
        place[0] += m_place[1] * x + m_place[2] * y;
        place[3] += m_place[4] * x + m_place[5] * y;
        std::vector<Shape> shapes(1);
        shapes[0].value = 1;
        shapes[0].geometry = std::move(one.geometry);
        shapes[0].geometry->getEnvelope(&shapes[0].envelope);
        std::vector<uint16_t> burned(static_cast<size_t>(samples * lines));
        if (options.min_cover)
            PolygonCover(shapes, samples, lines, place, *options.min_cover, 0, m_path)
                .read(0, lines, burned.data());
        else
            ShapeBurner(std::move(shapes), samples, place,
                        options.inside_only   ? Cover::inside
                        : options.all_touched ? Cover::touched
                                              : Cover::centres,
                        0, m_path)
                .read(0, lines, burned.data());
        for (int64_t i = 0; i < samples * lines; ++i)
            if (burned[static_cast<size_t>(i)] != 0)
                pixels.push_back((part.y + i / samples) * m_grid.samples + part.x + i % samples);
    }

    void name_classes(const std::map<int, std::map<std::string, int64_t>>& names) {
        for (const auto& [value, all] : names) {
            LabelClass one;
            one.value = value;
            one.name = all.begin()->first;
            if (all.size() > 1)
                m_notes.push_back("'" + m_path + "': class " + std::to_string(value) + " has " +
                                  std::to_string(all.size()) + " names; '" + one.name + "' is used");
            m_legend.push_back(std::move(one));
        }
    }

    Placing m_placing = Placing::map;
    std::string m_srs_note;          ///< note on the SRS, for files in which a feature has coordinates
    bool m_in_degrees = false;       ///< the coordinates of a reprojected file are degrees
    std::optional<double> m_middle;  ///< longitude of the grid's centre, if the grid is in degrees
    Transformation m_transformation; ///< from the file's SRS to the grid's SRS; null if they are the same
    GeoTransform m_place{};          ///< geotransform of the grid in the features' coordinates
    std::vector<ValueSample> m_samples;
    int m_group_field = -1;
    int m_field = -1, m_name_field = -1, m_sample_field = -1, m_line_field = -1;
    bool m_text_classes = false;
    std::unique_ptr<ShapeBurner> m_burner;
    /// Set if fractions label pixels (m_min_cover), or if shares() will be called.
    std::unique_ptr<PolygonCover> m_cover;
    std::optional<double> m_min_cover; ///< set: m_cover labels pixels; otherwise m_burner does
    int64_t m_too_small = 0, m_outside = 0, m_beside_by_fields = 0;
};

} // namespace

std::unique_ptr<LabelSource> make_vector_labels(DatasetHandle dataset, const LabelOptions& options,
                                                const Grid* grid, std::vector<std::string> notes) {
    return std::make_unique<VectorLabels>(std::move(dataset), options, grid, std::move(notes));
}

} // namespace hsi::raster
