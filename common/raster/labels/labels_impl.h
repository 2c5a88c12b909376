// SPDX-License-Identifier: MIT
// What a LabelSource and its readers share: SRSs and what coordinates mean.
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

/// Empty when there is none.
std::string wkt_of(const OGRSpatialReference* srs);
/// True also when one of them is unknown.
bool same_srs(const std::string& a, const std::string& b);
/// At the corners of `samples` x `lines` pixels, to a thousandth of a pixel.
bool same_geotransform(const GeoTransform& a, const GeoTransform& b, int64_t samples, int64_t lines);
/// The SRS is one of longitudes and latitudes, which may go from -180 to 180 or from 0 to 360.
bool counts_degrees(const std::string& wkt);
inline constexpr double full_turn = 360; ///< in degrees
/// For coordinates of the SRS `from`; path: for messages. Throws Error when there is no way.
Transformation transformation(const std::string& from, const std::string& to, const std::string& path);

/// Coordinates in pixels from the grid's upper left corner. What comes out of a geotransform is a border of
/// pixels but for the last digits.
inline double snapped(double v) {
    const double whole = std::round(v);
    return std::fabs(v - whole) < 1e-6 ? whole : v;
}

/// Throw Error as LabelSource::open() does. notes: what was found before, for LabelSource::notes().
std::unique_ptr<LabelSource> make_raster_labels(DatasetHandle dataset, const LabelOptions& options,
                                                const Grid* grid, const std::vector<std::string>& notes);
std::unique_ptr<LabelSource> make_vector_labels(DatasetHandle dataset, const LabelOptions& options,
                                                const Grid* grid, std::vector<std::string> notes = {});

} // namespace hsi::raster
