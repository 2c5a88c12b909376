// SPDX-License-Identifier: MIT
// What gdal_hsi_atdca says of its search and of the targets, to the user and in the report.
#pragma once

#include "atdca/atdca.h"
#include "atdca_outputs.h"
#include "raster/libraries/spectral_library.h"
#include "tool/run.h"

#include <string>
#include <vector>

namespace hsi::tools {

/// How much of the scene the search looked at.
void tell_cost(tool::Run& run, const atdca::Detection& found, int wanted, bool held_by_system);

/// The list of targets, for the user and for the report.
void tell_targets(tool::Run& run, const std::vector<atdca::Target>& targets);

/// Table I of the paper: for every reference (of the spectra of -reference, `references`) the target that is
/// most similar.
void compare_with_references(tool::Run& run, const raster::SpectralLibrary& references,
                             const raster::SpectralLibrary& targets, const AtdcaSettings& s);

} // namespace hsi::tools
