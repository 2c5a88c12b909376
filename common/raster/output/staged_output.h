// SPDX-License-Identifier: MIT
// Writes outputs whose driver can only copy a finished raster. The pixels are first written to a temporary
// GTiff, the stage.
#pragma once

#include "raster/output_format.h"

#include <gdal_priv.h>

namespace hsi::raster {

/// Changes the metadata of `stage` so that the netCDF driver copies it correctly: a position, the name and
/// coordinates of the band axis, and properties that are the same for all bands. Does nothing for other
/// drivers. Call it when the stage has all its metadata.
void prepare_stage(const Target& target, GDALDataset& stage);

} // namespace hsi::raster
