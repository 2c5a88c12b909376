// SPDX-License-Identifier: MIT
// The passes of a tool and their outputs. A tool states each of them once; the frame runs it, or with
// -dry-run prints its plan (tool/plan.h).
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

/// Runs a pass on the way to dst and adds it to the report. \return false with -dry-run: the plan is printed,
/// pixels are not read, and results are assumed from here on (Run::assume()).
bool run_pass(Run& run, const stream::CubeSource& source, stream::Operation& operation,
              const std::vector<stream::CubeSink*>& sinks, const stream::PassOptions& pass);

/// Makes the outputs before the pass that fills them. `pass` makes its options once the outputs have taken
/// their share of the cache. With -dry-run the plan of the pass is printed and the run ends.
/// \return the options, with the layout of the outputs.
stream::PassOptions begin_writing(Run& run, const stream::CubeSource& source,
                                  const stream::Operation& operation, raster::OutputSet& outputs,
                                  const raster::RasterSource* like,
                                  const std::function<stream::PassOptions()>& pass);

/// begin_writing(), and the pass. The tool looks at the results, and commits the outputs.
void write(Run& run, const stream::CubeSource& source, stream::Operation& operation,
           raster::OutputSet& outputs, const raster::RasterSource* like,
           const std::function<stream::PassOptions()>& pass);

/// An output without pixels, computed when it is read: an .hsi from `link`, a VRT from the bands that `bands`
/// makes. All checks that can fail come first; with -dry-run the run ends.
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
