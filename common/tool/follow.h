// SPDX-License-Identifier: MIT
// -follow: a pass over a scene that is still being written, as its lines arrive.
#pragma once

#include "raster/output_set.h"
#include "raster/raster_source.h"
#include "stream/operation.h"
#include "stream/pipeline.h"
#include "tool/run.h"

#include <memory>

namespace hsi::tool {

/// Runs `operation`, which must have no halo, over the lines of a growing `source` until its end. `outputs`
/// (may be null) grow with the source. The lines that have arrived are processed in several passes of some
/// megabytes, so that the results of the first lines do not wait for the last lines. The report shows the
/// passes as one. `options` are the run's options for one pass. \return the scene with all of its lines.
/// \throws as Growth::wait() and run_pass()
std::shared_ptr<raster::RasterSource> follow(Run& run, const raster::RasterSource& source,
                                             stream::Operation& operation, raster::OutputSet* outputs,
                                             const stream::PassOptions& options);

/// Checks the end of `source`. Call this function when the outputs are committed. \throws Error if `source`
/// has grown and ends within a line; the outputs are kept.
void check_last_line(Run& run, const raster::RasterSource& source);

} // namespace hsi::tool
