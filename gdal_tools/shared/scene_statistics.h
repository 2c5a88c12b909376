// SPDX-License-Identifier: MIT
// -statistics: the statistics of many scenes from gdal_hsi_statistics, in place of the first pass over one.
#pragma once

#include "raster/raster_source.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/run.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

/// -statistics FILE. `all`: nothing else is learned of the scene, so that a mask would change nothing.
void add_statistics_option(tool::Builder& args, std::string& file, bool all = true);

/// Statistics for a scene that is to be looked at by them.
struct GivenStatistics {
    std::shared_ptr<raster::RasterSource> source; ///< the scene with their bands alone
    stream::SceneStatistics moments;              ///< in the order of the source's bands; with differences
    std::vector<float> minimum, maximum;          ///< by band, over the pixels of the statistics
};

/// Reads the file, and matches its bands with those of the scene as models' are (model::match_bands()).
/// Reports the origin of the statistics. \throws Error when the file is not a statistics file or is damaged,
/// when bands or scales differ, and when it has no valid pixel; UsageError when the run has a mask that would
/// change nothing.
GivenStatistics read_statistics(tool::Run& run, const std::string& file,
                                const std::shared_ptr<raster::RasterSource>& source);

/// Examines some of the scene's values, which must be like those of the statistics: else it warns, and in any
/// case it reports the result (tool::RangeCheck). Does nothing with -dry-run and for a scene that grows.
void check_values(tool::Run& run, const GivenStatistics& given);

/// The moments at the bands of `scene`, which is given.source or one without some of its bands.
stream::SceneStatistics moments_at(const GivenStatistics& given, const raster::RasterSource& scene);

} // namespace hsi::tools
