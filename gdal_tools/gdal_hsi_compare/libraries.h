// SPDX-License-Identifier: MIT
// Compares two spectral libraries, spectrum by spectrum.
#pragma once

#include "gdal_hsi_compare/settings.h"
#include "tool/run.h"

namespace hsi::compare_tool {

/// Matches the spectra of two libraries one to one, so that the sum of the angles is minimal (H. W. Kuhn: The
/// Hungarian method for the assignment problem, Naval Research Logistics Quarterly 2, 1955). If src is a
/// scene, does nothing and returns false.
bool compare_libraries(tool::Run& run, const Settings& s);

} // namespace hsi::compare_tool
