// SPDX-License-Identifier: MIT
// Masks from files: which pixels of a scene count.
#pragma once

#include "raster/raster_source.h"
#include "stream/pixel_mask.h"
#include "tool/run.h"

#include <memory>
#include <string>

namespace hsi::tool {

/// The pixels of `scene` where the raster is not 0, or that are inside the features of the vector file: 0,
/// nodata, NaN and pixels outside of the file are not in it. Other grids and SRS are treated as for labels
/// (raster/labels.h). `how` gets facts about the file, for reports. \throws Error naming `role` ("-mask") and
/// the file: as LabelSource::open(), when the mask would take more than a quarter of -memory, and when no
/// pixel is in it.
std::shared_ptr<stream::PixelMask> read_mask(Run& run, const std::string& role, const std::string& path,
                                             const raster::RasterSource& scene, std::string& how);

/// The run's own mask, of -mask, -mask-exclude and -mask-flags, reported to the user and in the report.
/// \throws as read_mask(); but a mask of many scenes may be empty in one.
std::shared_ptr<const stream::PixelMask> read_scene_mask(Run& run, const raster::RasterSource& scene,
                                                         bool one_of_many = false);

} // namespace hsi::tool
