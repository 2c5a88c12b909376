// SPDX-License-Identifier: MIT
// Spectral metadata from a VRT's sources, since gdalbuildvrt and gdalwarp leave them out of a mosaic.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <gdal_priv.h>

namespace hsi::raster {

/// Gives the bands of a VRT without wavelengths those of its sources, with widths, units and the bad-band
/// list, if each band is made of bands with equal wavelengths. A note says where they differ. Bands that a
/// pixel function makes stay as they are. `depth`: of a VRT within VRTs.
void take_from_sources(GDALDataset& vrt, SceneMetadata& scene, int depth);

} // namespace hsi::raster
