// SPDX-License-Identifier: MIT
// A raster beside src whose pixels are taken one by one with those of src.
#pragma once

#include "raster/source/raster_source.h"
#include "tool/run.h"

#include <string>

namespace hsi::tools {

/// `other`, named by `option` ("-scene") and of the size of `source`, must lie where source lies, by the rule
/// of raster::same_grid(). One that has no georeference is taken; one without an SRS, too, with a warning.
/// Throws Error naming both.
void check_same_place(tool::Run& run, const std::string& option, const raster::RasterSource& other,
                      const raster::RasterSource& source);

} // namespace hsi::tools
