// SPDX-License-Identifier: MIT
// Reads masks from files. A mask selects the pixels of a scene that count.
#pragma once

#include "raster/raster_source.h"
#include "stream/pixel_mask.h"
#include "tool/run.h"

#include <memory>
#include <string>

namespace hsi::tool {

/// Returns a mask of the pixels of `scene`. From a raster file, the mask has the pixels where the raster is
/// neither 0, nodata nor NaN; from a vector file, the pixels inside its features. Pixels outside of the file
/// are excluded. A file with another grid or SRS is treated as for labels (raster/labels.h). `how` gets facts
/// about the file, for reports. \throws Error that names `role` ("-mask") and the file, as
/// LabelSource::open(); also if the mask would take more than a quarter of -memory, or if the mask is empty
std::shared_ptr<stream::PixelMask> read_mask(Run& run, const std::string& role, const std::string& path,
                                             const raster::RasterSource& scene, std::string& how);

/// Returns the mask that -mask, -mask-exclude and -mask-flags define together, and reports it to the user and
/// in the report. \throws as read_mask(). With one_of_many, for a tool with many scenes, the mask may be
/// empty.
std::shared_ptr<const stream::PixelMask> read_scene_mask(Run& run, const raster::RasterSource& scene,
                                                         bool one_of_many = false);

} // namespace hsi::tool
