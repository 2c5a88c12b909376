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

/// Columns of a map are not detectors of a scanner. `what`: the option, for messages.
void warn_of_map_columns(tool::Run& run, const std::string& what, const raster::RasterSource& source);

/// Sets tiles of whole groups, unless the user forces a size: a few for each lane, as memory allows.
/// \throws Error when memory is too small for one group.
void set_column_tiles(const std::string& what, int64_t columns, const stream::CubeSource& cube,
                      const stream::Operation& operation, stream::PassOptions& pass);

/// The scene itself, or a copy in memory where that has room for one: groups of columns are read with all
/// lines, and so in small pieces. An uncompressed file has these in the system's cache, where the pages of a
/// copy would have to be cleared first.
std::shared_ptr<const stream::CubeSource>
in_memory_for_columns(tool::Run& run, const std::shared_ptr<raster::RasterSource>& source);

} // namespace hsi::tools
