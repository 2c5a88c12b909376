// SPDX-License-Identifier: MIT
// Layers of points or polygons, written by the vector driver that belongs to the extension of the file. The
// file appears under its name when it is complete, or not at all.
#pragma once

#include "raster/raster_source.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

class RunFiles;

struct VectorOptions {
    std::string path;
    std::string format; ///< -of; empty: from the extension of path, GPKG if path has none
    std::vector<std::string> dataset_options; ///< -dsco NAME=VALUE
    std::vector<std::string>
        layer_options; ///< -lco NAME=VALUE; CSV adds GEOMETRY=AS_XY (polygons: AS_WKT) when not given
    bool overwrite = false;
    std::string
        history; ///< the command line, for the layer's metadata item HSI_HISTORY if the driver stores it
    std::string role = "dst"; ///< option that names the output, for messages
    /// If set, the output is registered in this run, and RunFiles::commit() renames it.
    std::shared_ptr<RunFiles> run;
};

struct PointField {
    std::string name;
    /// True: integers of 31 bits, enough for lines and samples of a raster; false: doubles.
    bool whole = false;
};

/// A closed ring of x and y: the last position equals the first.
using Ring = std::vector<std::array<double, 2>>;

struct Point {
    double x = 0, y = 0;
    std::vector<double> values; ///< one per field; NaN: unset
    std::string text = {};      ///< value of PointLayer::text_field
    /// The polygons of a feature in a layer of polygons, which are used instead of x and y. Each polygon is a
    /// list of rings: the outer ring, then the holes.
    std::vector<std::vector<Ring>> polygons = {};
};

struct PointLayer {
    std::string name;
    std::string srs_wkt; ///< WKT or EPSG:CODE; empty: unknown
    bool placed = true;  ///< false: x and y are pixels, not positions in the SRS
    std::vector<PointField> fields;
    bool polygons = false;       ///< geometries are MultiPolygons
    std::string text_field = {}; ///< the name of a further text field; empty if there is no such field
    std::vector<Point> points;
};

/// Makes all checks that can fail before the work begins: an existing file without overwrite, an unknown
/// extension or driver, a driver that cannot write vectors, a folder that does not exist or is not writable.
/// Throws Error or UsageError.
void check_vector_output(const VectorOptions& options);

/// Writes the layer. In formats whose readers assume degrees (GeoJSON, KML, GPX and similar formats),
/// positions are transformed to WGS 84. If the layer has no georeference, GeoJSON gets features without a
/// position, as RFC 7946 allows, and the other formats for degrees are refused. Throws Error with the
/// driver's message; an old file is then unchanged.
void write_points(const VectorOptions& options, const PointLayer& layer);

/// Writes several layers, or only the first if the format has one layer per file. \return the number of
/// layers written.
size_t write_layers(const VectorOptions& options, const std::vector<PointLayer>& layers);

/// Returns whether the written points have positions: false for a layer without georeference in GeoJSON.
bool keeps_places(const VectorOptions& options, const PointLayer& layer);

/// The position of the centre of a pixel. The pixel is given by line and sample in the source's window,
/// counted from 0.
struct PixelPlace {
    double x = 0, y = 0;     ///< in the scene's SRS; without a position: sample + 0.5, -(line + 0.5)
    double lon = 0, lat = 0; ///< degrees, WGS 84; NaN if the scene has no SRS or no geotransform
};

/// Returns the position of each pixel (line, sample). Positions come from the geotransform, or from the
/// arrays of longitude and latitude of a product; the scene is this product or was made from it. For any
/// other scene, positions are pixel coordinates as in QGIS: x grows by 1 per sample, and y falls by 1 per
/// line, both from 0.
std::vector<PixelPlace> places_of_pixels(const RasterSource& source,
                                         const std::vector<std::pair<int64_t, int64_t>>& pixels);

/// Returns the SRS of the positions from places_of_pixels() as WKT; empty if it is unknown.
std::string srs_of_places(const RasterSource& source);

/// If the scene has only a georeference that the tools do not apply to pixels, returns its kind for a
/// message, such as "ground control points". Empty if pixels have positions, or if the scene has no
/// georeference.
std::string unread_georeference(const RasterSource& source);

/// Returns the usual name of a file's only layer: "targets" for "/tmp/targets.gpkg".
std::string layer_name(const std::string& path);

} // namespace hsi::raster
