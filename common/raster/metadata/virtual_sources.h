// SPDX-License-Identifier: MIT
// Takes spectral metadata from a VRT's sources, since gdalbuildvrt and gdalwarp leave them out of a mosaic.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <gdal_priv.h>

namespace hsi::raster {

/// Copies wavelengths, widths, units and the bad-band list from the sources to the bands of a VRT without
/// wavelengths, if each band is made from bands with equal wavelengths. A note states where they differ.
/// Bands of a pixel function are unchanged. `depth`: the depth of a VRT within VRTs.
void take_from_sources(GDALDataset& vrt, SceneMetadata& scene, int depth);

} // namespace hsi::raster
