// SPDX-License-Identifier: MIT
// The plan that -dry-run prints. A dry run executes the tool's body like any run. It ends at the pass that
// fills dst, or where the tool ends it (end_of_plan()). After the first pass, the dry run uses assumed
// results instead of real ones. Assumed results have the right sizes and appear in no report and no message.
#pragma once

#include "raster/raster_sink.h"
#include "stream/pipeline.h"
#include "tool/run.h"

#include <cstdint>
#include <functional>
#include <string>

namespace hsi::tool {

/// Ends the plan: with -dry-run calls `print`, which prints the rest of the plan, and ends the run.
void end_of_plan(Run& run, const std::function<void()>& print = {});

/// Prints and reports the plan of one pass. Call this function in the function `print` that end_of_plan()
/// gets.
void print_plan(Run& run, const stream::CubeSource& source, const stream::Operation& operation,
                const stream::PassOptions& pass);

/// Prints a text line of the plan. \return false without -dry-run, and then does nothing.
bool add_to_plan(Run& run, const std::string& text);
/// Adds a fact to the plan of pass `pass`, for the user and the report. Does nothing without -dry-run.
void add_to_plan(Run& run, const std::string& pass, const char* key, uint64_t value, const std::string& text);

/// With -dry-run, prints that the output of `options` is computed when it is read, and ends the run.
void begin_virtual(Run& run, const raster::OutputOptions& options);

/// The exception that ends a dry run. complete() catches it, so that the run can continue.
struct PlanIsComplete {};

/// Calls `work`, which makes an output. \return false with -dry-run, when the plan of that output is
/// complete: the output was not made, and the run may continue.
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
