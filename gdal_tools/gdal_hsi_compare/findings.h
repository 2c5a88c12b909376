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

/// Adds the default metrics for the count of bands if none were requested, and the metrics that thresholds
/// need.
void complete_metrics(Settings& s, int bands);

/// A single band is not a spectrum.
void check_bands(const std::vector<Metric>& metrics, int bands);

/// "%.9g"
std::string metric_text(double v);

/// null for NaN, "inf" and "-inf" for infinities: JSON has neither.
Json json_number(double v);

/// Gives a result to the report, to -o and to the user: as JSON with -json, else as `text`, which ends with a
/// line end. The run's outputs stay, also when a limit is exceeded.
void give_result(tool::Run& run, const Settings& s, const raster::TextOutput& output, const Json& result,
                 const std::string& text);

/// The first threshold that is exceeded ends the run with exit code 1.
void apply_limits(const Settings& s, const compare::Findings& f);

/// The file of -map.
raster::OutputOptions map_output(const tool::Run& run, const Settings& s);

/// A band a metric.
raster::OutputSpec map_of(const stream::CubeShape& shape, const std::vector<Metric>& metrics);

} // namespace hsi::compare_tool
