// SPDX-License-Identifier: MIT
// One function for each approach of gdal_hsi_detect. Each function starts with the open scene and ends with
// the committed outputs.
#pragma once

#include "detect/detect.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "raster/raster_source.h"
#include "raster/spectral_library.h"
#include "shared/scene_statistics.h"

#include <memory>

namespace hsi::detect_tool {

/// sam and sid: computes scores, which need no background.
void detect_alone(tool::Run& run, const Settings& s, const Alone& how,
                  std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                  const detect::PixelMask* mask);

/// mf, cem, ace and rx: computes the background of the scene, then the scores.
void detect_by_background(tool::Run& run, const Settings& s, const OneBackground& how,
                          const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                          const detect::PixelMask* mask, const tools::GivenStatistics* given);

/// rx with a ring around each pixel as background: computes the scores in one pass.
void detect_in_rings(tool::Run& run, const Settings& s, const Rings& how,
                     std::shared_ptr<raster::RasterSource> source, const DetectTargets& targets,
                     const detect::PixelMask* mask);

/// mf, cem, ace and rx with a separate background for each group of pixels. For groups of columns, computes
/// statistics and scores in one pass. For classes of a map, one pass computes the moments of all classes, and
/// further passes compute the scores.
void detect_by_groups(tool::Run& run, const Settings& s, const Groups& how,
                      const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                      const detect::PixelMask* mask);

/// sff: makes one pass over the bands of the features.
void detect_by_features(tool::Run& run, const Settings& s, const Features& how,
                        std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                        const detect::PixelMask* mask);

/// mtmf: computes the components of the scene, then the scores.
void detect_among_components(tool::Run& run, const Settings& s, const Mixtures& how,
                             const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets);

/// sam and sid between the spectra of a library (src) and the targets. Writes dst, a table with one row per
/// spectrum. \throws UsageError for other methods, and for options that apply only to scenes.
void detect_in_library(tool::Run& run, const Settings& s, const raster::SpectralLibrary& library);

} // namespace hsi::detect_tool
