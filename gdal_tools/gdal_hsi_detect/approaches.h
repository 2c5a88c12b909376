// SPDX-License-Identifier: MIT
// The work of a method: one function for each approach to scores, from the open scene to the committed
// outputs.
#pragma once

#include "detect/detect.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "raster/raster_source.h"
#include "raster/spectral_library.h"
#include "shared/scene_statistics.h"

#include <memory>

namespace hsi::detect_tool {

/// sam and sid: computes only the scores.
void detect_alone(tool::Run& run, const Settings& s, const Alone& how,
                  std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                  const detect::PixelMask* mask);

/// mf, cem, ace, rx: computes the background of the scene, then the scores.
void detect_by_background(tool::Run& run, const Settings& s, const OneBackground& how,
                          const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                          const detect::PixelMask* mask, const tools::GivenStatistics* given);

/// rx with the ring around each pixel: computes only the scores.
void detect_in_rings(tool::Run& run, const Settings& s, const Rings& how,
                     std::shared_ptr<raster::RasterSource> source, const DetectTargets& targets,
                     const detect::PixelMask* mask);

/// mf, cem, ace, rx by groups. For groups of columns, computes statistics and scores in one pass. For the
/// classes of a map, computes the moments of all classes in one pass, then the scores.
void detect_by_groups(tool::Run& run, const Settings& s, const Groups& how,
                      const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                      const detect::PixelMask* mask);

/// sff: makes one pass over the bands of the features.
void detect_by_features(tool::Run& run, const Settings& s, const Features& how,
                        std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                        const detect::PixelMask* mask);

/// mtmf: computes the scene's components, then the scores.
void detect_among_components(tool::Run& run, const Settings& s, const Mixtures& how,
                             const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets);

/// sam and sid between the spectra of a library, src, and the targets: a table, dst, of a spectrum per row.
/// \throws UsageError for other methods and for what only a scene has.
void detect_in_library(tool::Run& run, const Settings& s, const raster::SpectralLibrary& library);

} // namespace hsi::detect_tool
