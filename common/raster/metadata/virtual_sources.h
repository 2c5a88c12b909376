// SPDX-License-Identifier: MIT
// Copies spectral metadata from the sources of a VRT, because gdalbuildvrt and gdalwarp do not copy it.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <gdal_priv.h>

namespace hsi::raster {

/// Copies wavelengths, FWHM, units and the bad band list from the sources to the bands of a VRT that states
/// no wavelengths. If the sources of a band have different wavelengths, nothing is copied, and a note names
/// the band. Bands with a pixel function are unchanged. `depth` is the nesting depth of this VRT within VRTs.
void take_from_sources(GDALDataset& vrt, SceneMetadata& scene, int depth);

} // namespace hsi::raster
