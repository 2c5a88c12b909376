// SPDX-License-Identifier: MIT
// The place of an output in the file system.
#pragma once

#include "raster/sink/raster_sink.h"

#include <gdal_priv.h>

namespace hsi::raster {

/// The place of an output: its folder, what is there already, what else it would fall on. Throws Error or
/// UsageError.
void check_place(const OutputOptions& options, GDALDriver* driver);

} // namespace hsi::raster
