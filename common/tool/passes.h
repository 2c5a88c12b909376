// SPDX-License-Identifier: MIT
// The passes of a tool and their outputs. A tool states each pass once. The pass is run, or with -dry-run its
// plan is printed (tool/plan.h).
#pragma once

#include "raster/output_set.h"
#include "raster/raster_source.h"
#include "stream/pipeline.h"
#include "tool/plan.h"
#include "tool/run.h"

#include <functional>
#include <utility>
#include <vector>

namespace hsi::tool {

/// Runs a pass that prepares dst, and adds it to the report. \return false with -dry-run: the plan of the
/// pass is printed, pixels are not read, and the run continues with assumed results (tool/plan.h).
bool run_pass(Run& run, const stream::CubeSource& source, stream::Operation& operation,
              const std::vector<stream::CubeSink*>& sinks, const stream::PassOptions& pass);

/// Creates the outputs before the pass that fills them. `pass` is called after the outputs have taken their
/// share of the cache, and returns the options of the pass. With -dry-run, prints the plan of the pass and
/// ends the run. \return the options, with the layout of the outputs.
stream::PassOptions begin_writing(Run& run, const stream::CubeSource& source,
                                  const stream::Operation& operation, raster::OutputSet& outputs,
                                  const raster::RasterSource* like,
                                  const std::function<stream::PassOptions()>& pass);

/// Calls begin_writing() and runs the pass. The tool then examines the results and commits the outputs.
void write(Run& run, const stream::CubeSource& source, stream::Operation& operation,
           raster::OutputSet& outputs, const raster::RasterSource* like,
           const std::function<stream::PassOptions()>& pass);

/// Writes an output without pixels that is computed when it is read: a virtual scene (.hsi) from link(), or a
/// VRT from bands(). Makes all checks that can fail first; with -dry-run the run ends after the checks.
template <class Link, class Bands>
void write_virtual(Run& run, const raster::OutputOptions& options, const raster::OutputSpec& spec,
                   const raster::RasterSource& like, const Link& link, const Bands& bands) {
    raster::check_virtual(options, spec, like);
    begin_virtual(run, options);
    if (raster::is_computed(options))
        raster::write_virtual(options, spec, like, link());
    else
        raster::write_virtual(options, spec, like, bands());
}

} // namespace hsi::tool
