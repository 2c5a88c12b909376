// SPDX-License-Identifier: MIT
#include "raster/labels/point_table.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/io/server_answers.h"
#include "raster/labels/labels_impl.h"
#include "raster/libraries/text_table.h"
#include "raster/metadata/scene_metadata.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

using Names = std::initializer_list<const char*>;

/// Returns the same text for "X_Coord [m]" and "xcoord".
std::string plain(const std::string& head) {
    std::string letters;
    for (const char c : lower(head.substr(0, head.find_first_of("(["))))
        if (std::string(" _-.\t").find(c) == std::string::npos) letters += c;
    return letters;
}

bool is_one_of(const std::string& head, Names names) {
    const std::string name = plain(head);
    return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

/// The two columns of a position, counted from 0; -1: no such column.
struct Pair {
    int first = -1, second = -1;
    explicit operator bool() const { return first >= 0 && second >= 0; }
    bool has(size_t column) const {
        return *this && (static_cast<int>(column) == first || static_cast<int>(column) == second);
    }
};

struct Places {
    Pair degrees, map, pixels; ///< columns of longitude and latitude, of x and y, of sample and line
    /// Returns the columns of longitude and latitude if the table has them, because their SRS is certain;
    /// otherwise the columns of x and y.
    const Pair& coordinates() const { return degrees ? degrees : map; }
};

/// Returns the first column that has one of the names and at least one value; -1 if there is none.
int find_column(const TextTable& table, Names names) {
    for (size_t c = 0; c < table.head.size(); ++c)
        if (is_one_of(table.head[c], names) &&
            std::any_of(table.rows.begin(), table.rows.end(),
                        [&](const auto& row) { return !is_empty_cell(row[c]); }))
            return static_cast<int>(c);
    return -1;
}

Places places_in(const TextTable& table) {
    Places at;
    at.degrees = {
        find_column(table, {"lon", "long", "lng", "longitude", "londd", "longdd", "longitudedd", "declon",
                            "decimallongitude", "lonwgs84", "longitudewgs84", "gpslongitude", "gpslon"}),
        find_column(table, {"lat", "latitude", "latdd", "latitudedd", "declat", "decimallatitude", "latwgs84",
                            "latitudewgs84", "gpslatitude", "gpslat"})};
    at.map = {find_column(table, {"x", "xcoord", "xcoordinate", "coordx", "coordinatex", "pointx", "mapx",
                                  "xmap", "utmx", "xutm", "easting", "eastings", "east", "e", "utme",
                                  "utmeasting", "rechtswert"}),
              find_column(table, {"y", "ycoord", "ycoordinate", "coordy", "coordinatey", "pointy", "mapy",
                                  "ymap", "utmy", "yutm", "northing", "northings", "north", "n", "utmn",
                                  "utmnorthing", "hochwert"})};
    at.pixels = {
        find_column(table, {"sample", "samples", "column", "columns", "col", "cols", "pixelx", "px"}),
        find_column(table, {"line", "lines", "row", "rows", "pixely", "py"})};
    return at;
}

/// Returns true if the table has a column of geometries (WKT), which GDAL's CSV driver reads.
bool has_geometries(const TextTable& table) {
    return find_column(table, {"wkt", "geom", "geometry", "thegeom", "wktgeom", "wktgeometry", "geomwkt"}) >=
           0;
}

std::string extension_in(const std::string& path) { return lower(extension_of(path)); }

/// Returns the first `most` bytes of the file; empty if the file does not exist. If `whole`, throws Error for
/// a larger file.
std::string read_text(const std::string& path, size_t most, bool whole) {
    struct Close {
        void operator()(VSILFILE* f) const { VSIFCloseL(f); }
    };
    const GdalErrors errors;
    VSIStatBufL status;
    if (VSIStatL(path.c_str(), &status) != 0 || !VSI_ISREG(status.st_mode)) return {};
    if (whole && static_cast<uint64_t>(status.st_size) > most)
        throw Error("'" + path + "' is a table of more than " + std::to_string(most >> 20) + " MB",
                    "Convert it to a GeoPackage (ogr2ogr).");
    const std::unique_ptr<VSILFILE, Close> file(open_watched(path));
    if (!file) return {};
    std::string text(std::min<size_t>(most, static_cast<size_t>(status.st_size)), '\0');
    text.resize(VSIFReadL(text.data(), 1, text.size(), file.get()));
    return text;
}

/// Returns true if the file's name and first lines are those of a table of labelled points.
bool is_point_table(const LabelOptions& options) {
    const std::string extension = extension_in(options.path);
    const bool sheet = extension == "csv" || extension == "tsv";
    if (!options.open_options.empty() || options.path.rfind("CSV:", 0) == 0 ||
        !may_be_point_table(options.path))
        return false;
    std::string text = read_text(options.path, size_t{1} << 16, false);
    if (text.size() == size_t{1} << 16) text.erase(text.find_last_of("\r\n") + 1);
    if (text.empty() || (text.find('\0') != std::string::npos && text[0] != '\xff' && text[0] != '\xfe'))
        return false;
    TextTable table;
    try {
        table = read_text_table(options.path, utf8_text(text));
    } catch (const Error&) {
        return sheet; // a .csv or .tsv with invalid lines is opened, so that read_table() reports the fault
    }
    if (sheet) return !has_geometries(table);
    const Places at = places_in(table);
    if (options.mask) return at.coordinates() || at.pixels;
    return std::any_of(table.head.begin(), table.head.end(), [&](const std::string& name) {
        return names_class_column(name) || EQUAL(name.c_str(), options.field.c_str());
    });
}

[[noreturn]] void refuse_columns(const std::string& path, const std::vector<std::string>& head) {
    std::string names;
    for (const auto& name : head)
        names += (names.empty() ? "" : ", ") + name;
    throw Error(
        "'" + path + "' is a table, and " +
            (head.empty() ? "its columns have no names" : "no column has the positions of the points"),
        "In the first line, name the columns x and y (in the scene's SRS), lon and lat, or sample and line "
        "(pixels, from 0), and name the column of classes class." +
            (head.empty() ? "" : " Its columns: " + names + "."));
}

/// Returns the type of a column: integers ("1, 2, 3"), real numbers ("0.5, 1") or texts. A column without
/// values gets real numbers, so that it is not chosen as the column of classes.
OGRFieldType type_of(const TextTable& table, size_t column) {
    bool whole = true, empty = true;
    for (const auto& row : table.rows) {
        if (is_empty_cell(row[column])) continue;
        const double v = cell_number(row[column]);
        if (!std::isfinite(v)) return OFTString;
        empty = false;
        whole = whole && v == std::floor(v) && std::fabs(v) <= INT_MAX;
    }
    return whole && !empty ? OFTInteger : OFTReal;
}

double coordinate(const std::string& path, const TextTable& table, size_t row, int column) {
    const std::string& cell = table.rows[row][static_cast<size_t>(column)];
    if (is_empty_cell(cell)) return std::numeric_limits<double>::quiet_NaN();
    const double v = cell_number(cell);
    if (!std::isfinite(v))
        throw Error("'" + path + "': '" + cell + "' in column " + table.head[static_cast<size_t>(column)] +
                        " is not a coordinate",
                    "Give coordinates as numbers: decimal degrees, metres or pixels.");
    return v;
}

struct Position {
    double x = 0, y = 0; ///< NaN: missing
};

std::vector<Position> positions_of(const std::string& path, const TextTable& table, const Places& at) {
    std::vector<Position> all;
    for (size_t i = 0; i < table.rows.size(); ++i) {
        const auto [x, y] = at.coordinates();
        all.push_back({coordinate(path, table, i, x), coordinate(path, table, i, y)});
        if (!at.degrees) continue;
        const Position& p = all.back();
        if (std::fabs(p.x) > 360 || std::fabs(p.y) > 90)
            throw Error("'" + path + "': " + CPLSPrintf("%.9g, %.9g", p.x, p.y) + " in columns " +
                            table.head[static_cast<size_t>(x)] + " and " +
                            table.head[static_cast<size_t>(y)] + " are not longitude and latitude in degrees",
                        "Check that the columns are not swapped. Coordinates in the scene's SRS must be in "
                        "columns x and y.");
    }
    return all;
}

/// Returns true if x and y must be degrees: all values can be degrees, and no point is on the grid if x and y
/// are in the grid's units.
bool must_be_degrees(const std::vector<Position>& points, const Grid* grid) {
    if (grid == nullptr || !grid->geotransform || grid->srs_wkt.empty()) return false;
    GeoTransform gt = *grid->geotransform, inverse{};
    if (!GDALInvGeoTransform(gt.data(), inverse.data())) return false;
    return std::all_of(points.begin(), points.end(), [&](const Position& p) {
        const double sample = inverse[0] + inverse[1] * p.x + inverse[2] * p.y,
                     line = inverse[3] + inverse[4] * p.x + inverse[5] * p.y;
        const bool on_grid = sample >= 0 && line >= 0 && sample < static_cast<double>(grid->samples) &&
                             line < static_cast<double>(grid->lines);
        return !on_grid && !(std::fabs(p.x) > 180 || std::fabs(p.y) > 90);
    });
}

TextTable read_table(const std::string& path) {
    constexpr size_t most = size_t{512} << 20;
    const std::string text = utf8_text(read_text(path, most, true));
    try {
        return read_text_table(path, text);
    } catch (const Error& e) {
        throw Error(
            e.what(),
            "A table of points needs column names in the first line, and the same columns in all lines.");
    }
}

struct DestroySrs {
    void operator()(void* srs) const { OSRDestroySpatialReference(srs); }
};

DatasetHandle in_memory() {
    GDALDriver* driver = GetGDALDriverManager()->GetDriverByName("Memory");
    // From GDAL 3.11 on, MEM also has vector layers.
    if (driver == nullptr) driver = GetGDALDriverManager()->GetDriverByName("MEM");
    return DatasetHandle(driver ? driver->Create("", 0, 0, 0, GDT_Unknown, nullptr) : nullptr);
}

bool add_points(const TextTable& table, const Places& at, const std::vector<Position>& positions,
                OGRLayerH layer) {
    bool good = true;
    std::vector<OGRFieldType> types;
    std::vector<size_t> columns; // table columns that become fields
    for (size_t c = 0; c < table.head.size(); ++c) {
        if (at.map.has(c) || at.degrees.has(c)) continue;
        const std::string name = !at.pixels.has(c)                        ? table.head[c]
                                 : static_cast<int>(c) == at.pixels.first ? "sample"
                                                                          : "line";
        columns.push_back(c);
        types.push_back(type_of(table, c));
        OGRFieldDefnH const field = OGR_Fld_Create(name.c_str(), types.back());
        good = good && OGR_L_CreateField(layer, field, FALSE) == OGRERR_NONE;
        OGR_Fld_Destroy(field);
    }
    for (size_t i = 0; i < table.rows.size(); ++i) {
        OGRFeatureH const feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        for (size_t k = 0; k < columns.size(); ++k) {
            const std::string& cell = table.rows[i][columns[k]];
            const int field = static_cast<int>(k);
            if (is_empty_cell(cell)) continue;
            if (types[k] == OFTString)
                OGR_F_SetFieldString(feature, field, cell.c_str());
            else
                OGR_F_SetFieldDouble(feature, field, cell_number(cell));
        }
        if (!positions.empty() && std::isfinite(positions[i].x) && std::isfinite(positions[i].y)) {
            OGRGeometryH const point = OGR_G_CreateGeometry(wkbPoint);
            OGR_G_SetPoint_2D(point, 0, positions[i].x, positions[i].y);
            good = good && OGR_F_SetGeometryDirectly(feature, point) == OGRERR_NONE;
        }
        good = good && OGR_L_CreateFeature(layer, feature) == OGRERR_NONE;
        OGR_F_Destroy(feature);
    }
    return good;
}

} // namespace

