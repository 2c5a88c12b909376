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

/// Columns of a map are no detectors of a scanner. `what`: the option, for messages.
void warn_of_map_columns(tool::Run& run, const std::string& what, const raster::RasterSource& source);

/// Tiles of whole groups, where the user forces none: a few for each lane, and what memory bears.
/// \throws Error when that is not one group.
void set_column_tiles(const std::string& what, int64_t columns, const stream::CubeSource& cube,
                      const stream::Operation& operation, stream::PassOptions& pass);

/// The scene itself, or a copy in memory where that has room for one: groups of columns are read with all
/// lines, and so in small pieces. An uncompressed file has these in the system's cache, where the pages of a
/// copy would have to be cleared first.
std::shared_ptr<const stream::CubeSource>
in_memory_for_columns(tool::Run& run, const std::shared_ptr<raster::RasterSource>& source);

} // namespace hsi::tools
