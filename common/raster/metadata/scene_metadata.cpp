// SPDX-License-Identifier: MIT
#include "raster/metadata/scene_metadata.h"

#include <cpl_string.h>

#include <algorithm>
#include <cstdlib>

namespace hsi::raster {

bool BandMetadata::bad() const {
    if (bbl.empty()) return false;
    char* end = nullptr;
    const double v = std::strtod(bbl.c_str(), &end);
    // ENVI: 0 is bad, 1 is good. EnMAP-Box also writes words.
    if (end == bbl.c_str()) return EQUAL(bbl.c_str(), "false") || EQUAL(bbl.c_str(), "bad");
    return v == 0;
}

bool SceneMetadata::window_geotransform(double (&gt)[6]) const {
    if (!geotransform) return false;
    std::copy(geotransform->begin(), geotransform->end(), gt);
    const auto x = static_cast<double>(window.x), y = static_cast<double>(window.y);
    gt[0] += x * gt[1] + y * gt[2];
    gt[3] += x * gt[4] + y * gt[5];
    return true;
}

} // namespace hsi::raster
