// SPDX-License-Identifier: MIT
#include "second_scene.h"

#include "core/error.h"
#include "raster/labels/labels.h"

#include <cstdio>
#include <string>

namespace hsi::tools {
namespace {

std::string place_text(const raster::Grid& grid) {
    const auto& gt = *grid.geotransform;
    char text[192];
    std::snprintf(text, sizeof text, "%.12g, %.9g, %.9g, %.12g, %.9g, %.9g", gt[0], gt[1], gt[2], gt[3],
                  gt[4], gt[5]);
    return text;
}

} // namespace

void check_same_place(tool::Run& run, const std::string& option, const raster::RasterSource& other,
                      const raster::RasterSource& source) {
    auto a = raster::grid_of(other);
    const auto b = raster::grid_of(source);
    if (!a.geotransform || !b.geotransform) return;
    const std::string name = option + " " + other.path();
    if (!raster::same_grid(a, b)) {
        a.srs_wkt.clear();
        const bool srs = raster::same_grid(a, b);
        throw Error(name + " lies elsewhere than " + source.path() + ": " +
                        (srs ? "their SRS differ"
                             : "its geotransform is " + place_text(a) + ", the other " + place_text(b)),
                    "Pixels are taken one by one: warp it to that grid (gdalwarp -t_srs -te -ts), or correct "
                    "the georeference that is wrong (gdal_edit.py).");
    }
    if (a.srs_wkt.empty() != b.srs_wkt.empty())
        run.warn((a.srs_wkt.empty() ? name : source.path()) +
                 " has no SRS: taken to be that of the other file");
}

} // namespace hsi::tools
