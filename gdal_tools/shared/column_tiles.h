// SPDX-License-Identifier: MIT
// Passes over groups of columns (stream/column_strips.h): warnings, tiles and memory.
#pragma once

#include "raster/raster_source.h"
#include "stream/pipeline.h"
#include "tool/run.h"

#include <cstdint>
#include <memory>
#include <string>

namespace hsi::tools {

/// Warns if the scene is a map: its columns are not detectors of a scanner. `what`: name of the option, for
/// messages.
void warn_of_map_columns(tool::Run& run, const std::string& what, const raster::RasterSource& source);

/// Sets tiles of whole groups: a few tiles per thread, as memory allows. Does nothing if the user has set a
/// tile size. \throws Error if memory is too small for one group.
void set_column_tiles(const std::string& what, int64_t columns, const stream::CubeSource& cube,
                      const stream::Operation& operation, stream::PassOptions& pass);

/// Returns a copy of the scene in memory, or the scene itself. Groups of columns are read with all lines, and
/// therefore in small pieces, which is slow in a compressed or remote file. The scene itself is returned if
/// the copy would take more than half of the free memory, or if several ranks share the work. It is also
/// returned for a local uncompressed file: its pages are in the system's cache, and reading them is faster
/// than making a copy.
std::shared_ptr<const stream::CubeSource>
in_memory_for_columns(tool::Run& run, const std::shared_ptr<raster::RasterSource>& source);

} // namespace hsi::tools
