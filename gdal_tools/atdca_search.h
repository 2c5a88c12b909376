// SPDX-License-Identifier: MIT
// The search of gdal_hsi_atdca: how many targets, on which device, and what came of it.
#pragma once

#include "atdca/atdca.h"
#include "atdca_outputs.h"
#include "tool/devices.h"
#include "tool/scene.h"

namespace hsi::tools {

/// -dry-run.
void print_search(tool::Run& run, const raster::RasterSource& source, const atdca::Options& options);

/// The targets of the scene, at least one valid pixel among it; bands without values are left out of the
/// scene where they spoil every pixel. Sets options.targets with -t auto. share: of the progress. Throws
/// Error when the virtual dimensionality is none, and when no pixel is valid.
atdca::Detection find_targets(tool::Run& run, AtdcaComputing& computing, const AtdcaSettings& s,
                              tool::Scene& scene, atdca::Options& options, double share);

} // namespace hsi::tools
