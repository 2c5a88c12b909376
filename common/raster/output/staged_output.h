// SPDX-License-Identifier: MIT
// Writes outputs whose driver can only copy a finished raster. The pixels are first written to a temporary
// GTiff, the stage.
#pragma once

#include "raster/output_format.h"

#include <gdal_priv.h>

namespace hsi::raster {

/// Adds metadata to `stage` that the driver needs for the copy but cannot derive. Call this function when the
/// stage has all its metadata.
void prepare_stage(const Target& target, GDALDataset& stage);

} // namespace hsi::raster
