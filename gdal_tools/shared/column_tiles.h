// SPDX-License-Identifier: MIT
// Passes over groups of columns (stream/column_strips.h): how they read a scene.
#pragma once

#include "raster/raster_source.h"
#include "stream/pipeline.h"
#include "tool/run.h"

#include <cstdint>
#include <memory>
#include <string>

namespace hsi::tools {

/// Warns if the scene is a map, whose columns are not detectors of a scanner. `what`: the option, for
/// messages.
void warn_of_map_columns(tool::Run& run, const std::string& what, const raster::RasterSource& source);

/// Sets tiles of whole groups, unless the user forces a size: a few per lane, as memory allows. \throws Error
/// if memory is too small for one group.
void set_column_tiles(const std::string& what, int64_t columns, const stream::CubeSource& cube,
                      const stream::Operation& operation, stream::PassOptions& pass);

/// Returns the scene itself, or a copy in memory if there is room. Groups of columns are read with all lines,
/// and so in small pieces. An uncompressed file is in the system's cache, so reading it is faster than
/// clearing the pages of a copy.
std::shared_ptr<const stream::CubeSource>
in_memory_for_columns(tool::Run& run, const std::shared_ptr<raster::RasterSource>& source);

} // namespace hsi::tools
