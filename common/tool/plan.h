// SPDX-License-Identifier: MIT
// The plan that -dry-run prints. A dry run goes down the tool's body like any other and ends at the pass that
// fills dst, or where the tool ends it (end_of_plan()). Between passes it has assumed results in place of
// real ones: they have the right sizes and go into no report and no message.
#pragma once

#include "raster/raster_sink.h"
#include "stream/pipeline.h"
#include "tool/run.h"

#include <cstdint>
#include <functional>
#include <string>

namespace hsi::tool {

/// The plan ends here: with -dry-run calls `print`, which prints the rest of it, and ends the run.
void end_of_plan(Run& run, const std::function<void()>& print = {});

/// The plan of one pass, printed and reported: for `print` of end_of_plan().
void print_plan(Run& run, const stream::CubeSource& source, const stream::Operation& operation,
                const stream::PassOptions& pass);

/// A line of the plan. \return false, and does nothing, without -dry-run.
bool add_to_plan(Run& run, const std::string& text);
/// One more fact of the plan of pass `pass`, for the user and the report; nothing without -dry-run.
void add_to_plan(Run& run, const std::string& pass, const char* key, uint64_t value, const std::string& text);

/// With -dry-run prints that `options` is computed when it is read, and ends the run.
void begin_virtual(Run& run, const raster::OutputOptions& options);

/// How a dry run ends; caught by complete().
struct PlanIsComplete {};

/// Does `work`, which makes an output. \return false with -dry-run, when the plan of that output is complete:
/// it was not made, and the run may go on.
template <class Work>
bool complete(const Work& work) {
    try {
        work();
        return true;
    } catch (const PlanIsComplete&) {
        return false;
    }
}

} // namespace hsi::tool
