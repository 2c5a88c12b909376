// SPDX-License-Identifier: MIT
// Models of gdal_hsi_normalise, and coefficients of HyTools.
#pragma once

#include "normalise/normalise.h"
#include "raster/raster_source.h"
#include "tool/run.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::normalise_tool {

/// Reads a model. \throws Error with the file name.
normalise::Model read_model(const std::string& path);

/// Reads the model of -apply, or HyTools' coefficients of topography and BRDF from one or two files. Replaces
/// `scene` by the scene with only the bands of the model. \throws Error with the file name.
normalise::Model read_applied(tool::Run& run, const std::vector<std::string>& files,
                              std::shared_ptr<raster::RasterSource>& scene);

} // namespace hsi::normalise_tool
