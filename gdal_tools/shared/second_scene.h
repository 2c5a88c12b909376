// SPDX-License-Identifier: MIT
// A second raster whose pixels are processed together with those of src.
#pragma once

#include "core/error.h"
#include "raster/labels.h"
#include "raster/raster_source.h"
#include "tool/run.h"

#include <cstdio>
#include <string>

namespace hsi::tools {

/// Checks that `other`, which has the size of `source`, also has its position, by the rule of
/// raster::same_grid(). `option`: option that names `other`, such as "-scene". A scene without georeference
/// is accepted. A scene without an SRS is accepted with a warning. \throws Error with the names of both.
inline void check_same_place(tool::Run& run, const std::string& option, const raster::RasterSource& other,
                             const raster::RasterSource& source) {
    const auto place_text = [](const raster::Grid& grid) {
        const auto& gt = *grid.geotransform;
        char text[192];
        std::snprintf(text, sizeof text, "%.12g, %.9g, %.9g, %.12g, %.9g, %.9g", gt[0], gt[1], gt[2], gt[3],
                      gt[4], gt[5]);
        return std::string(text);
    };
    auto a = raster::grid_of(other);
    const auto b = raster::grid_of(source);
    if (!a.geotransform || !b.geotransform) return;
    const std::string name = option + " " + other.path();
    if (!raster::same_grid(a, b)) {
        a.srs_wkt.clear();
        const bool srs = raster::same_grid(a, b);
        throw Error(name + " has another position than " + source.path() + ": " +
                        (srs ? "their SRS differ"
                             : "its geotransform is " + place_text(a) + ", the other is " + place_text(b)),
                    "Warp it to that grid (gdalwarp -t_srs -te -ts), or correct the wrong georeference "
                    "(gdal_edit.py).");
    }
    if (a.srs_wkt.empty() != b.srs_wkt.empty())
        run.warn((a.srs_wkt.empty() ? name : source.path()) +
                 " has no SRS: the SRS of the other file is assumed");
}

} // namespace hsi::tools
