// SPDX-License-Identifier: MIT
// The findings of a comparison of two scenes or of a mosaic: measures, messages and limits.
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

/// Adds the default metrics for the number of bands if the user requested no metrics. Also adds the metrics
/// that thresholds need.
void complete_metrics(Settings& s, int bands);

/// Rejects spectral metrics for a single band, because one value is not a spectrum.
void check_bands(const std::vector<Metric>& metrics, int bands);

/// Returns the number as text in the format "%.9g".
std::string metric_text(double v);

/// Returns null for NaN, and "inf" or "-inf" for infinities, because JSON cannot represent these values.
Json json_number(double v);

/// Writes the result of a comparison to the report and to -o, and prints it. With -json, -o and the user get
/// JSON; otherwise they get `text`, which ends with a line break. The outputs of the run are kept, even if a
/// limit is exceeded afterwards.
void give_result(tool::Run& run, const Settings& s, const raster::TextOutput& output, const Json& result,
                 const std::string& text);

/// Ends the run with exit code 1 if a limit is exceeded. The message names the first such limit.
void apply_limits(const Settings& s, const compare::Findings& f);

/// Returns the options of the output file of -map.
raster::OutputOptions map_output(const tool::Run& run, const Settings& s);

/// Describes a raster with one band per metric.
raster::OutputSpec map_of(const stream::CubeShape& shape, const std::vector<Metric>& metrics);

} // namespace hsi::compare_tool
