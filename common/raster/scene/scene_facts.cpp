// SPDX-License-Identifier: MIT
#include "raster/scene_facts.h"

#include "core/error.h"
#include "raster/raster_source.h"

namespace hsi::raster {

bool BandValues::one_factor() const {
    return std::all_of(scale.begin(), scale.end(), [&](double v) { return v == scale.front(); }) &&
           std::all_of(offset.begin(), offset.end(), [](double v) { return v == 0; });
}

const char* access_name(Access access) {
    switch (access) {
    case Access::raw:
        return "raw";
    case Access::chunks:
        return "chunks";
    case Access::computed:
        return "computed";
    case Access::gdal:
        break;
    }
    return "gdal";
}

std::shared_ptr<RasterSource> RasterSource::without_bands(const std::vector<int>& indices) const {
    std::vector<int> others;
    for (int k = 0; k < shape().bands; ++k)
        if (std::find(indices.begin(), indices.end(), k) == indices.end()) others.push_back(k);
    if (others.empty())
        throw Error("no band of '" + path() + "' is left",
                    "All bands are empty: check the nodata value (-srcnodata).");
    return with_bands(others);
}

} // namespace hsi::raster
