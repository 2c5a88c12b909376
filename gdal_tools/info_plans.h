// SPDX-License-Identifier: MIT
// What the tools would make of a scene here, for gdal_hsi_info.
#pragma once

#include "raster/source/raster_source.h"
#include "tool/run.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::tools {

struct PlanLine {
    std::string tool, what;
    int64_t tiles = 0;
    uint64_t bytes = 0;
};

/// The largest pass of each tool on the CPU, with the tool's own defaults and the memory and threads of this
/// call.
std::vector<PlanLine> plans_of(tool::Run& run, const raster::RasterSource& source);

} // namespace hsi::tools
