// SPDX-License-Identifier: MIT
#include "tool/passes.h"

#include "tool/run_impl.h"

namespace hsi::tool {

bool run_pass(Run& run, const stream::CubeSource& source, stream::Operation& operation,
              const std::vector<stream::CubeSink*>& sinks, const stream::PassOptions& pass) {
    if (run.options().dry_run) {
        print_plan(run, source, operation, pass);
        RunAccess::state(run).assumes = true;
        return false;
    }
    run.add_pass(stream::run_pass(source, operation, sinks, pass));
    return true;
}

stream::PassOptions begin_writing(Run& run, const stream::CubeSource& source,
                                  const stream::Operation& operation, raster::OutputSet& outputs,
                                  const raster::RasterSource* like,
                                  const std::function<stream::PassOptions()>& pass) {
    end_of_plan(run, [&] { print_plan(run, source, operation, pass()); });
    outputs.create(like);
    run.reserve_cache(outputs.cache_bytes());
    auto options = pass();
    options.output_layout = outputs.layout();
    return options;
}

void write(Run& run, const stream::CubeSource& source, stream::Operation& operation,
           raster::OutputSet& outputs, const raster::RasterSource* like,
           const std::function<stream::PassOptions()>& pass) {
    const auto options = begin_writing(run, source, operation, outputs, like, pass);
    run.add_pass(stream::run_pass(source, operation, outputs.sinks(), options));
}

} // namespace hsi::tool
