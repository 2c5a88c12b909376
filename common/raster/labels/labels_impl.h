// SPDX-License-Identifier: MIT
// Shared code of LabelSource and its readers: SRSs and the meaning of coordinates.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/labels.h"
#include "raster/labels/numbered_labels.h"

#include <ogr_spatialref.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::raster {

using GeoTransform = std::array<double, 6>;

struct DestroyTransformation {
    void operator()(OGRCoordinateTransformation* t) const { OGRCoordinateTransformation::DestroyCT(t); }
};
using Transformation = std::unique_ptr<OGRCoordinateTransformation, DestroyTransformation>;

/// Returns the SRS as WKT; empty if `srs` is null or unknown.
std::string wkt_of(const OGRSpatialReference* srs);
/// Returns true if two SRSs, given as WKT, are equivalent, or if one of them is unknown (empty).
bool same_srs(const std::string& a, const std::string& b);
/// Returns true if two geotransforms give the same positions, to a thousandth of a pixel, for the corners of
/// a raster of `samples` x `lines` pixels.
bool same_geotransform(const GeoTransform& a, const GeoTransform& b, int64_t samples, int64_t lines);
/// Returns true if the SRS is geographic, with longitudes and latitudes in degrees. Such longitudes may
/// differ by full turns: -180 to 180 or 0 to 360.
bool counts_degrees(const std::string& wkt);
inline constexpr double full_turn = 360; ///< degrees
/// Returns the transformation of coordinates from the SRS `from` to the SRS `to`. Throws Error if PROJ
/// knows no transformation. For its message: `path` is the file of labels, and `to_scene` states that `to` is
/// the scene's SRS; otherwise, `from` is.
Transformation transformation(const std::string& from, const std::string& to, const std::string& path,
                              bool to_scene);

/// Rounds a coordinate to a pixel border if it is within a millionth of a pixel of the border. Coordinates
/// are in pixels from the grid's upper left corner. Without rounding, coordinates on pixel borders would be
/// inexact in their last digits.
inline double snapped(double v) {
    const double whole = std::round(v);
    return std::fabs(v - whole) < 1e-6 ? whole : v;
}

/// Both functions make the labels of an opened dataset, and throw Error as LabelSource::open() does. `notes`
/// has notes of earlier steps, which LabelSource::notes() will also return.
std::unique_ptr<LabelSource> make_raster_labels(DatasetHandle dataset, const LabelOptions& options,
                                                const Grid* grid, const std::vector<std::string>& notes);
std::unique_ptr<LabelSource> make_vector_labels(DatasetHandle dataset, const LabelOptions& options,
                                                const Grid* grid, std::vector<std::string> notes = {});

} // namespace hsi::raster
