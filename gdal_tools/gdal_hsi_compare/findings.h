// SPDX-License-Identifier: MIT
// The findings of a comparison, of two scenes or of a mosaic: their measures, messages and limits.
#pragma once

#include "compare/measurement.h"
#include "core/json.h"
#include "gdal_hsi_compare/settings.h"
#include "raster/raster_sink.h"
#include "raster/text_output.h"
#include "tool/run.h"

#include <string>
#include <vector>

namespace hsi::compare_tool {

/// Adds the default metrics for the number of bands if none were requested, and the metrics that thresholds
/// need.
void complete_metrics(Settings& s, int bands);

/// Refuses spectral metrics for a single band, which is not a spectrum.
void check_bands(const std::vector<Metric>& metrics, int bands);

/// Returns the number in the format "%.9g".
std::string metric_text(double v);

/// Returns null for NaN, and "inf" and "-inf" for infinities, because JSON has neither.
Json json_number(double v);

/// Writes a result to the report, to -o and to the user: as JSON with -json, else as `text`, which ends with
/// a line end. The run's outputs are kept, even if a limit is exceeded.
void give_result(tool::Run& run, const Settings& s, const raster::TextOutput& output, const Json& result,
                 const std::string& text);

/// Ends the run with exit code 1 at the first threshold that is exceeded.
void apply_limits(const Settings& s, const compare::Findings& f);

/// Returns the options of the file of -map.
raster::OutputOptions map_output(const tool::Run& run, const Settings& s);

/// Returns an output with one band per metric.
raster::OutputSpec map_of(const stream::CubeShape& shape, const std::vector<Metric>& metrics);

} // namespace hsi::compare_tool
