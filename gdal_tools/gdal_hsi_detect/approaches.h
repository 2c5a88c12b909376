// SPDX-License-Identifier: MIT
// What a method comes to: one function for each way to scores, from the open scene to the committed outputs.
#pragma once

#include "detect/detect.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "raster/raster_source.h"
#include "shared/scene_statistics.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace hsi::detect_tool {

/// mf, cem, ace, rx: the background of the scene, then the scores.
void detect_by_background(tool::Run& run, const Settings& s, DetectComputing& computing,
                          const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                          const detect::PixelMask* mask, const tools::GivenStatistics* given);

/// sam, sid and local RX: the scores alone.
void detect_at_once(tool::Run& run, const Settings& s, DetectComputing& computing,
                    std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                    const detect::PixelMask* mask);

/// The devices for groups. For classes one: the scene lies there. The ranks of a job have parts of it.
std::vector<CudaDevice> devices_for_groups(tool::Run& run, const Settings& s,
                                           const raster::RasterSource& source, size_t targets);

/// Groups of columns: statistics and scores of each at once.
void detect_by_columns(tool::Run& run, const Settings& s, DetectComputing& computing,
                       std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                       const detect::PixelMask* mask);

/// Groups of a map: the moments of all in one pass, then the scores.
void detect_by_classes(tool::Run& run, const Settings& s, DetectComputing& computing,
                       const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                       const detect::PixelMask* mask);

/// sff: one pass over the bands of the features.
void detect_by_features(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> source,
                        DetectTargets& targets, const detect::PixelMask* mask);

/// mtmf: the scene's components, then the scores.
void detect_among_components(tool::Run& run, const Settings& s,
                             const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets);

} // namespace hsi::detect_tool
