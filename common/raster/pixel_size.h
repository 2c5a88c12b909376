// SPDX-License-Identifier: MIT
// How large a pixel is on the ground.
#pragma once

#include "raster/raster_source.h"

#include <optional>

namespace hsi::raster {

/// The square root of a pixel's area in metres by the geotransform, the SRS's unit taken into account;
/// nothing without a geotransform or when the SRS is not projected.
std::optional<double> pixel_metres(const RasterSource& source);

} // namespace hsi::raster
