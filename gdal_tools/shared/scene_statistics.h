// SPDX-License-Identifier: MIT
// Reads -statistics: statistics of many scenes, from a file of gdal_hsi_statistics. They replace the first
// pass over a scene.
#pragma once

#include "raster/raster_source.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/run.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

/// Adds -statistics FILE. `all`: true if the tool uses no other statistics of the scene; a mask would then
/// have no effect.
void add_statistics_option(tool::Builder& args, std::string& file, bool all = true);

/// Statistics from a file, and the scene to which they are applied.
struct GivenStatistics {
    std::shared_ptr<raster::RasterSource> source; ///< the scene with only the bands of the statistics
    stream::SceneStatistics moments; ///< moments in the order of the source's bands, including differences
    /// Minimum and maximum of each band over the pixels of the statistics.
    std::vector<float> minimum, maximum;
};

/// Reads the file, and matches its bands with the bands of the scene as the bands of a model
/// (model::match_bands()). Reports the origin of the statistics. \throws Error if the file is not a
/// statistics file or is damaged, if bands or scales differ, or if the statistics have no valid pixel;
/// UsageError if the mask of the run would have no effect.
GivenStatistics read_statistics(tool::Run& run, const std::string& file,
                                const std::shared_ptr<raster::RasterSource>& source);

/// Compares some values of the scene with the range of the statistics. Warns if they are not similar, and
/// always reports the result (tool::RangeCheck). Does nothing with -dry-run and for a growing scene.
void check_values(tool::Run& run, const GivenStatistics& given);

/// Returns the moments at the bands of `scene`, which is given.source, possibly without some bands.
stream::SceneStatistics moments_at(const GivenStatistics& given, const raster::RasterSource& scene);

} // namespace hsi::tools
