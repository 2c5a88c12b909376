// SPDX-License-Identifier: MIT
// -statistics: the statistics of many scenes from gdal_hsi_statistics, which replace the first pass over a
// scene.
#pragma once

#include "raster/raster_source.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/run.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

/// Adds -statistics FILE. `all`: the tool learns nothing else from the scene, so a mask would change nothing.
void add_statistics_option(tool::Builder& args, std::string& file, bool all = true);

/// Statistics that are applied to a scene.
struct GivenStatistics {
    std::shared_ptr<raster::RasterSource> source; ///< the scene with only the statistics' bands
    stream::SceneStatistics moments;              ///< in the order of the source's bands; with differences
    std::vector<float> minimum, maximum;          ///< by band, over the pixels of the statistics
};

/// Reads the file, and matches its bands with those of the scene like those of a model
/// (model::match_bands()). Reports the origin of the statistics. \throws Error if the file is not a
/// statistics file or is damaged, if bands or scales differ, and if it has no valid pixel; UsageError if the
/// run has a mask that would change nothing.
GivenStatistics read_statistics(tool::Run& run, const std::string& file,
                                const std::shared_ptr<raster::RasterSource>& source);

/// Examines some of the scene's values. Warns if they are not similar to those of the statistics, and always
/// reports the result (tool::RangeCheck). Does nothing with -dry-run and for a growing scene.
void check_values(tool::Run& run, const GivenStatistics& given);

/// Returns the moments at the bands of `scene`, which is given.source or given.source without some bands.
stream::SceneStatistics moments_at(const GivenStatistics& given, const raster::RasterSource& scene);

} // namespace hsi::tools
