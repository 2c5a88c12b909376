// SPDX-License-Identifier: MIT
// The end of a dataset that was written.
#pragma once

#include "raster/gdal/dataset_handle.h"

namespace hsi::raster {

/// Writes what GDAL still holds of the dataset, and closes it. From GDAL 3.13 on a file's last kilobytes wait
/// in a buffer of GDAL's own, and closing does not tell when the disk does not take them; reading a pixel
/// writes them before, with an answer. `pixels` false: the dataset's pixels are not its own business. \return
/// false: something did not get to the disk; what GDAL says of it, if anything, is in the GdalErrors of this
/// thread.
bool close_written(DatasetHandle dataset, bool pixels = true);

} // namespace hsi::raster