bool names_class_column(const std::string& name) {
    return is_one_of(name, {"class", "classid", "classname", "label", "classes", "labels", "classvalue"});
}

std::unique_ptr<LabelSource> open_point_table(const LabelOptions& options, const Grid* grid) {
    if (!is_point_table(options)) return {};
    const TextTable table = read_table(options.path);
    if (table.head.empty()) refuse_columns(options.path, table.head);
    const Places at = places_in(table);
    if (!at.coordinates() && !at.pixels) refuse_columns(options.path, table.head);
    std::vector<Position> positions;
    // If the grid has no geotransform, points are located by sample and line, if the table has these columns.
    if (at.coordinates() && !(at.pixels && grid && !grid->geotransform))
        positions = positions_of(options.path, table, at);
    std::vector<std::string> notes;
    bool degrees = static_cast<bool>(at.degrees);
    if (!degrees && !positions.empty() && must_be_degrees(positions, grid)) {
        degrees = true;
        notes.push_back(
            "'" + options.path +
            "': its coordinates are read as longitudes and latitudes on WGS 84, since no point is on " +
            grid->owner + " otherwise");
    }
    const GdalErrors errors;
    DatasetHandle dataset = in_memory();
    std::unique_ptr<void, DestroySrs> srs;
    if (degrees) {
        srs.reset(OSRNewSpatialReference(nullptr));
        OSRSetWellKnownGeogCS(srs.get(), "WGS84");
        OSRSetAxisMappingStrategy(srs.get(), OAMS_TRADITIONAL_GIS_ORDER);
    }
    OGRLayerH const layer =
        dataset ? GDALDatasetCreateLayer(GDALDataset::ToHandle(dataset.get()),
                                         CPLGetBasename(options.path.c_str()), srs.get(), wkbPoint, nullptr)
                : nullptr;
    if (layer == nullptr || !add_points(table, at, positions, layer))
        throw Error("'" + options.path + "' cannot be kept in memory: " + errors.text());
    return make_vector_labels(std::move(dataset), options, grid, std::move(notes));
}

} // namespace hsi::raster
