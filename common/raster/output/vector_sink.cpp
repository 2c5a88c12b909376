// SPDX-License-Identifier: MIT
#include "raster/vector_sink.h"

#include "core/counted.h"
#include "core/error.h"
#include "parallel/group.h"
#include "raster/drivers.h"
#include "raster/files/already_exists.h"
#include "raster/files/file_register.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/product.h"
#include "raster/regular_file.h"
#include "raster/scene/locations.h"
#include "raster/scene/source_impl.h"
#include "raster/side_files.h"

#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>
#include <ogr_api.h>
#include <ogr_spatialref.h>
#include <ogrsf_frmts.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace hsi::raster {
namespace {

bool writes_vectors(GDALDriver* driver) {
    return has_capability(driver, GDAL_DCAP_VECTOR) && has_capability(driver, GDAL_DCAP_CREATE) &&
           keeps_files(driver);
}

GDALDriver* choose_driver(const VectorOptions& options) {
    check_is_file(options.path);
    if (!options.format.empty())
        return driver_by_name(options.format, writes_vectors, "write vector layers into files",
                              "Use GPKG, GeoJSON, CSV, \"ESRI Shapefile\" or another vector driver.");
    register_drivers();
    const std::string extension = extension_of(options.path);
    if (extension.empty()) return GetGDALDriverManager()->GetDriverByName("GPKG");
    if (GDALDriver* driver = driver_by_extension(extension, writes_vectors)) return driver;
    throw UsageError("no driver writes vector layers into files with the extension '." + extension +
                         "' of '" + options.path + "'",
                     "Use .gpkg, .geojson, .csv or .shp.");
}

CPLStringList list_of(const std::vector<std::string>& items) {
    CPLStringList list;
    for (const auto& item : items)
        list.AddString(item.c_str());
    return list;
}

OGRSpatialReference spatial_reference(const std::string& text) {
    OGRSpatialReference srs;
    if (!text.empty()) srs.SetFromUserInput(text.c_str());
    srs.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

/// Returns true for formats whose readers interpret all coordinates as degrees on WGS 84, whatever SRS was
/// written.
bool places_in_degrees(GDALDriver* driver) {
    for (const char* name : {"GeoJSON", "GeoJSONSeq", "KML", "LIBKML", "GPX", "GeoRSS", "MapML"})
        if (EQUAL(driver->GetDescription(), name)) return true;
    return false;
}

bool is_geojson(GDALDriver* driver) { return STARTS_WITH_CI(driver->GetDescription(), "GeoJSON"); }

/// Returns true for GeoJSON before RFC 7946. This form can use the SRS of the scene if the SRS has a code,
/// which the file then states.
bool is_older_geojson(GDALDriver* driver, const CPLStringList& layer_options,
                      const OGRSpatialReference& srs) {
    return EQUAL(driver->GetDescription(), "GeoJSON") &&
           !CPLTestBool(layer_options.FetchNameValueDef("RFC7946", "YES")) &&
           srs.GetAuthorityCode(nullptr) != nullptr;
}

bool has_place(const PointLayer& layer) { return !layer.srs_wkt.empty() && layer.placed; }

OGRSpatialReference wgs84() {
    OGRSpatialReference srs;
    srs.SetWellKnownGeogCS("WGS84");
    srs.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

// Returns a point. GDAL's C functions are used because a class derived from OGRPoint would need its virtual
// table. The plugin is not linked to libgdal, and cannot find this table if a program (such as Python) hides
// GDAL's symbols.
template <class Place>
OGRGeometryH point_at(const Point& point, const Place& place) {
    const auto [x, y] = place({point.x, point.y});
    OGRGeometryH const geometry = OGR_G_CreateGeometry(wkbPoint);
    OGR_G_SetPoint_2D(geometry, 0, x, y);
    return geometry;
}
template <class Place>
OGRGeometryH polygons_of(const Point& point, const Place& place) {
    OGRGeometryH const all = OGR_G_CreateGeometry(wkbMultiPolygon);
    for (const auto& rings : point.polygons) {
        OGRGeometryH const polygon = OGR_G_CreateGeometry(wkbPolygon);
        for (const auto& corners : rings) {
            OGRGeometryH const ring = OGR_G_CreateGeometry(wkbLinearRing);
            for (const auto& corner : corners) {
                const auto [x, y] = place(corner);
                OGR_G_AddPoint_2D(ring, x, y);
            }
            OGR_G_AddGeometryDirectly(polygon, ring);
        }
        OGR_G_AddGeometryDirectly(all, polygon);
    }
    return all;
}

void fill(GDALDataset& dataset, GDALDriver* driver, const VectorOptions& options, const PointLayer& layer,
          const GdalErrors& errors) {
    const auto check = [&](bool good, const std::string& what) {
        if (!good || errors.any())
            throw Error(options.path + ": " + what + ": " +
                            errors.text("GDAL gives no reason; the disk may be full"),
                        "Check the free disk space, or choose another driver or path.");
    };
    OGRSpatialReference srs = spatial_reference(layer.srs_wkt);
    CPLStringList layer_options = list_of(options.layer_options);
    if (EQUAL(driver->GetDescription(), "CSV") && layer_options.FetchNameValue("GEOMETRY") == nullptr)
        layer_options.SetNameValue("GEOMETRY", layer.polygons ? "AS_WKT" : "AS_XY");
    bool placed = true; // false: the points have no position on the Earth
    std::unique_ptr<OGRCoordinateTransformation> to_degrees;
    if (places_in_degrees(driver) && !is_older_geojson(driver, layer_options, srs)) {
        placed = has_place(layer);
        if (!placed && !is_geojson(driver))
            throw Error(options.path + ": " + driver->GetDescription() +
                            " needs points in degrees, but the scene has no georeference",
                        "Write a GeoPackage (.gpkg), which can store lines and samples.");
        const OGRSpatialReference degrees = wgs84();
        if (placed) to_degrees.reset(OGRCreateCoordinateTransformation(&srs, &degrees));
        if (placed && !to_degrees)
            throw Error(
                options.path +
                    ": coordinates cannot be transformed from the scene's SRS to degrees on WGS 84, which " +
                    driver->GetDescription() + " requires: " + errors.text(),
                "Write a GeoPackage (.gpkg), which can store any SRS.");
        srs = degrees;
        if (EQUAL(driver->GetDescription(), "GeoJSON") && placed)
            layer_options.SetNameValue("RFC7946", "YES");
        // GDAL writes seven digits by default, which is about a centimetre. The pixels of some cameras are
        // smaller.
        if (is_geojson(driver) && layer_options.FetchNameValue("COORDINATE_PRECISION") == nullptr)
            layer_options.SetNameValue("COORDINATE_PRECISION", "9");
    }
    OGRLayer* out = dataset.CreateLayer(layer.name.c_str(), layer.srs_wkt.empty() || !placed ? nullptr : &srs,
                                        layer.polygons ? wkbMultiPolygon : wkbPoint, layer_options.List());
    check(out != nullptr, "the layer cannot be created");
    for (const auto& field : layer.fields) {
        OGRFieldDefn definition(field.name.c_str(), field.whole ? OFTInteger : OFTReal);
        check(out->CreateField(&definition) == OGRERR_NONE, "the field " + field.name + " cannot be created");
    }
    if (!layer.text_field.empty()) {
        OGRFieldDefn definition(layer.text_field.c_str(), OFTString);
        check(out->CreateField(&definition) == OGRERR_NONE,
              "the field " + layer.text_field + " cannot be created");
    }
    if (!options.history.empty()) {
        // Most drivers cannot store layer metadata and report an error, which is ignored.
        const GdalErrors ignored;
        out->SetMetadataItem("HSI_HISTORY", options.history.c_str());
    }
    const bool transactions =
        dataset.TestCapability(ODsCTransactions) && dataset.StartTransaction() == OGRERR_NONE;
    for (const auto& point : layer.points) {
        const std::unique_ptr<OGRFeature> feature(OGRFeature::CreateFeature(out->GetLayerDefn()));
        for (size_t k = 0; k < layer.fields.size(); ++k) {
            const int at = feature->GetFieldIndex(layer.fields[k].name.c_str());
            if (at < 0 || std::isnan(point.values[k])) continue;
            if (layer.fields[k].whole)
                feature->SetField(at, static_cast<int>(std::lround(point.values[k])));
            else
                feature->SetField(at, point.values[k]);
        }
        if (const int at = layer.text_field.empty() ? -1 : feature->GetFieldIndex(layer.text_field.c_str());
            at >= 0)
            feature->SetField(at, point.text.c_str());
        if (placed) {
            const auto place = [&](std::array<double, 2> at) {
                check(!to_degrees || to_degrees->Transform(1, &at[0], &at[1]),
                      "a point cannot be transformed to degrees");
                return at;
            };
            const OGRGeometryH geometry = layer.polygons ? polygons_of(point, place) : point_at(point, place);
            check(feature->SetGeometryDirectly(OGRGeometry::FromHandle(geometry)) == OGRERR_NONE,
                  "a geometry cannot be written");
        }
        check(out->CreateFeature(feature.get()) == OGRERR_NONE, "a point cannot be written");
    }
    if (transactions) check(dataset.CommitTransaction() == OGRERR_NONE, "the points cannot be written");
    check(out->SyncToDisk() == OGRERR_NONE, "the layer cannot be written");
}

} // namespace

std::string layer_name(const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const size_t dot = name.rfind('.');
    return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

void check_vector_output(const VectorOptions& options) {
    GDALDriver* const driver = choose_driver(options);
    const std::string end = is_local(options.path) ? follow_links(options.path) : options.path;
    auto sides = side_file_names(driver->GetDescription(), end, options.dataset_options);
    // Each link may have links to side files next to it.
    for (const std::string& link : links_on_the_way(options.path))
        for (std::string& side : side_file_names(driver->GetDescription(), link, options.dataset_options))
            sides.push_back(std::move(side));
    if (options.run) options.run->writes(options.role, options.path, sides);
    VSIStatBufL status;
    if (VSIStatL(options.path.c_str(), &status) == 0) {
        if (VSI_ISDIR(status.st_mode))
            throw Error("'" + options.path + "' is a folder", "Give a file's name.");
        if (!VSI_ISREG(status.st_mode))
            throw Error("'" + options.path + "' exists and is not a regular file");
    }
    std::vector<std::string> names{end};
    names.insert(names.end(), sides.begin(), sides.end());
    for (const std::string& name : names) {
        const bool own = name.rfind(end + ".", 0) == 0 || name.rfind(options.path + ".", 0) == 0;
        if (own || !is_there(name)) continue;
        if (name != end) check_side_is_free(name, folder_of(name) == folder_of(end) ? end : options.path);
        if (!options.overwrite)
            throw already_exists(name, name == end ? ""
                                                   : ", but '" + options.path +
                                                         "' does not: it belonged to a file that is gone");
    }
    if (!is_local(options.path)) return;
    const std::string folder = folder_of(end);
    if (VSIStatL(folder.c_str(), &status) != 0 || !VSI_ISDIR(status.st_mode))
        throw Error("'" + options.path + "': the folder '" + folder + "' does not exist",
                    "Make the folder first.");
    if (access(folder.c_str(), W_OK) != 0)
        throw Error("'" + options.path + "': the folder '" + folder + "' cannot be written",
                    "Choose another folder.");
}

namespace {

/// Returns how many values of `layer`'s fields a feature has. Fields that the format does not support are not
/// counted.
int64_t values_in(const OGRFeature& feature, const PointLayer& layer) {
    int64_t count = 0;
    for (const auto& field : layer.fields) {
        int at = feature.GetFieldIndex(field.name.c_str());
        // A Shapefile truncates names to ten characters.
        if (at < 0) at = feature.GetFieldIndex(field.name.substr(0, 10).c_str());
        if (at >= 0 && feature.IsFieldSetAndNotNull(at)) ++count;
    }
    return count;
}

/// Returns how many values the features should have. Some formats do not support all fields; a Shapefile
/// supports all of them, under truncated names.
int64_t values_wanted(OGRLayer& found, const PointLayer& layer, bool shapefile) {
    int64_t count = 0;
    for (size_t k = 0; k < layer.fields.size(); ++k) {
        if (!shapefile && found.GetLayerDefn()->GetFieldIndex(layer.fields[k].name.c_str()) < 0) continue;
        for (const auto& point : layer.points)
            if (!std::isnan(point.values[k])) ++count;
    }
    return count;
}

/// Opens the file again and checks that it is complete, because closing a dataset does not return errors.
void check_points(const std::string& path, const VectorOptions& options, const PointLayer& layer,
                  bool alone) {
    const GdalErrors errors;
    const std::unique_ptr<GDALDataset> dataset(
        GDALDataset::Open(path.c_str(), GDAL_OF_VECTOR | GDAL_OF_READONLY));
    if (!dataset || dataset->GetLayerCount() == 0)
        throw Error("'" + options.path + "' does not open after writing: " + errors.text("it has no layer"),
                    "Check the free disk space.");
    const bool located = dataset->GetLayer(0)->GetSpatialRef() != nullptr;
    const bool shapefile = EQUAL(dataset->GetDriverName(), "ESRI Shapefile");
    if (!layer.srs_wkt.empty() && shapefile && !located)
        throw Error("'" + options.path + "' has no coordinate system after writing (.prj)",
                    "Check the free disk space.");
    size_t found = 0; // GPX and similar formats also have layers for other data
    bool whole = true;
    for (int i = 0; i < dataset->GetLayerCount(); ++i) {
        OGRLayer& there = *dataset->GetLayer(i);
        if (!alone && layer.name != there.GetName()) continue;
        size_t here = 0;
        int64_t values = 0;
        while (const std::unique_ptr<OGRFeature> feature{there.GetNextFeature()}) {
            values += values_in(*feature, layer);
            ++here;
        }
        if (here <= found) continue;
        found = here;
        whole = values >= values_wanted(there, layer, shapefile);
    }
    const size_t wanted = layer.points.size();
    if (found != wanted)
        throw Error("'" + options.path + "' has " + std::to_string(found) + " of " +
                        counted(wanted, "point") + " after writing" +
                        (errors.any() ? ": " + errors.text() : ""),
                    "Check the free disk space.");
    if (!whole)
        throw Error("'" + options.path + "' lacks values of points after writing",
                    "Check the free disk space.");
}

/// Returns true for formats whose files can have several layers.
bool holds_layers(GDALDriver* driver) {
    for (const char* name : {"GPKG", "SQLite", "KML", "LIBKML", "GML", "XLSX", "ODS"})
        if (EQUAL(driver->GetDescription(), name)) return true;
    return false;
}

bool opens_again(GDALDriver* driver) { return has_capability(driver, GDAL_DCAP_OPEN); }

} // namespace

void write_points(const VectorOptions& options, const PointLayer& layer) { write_layers(options, {layer}); }

size_t write_layers(const VectorOptions& options, const std::vector<PointLayer>& layers) {
    check_vector_output(options);
    GDALDriver* driver = choose_driver(options);
    const size_t count = holds_layers(driver) ? layers.size() : 1;
    if (!parallel::group().root()) return count; // only the root process writes the file
    auto file = std::make_unique<AtomicFile>(options.path, options.overwrite);
    {
        const GdalErrors errors;
        std::unique_ptr<GDALDataset> dataset(driver->Create(file->path().c_str(), 0, 0, 0, GDT_Unknown,
                                                            list_of(options.dataset_options).List()));
        if (!dataset)
            throw Error("'" + options.path + "' cannot be created by the driver " + driver->GetDescription() +
                            ": " + errors.text(),
                        "Check the folder and -dsco.");
        for (size_t k = 0; k < count; ++k)
            fill(*dataset, driver, options, layers[k], errors);
        dataset.reset();
        if (errors.any())
            throw Error("'" + options.path + "' cannot be written: " + errors.text(),
                        "Check the free disk space.");
    }
    for (size_t k = 0; k < count && opens_again(driver); ++k)
        check_points(file->path(), options, layers[k], count == 1);
    auto stale = old_side_files(file->destination());
    for (const std::string& link : file->links()) // each link may have its own side files
        for (std::string& side : old_side_files(link))
            stale.push_back(std::move(side));
    file->set_stale(std::move(stale));
    if (options.run) {
        register_of(*options.run).add(std::move(file));
        return count;
    }
    file->publish();
    file->conclude();
    return count;
}

bool keeps_places(const VectorOptions& options, const PointLayer& layer) {
    GDALDriver* const driver = choose_driver(options);
    return has_place(layer) || !is_geojson(driver) ||
           is_older_geojson(driver, list_of(options.layer_options), spatial_reference(layer.srs_wkt));
}

std::string srs_of_places(const RasterSource& source) {
    if (!locations_behind(SourceAccess::state(source))) return source.facts().srs_wkt();
    char* wkt = nullptr;
    wgs84().exportToWkt(&wkt);
    std::string text = wkt ? wkt : "";
    CPLFree(wkt);
    return text;
}

std::string unread_georeference(const RasterSource& source) {
    // If the product is missing, the code that opened the scene has already reported it.
    if (source.located() || !product_of_locations(metadata_of(source)).empty()) return {};
    const SceneMetadata& scene = metadata_of(source);
    if (!scene.gcps.empty()) return "ground control points";
    if (!value_of(scene.domains, "GEOLOCATION", "X_DATASET").empty()) return "arrays (GEOLOCATION)";
    return scene.domains.count("RPC") > 0 ? "rational polynomials (RPC)" : "";
}

std::vector<PixelPlace> places_of_pixels(const RasterSource& source,
                                         const std::vector<std::pair<int64_t, int64_t>>& pixels) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    double gt[6] = {0, 1, 0, 0, 0, -1};
    const bool placed = source.facts().copy_geotransform(gt);
    std::unique_ptr<OGRCoordinateTransformation> to_degrees;
    const GdalErrors errors;
    if (placed && source.facts().srs) {
        const OGRSpatialReference from = spatial_reference(source.facts().srs_wkt());
        const OGRSpatialReference degrees = wgs84();
        to_degrees.reset(OGRCreateCoordinateTransformation(&from, &degrees));
    }
    std::vector<PixelPlace> places;
    const SourceState& state = SourceAccess::state(source);
    if (const auto locations = locations_behind(state)) { // uses the longitudes and latitudes of the product
        std::vector<std::pair<int64_t, int64_t>> of_product;
        for (const auto& [line, sample] : pixels)
            of_product.emplace_back(line + state.window().y + locations->line,
                                    sample + state.window().x + locations->sample);
        for (const auto& [lon, lat] : locations_of(*locations->product, of_product))
            places.push_back({lon, lat, lon, lat});
        return places;
    }
    for (const auto& [line, sample] : pixels) {
        const double s = static_cast<double>(sample) + 0.5, l = static_cast<double>(line) + 0.5;
        PixelPlace p{gt[0] + s * gt[1] + l * gt[2], gt[3] + s * gt[4] + l * gt[5], none, none};
        double lon = p.x, lat = p.y;
        if (to_degrees && to_degrees->Transform(1, &lon, &lat)) {
            p.lon = lon;
            p.lat = lat;
        }
        places.push_back(p);
    }
    return places;
}

} // namespace hsi::raster
