// SPDX-License-Identifier: MIT
#include "raster/labels.h"

#include "core/error.h"
#include "raster/gdal/unknown_srs.h"
#include "raster/gdal_errors.h"
#include "raster/labels/labels_impl.h"
#include "raster/labels/point_table.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/esri_header.h"
#include "raster/products/hdf_trial.h"
#include "raster/products/matlab_scene.h"
#include "raster/products/pipes_beside.h"
#include "raster/products/product.h"
#include "raster/regular_file.h"
#include "raster/scene_document.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi::raster {
namespace {

OGRSpatialReference srs_from(const std::string& wkt) {
    OGRSpatialReference srs;
    if (!wkt.empty()) srs.importFromWkt(wkt.c_str());
    srs.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

/// Returns a short name of an SRS for messages: "'WGS 84'" or "the local 'Site grid'". The WKT of an SRS
/// would fill pages.
std::string srs_text(const OGRSpatialReference& srs) {
    const char* const name = srs.GetName();
    return std::string(srs.IsLocal() ? "the local " : "") +
           (name != nullptr ? "'" + std::string(name) + "'" : "unnamed one");
}

} // namespace

std::string wkt_of(const OGRSpatialReference* srs) {
    if (!srs || srs->IsEmpty() || stands_for_none(*srs)) return {};
    char* text = nullptr;
    const char* const options[] = {"FORMAT=WKT2_2019", nullptr};
    srs->exportToWkt(&text, options);
    std::string wkt = text ? text : "";
    CPLFree(text);
    return wkt;
}

bool same_srs(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty() || a == b) return true;
    const OGRSpatialReference first = srs_from(a), second = srs_from(b);
    const char* const options[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES", "CRITERION=EQUIVALENT",
                                   nullptr};
    return first.IsSame(&second, options);
}

bool counts_degrees(const std::string& wkt) {
    if (wkt.empty()) return false;
    const OGRSpatialReference srs = srs_from(wkt);
    return srs.IsGeographic() && std::fabs(srs.GetAngularUnits() * full_turn - 2 * M_PI) < 1e-6;
}

bool same_geotransform(const GeoTransform& a, const GeoTransform& b, int64_t samples, int64_t lines) {
    const double pixel = std::max(std::hypot(a[1], a[4]), std::hypot(a[2], a[5]));
    for (const double x : {0.0, static_cast<double>(samples)})
        for (const double y : {0.0, static_cast<double>(lines)})
            for (const size_t k : {size_t{0}, size_t{3}})
                if (!(std::fabs((a[k] - b[k]) + (a[k + 1] - b[k + 1]) * x + (a[k + 2] - b[k + 2]) * y) <=
                      1e-3 * pixel))
                    return false;
    return true;
}

Transformation transformation(const std::string& from, const std::string& to, const std::string& path,
                              bool to_scene) {
    OGRSpatialReference source = srs_from(from), target = srs_from(to);
    const GdalErrors errors;
    Transformation t(OGRCreateCoordinateTransformation(&source, &target));
    if (!t)
        throw Error("'" + path + "': its coordinates cannot be transformed from the SRS " +
                        srs_text(to_scene ? source : target) + " to the scene's SRS " +
                        srs_text(to_scene ? target : source),
                    "Set the correct SRS of both files (gdal_edit.py -a_srs, ogr2ogr -a_srs).");
    return t;
}

Grid grid_of(const RasterSource& source) {
    Grid grid;
    grid.samples = source.shape().samples;
    grid.lines = source.shape().lines;
    double gt[6];
    if (source.facts().copy_geotransform(gt)) {
        grid.geotransform.emplace();
        std::copy_n(gt, 6, grid.geotransform->begin());
    }
    grid.srs_wkt = source.facts().srs_wkt();
    const auto& scene = metadata_of(source);
    grid.placed_otherwise =
        !grid.geotransform && (source.located() || !scene.gcps.empty() || scene.domains.count("RPC") > 0 ||
                               scene.domains.count("GEOLOCATION") > 0);
    return grid;
}

bool same_grid(const Grid& a, const Grid& b) {
    if (a.samples != b.samples || a.lines != b.lines) return false;
    if (!a.geotransform || !b.geotransform) return true;
    return same_srs(a.srs_wkt, b.srs_wkt) &&
           same_geotransform(*a.geotransform, *b.geotransform, a.samples, a.lines);
}

std::unique_ptr<LabelSource> open_all_labels(const LabelOptions& options, const Grid* grid) {
    register_drivers();
    refuse_pipe_beside(options.path);
    try_hdf(options.path);
    // Tables of points are tried first, because GDAL opens many of them as rasters.
    if (may_be_point_table(options.path))
        if (auto points = open_point_table(options, grid)) return points;
    GdalErrors errors;
    std::vector<std::string> notes;
    DatasetHandle dataset;
    if (may_lead_to_matlab(options.path))
        dataset = open_matlab_labels(options.path, grid ? grid->lines : 0, grid ? grid->samples : 0,
                                     options.mask, notes);
    if (!dataset && options.open_options.empty())
        if (auto plane = find_plane(options.path, grid ? grid->lines : 0, grid ? grid->samples : 0)) {
            notes.insert(notes.end(), plane->notes.begin(), plane->notes.end());
            dataset = open_array_raster(std::move(plane));
        }
    if (!dataset)
        dataset = open_in_gdal({options.path, {}, GDAL_OF_RASTER | GDAL_OF_VECTOR, {}, options.open_options});
    if (const std::string header = dataset ? std::string() : unreadable_header(options.path); !header.empty())
        throw Error("cannot open '" + options.path + "': its header '" + header + "' is not readable");
    if (!dataset)
        throw Error("cannot open '" + options.path + "': " + errors.text(),
                    is_scene_document(options.path)
                        ? "GDAL opens virtual scenes with the plugin gdal_HSI (GDAL_DRIVER_PATH)."
                        : "Labels can be any raster or vector file that GDAL opens.");
    const bool vector_wanted = !options.field.empty() || !options.layer.empty() ||
                               !options.name_field.empty() || !options.group_field.empty() ||
                               options.all_touched || options.inside_only || options.min_cover ||
                               options.shares || options.pixel_coordinates;
    if (dataset->GetRasterCount() > 0 && !(vector_wanted && dataset->GetLayerCount() > 0)) {
        if (vector_wanted && !options.said_of_another)
            throw Error("'" + options.path + "' is a raster, which has no features",
                        std::string("Leave out -field, -") + (options.values ? "group" : "name-field") +
                            ", -layer, -all-touched, -inside-only, -min-cover" +
                            (options.shares ? ", -cover" : "") + " and -pixel-coordinates.");
        for (const std::string& note : read_esri_header(*dataset).notes)
            notes.push_back("'" + options.path + "': " + note);
        return make_raster_labels(std::move(dataset), options, grid, notes);
    }
    if (dataset->GetLayerCount() == 0)
        throw Error("'" + options.path + "' has no band and no layer",
                    "Labels can be any raster or vector file that GDAL opens.");
    return make_vector_labels(std::move(dataset), options, grid);
}

} // namespace hsi::raster
