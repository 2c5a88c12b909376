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

/// Runs `operation`, which must have no halo, over the lines of the growing `source` until its end; `outputs`
/// (may be null) grow with it. Available lines are processed in passes of some megabytes, so that the first
/// lines of a piece do not wait for the last ones. The report shows the passes as one. `options` are the
/// run's options for one pass. \return the scene with all of its lines. \throws as Growth::wait() and
/// run_pass()
std::shared_ptr<raster::RasterSource> follow(Run& run, const raster::RasterSource& source,
                                             stream::Operation& operation, raster::OutputSet* outputs,
                                             const stream::PassOptions& options);

/// Checks the end of `source` when the outputs are committed. \throws Error, and keeps the outputs, if
/// `source` grew and ended within a line.
void check_last_line(Run& run, const raster::RasterSource& source);

} // namespace hsi::tool
