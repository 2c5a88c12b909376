// SPDX-License-Identifier: MIT
// Outputs whose driver can only copy a finished raster. A GTiff is made first, the stage.
#pragma once

#include "raster/output_format.h"

#include <gdal_priv.h>

namespace hsi::raster {

/// Sets options of the driver that copies `stage` which it would not find itself. Call it when the stage has
/// all its metadata.
void prepare_stage(const Target& target, GDALDataset& stage);

} // namespace hsi::raster
