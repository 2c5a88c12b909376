// SPDX-License-Identifier: MIT
// What gdal_hsi_detect writes and tells.
#pragma once

#include "detect_inputs.h"
#include "raster/sink/output_set.h"
#include "tool/run.h"

#include <string>
#include <vector>

namespace hsi::tools {

/// The scores, a band a name (none: RX), then the map where it is asked for. \throws what is refused.
raster::OutputSet detect_outputs(const tool::Run& run, const DetectSettings& settings,
                                 const stream::CubeShape& scene, std::vector<std::string> names);

/// dst as a VRT: the detector stands in it, and a score is computed when it is read. True when that is asked
/// for: the VRT is written then. \throws UsageError for what a VRT cannot hold.
bool write_virtual_scores(tool::Run& run, const DetectSettings& settings, const raster::RasterSource& scene,
                          const std::vector<std::string>& names, const detect::Detector& detector,
                          const detect::Targets& targets);

/// Bands that are left out and what was added to the matrix, to the user and into the report.
void tell_background(tool::Run& run, const detect::Detector& detector, const raster::RasterSource& scene);

/// Pixels without a score, and why.
void tell_counts(tool::Run& run, const detect::Detection& found, const DetectSettings& settings);

} // namespace hsi::tools
