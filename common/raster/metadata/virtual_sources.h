// SPDX-License-Identifier: MIT
// What a VRT's sources know of its bands. gdalbuildvrt and gdalwarp leave it out of a mosaic.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <gdal_priv.h>

namespace hsi::raster {

/// Gives the bands of a VRT that has no wavelengths those of its sources, with widths, units and the bad-band
/// list, where each band is made of bands with equal wavelengths. A note says where they differ. Bands that a
/// pixel function makes stay as they are. `depth`: of a VRT within VRTs.
void take_from_sources(GDALDataset& vrt, SceneMetadata& scene, int depth);

} // namespace hsi::raster
