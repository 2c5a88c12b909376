// SPDX-License-Identifier: MIT
// netCDF's classic formats (CDF-1, CDF-2 and CDF-5): their library reads zeros where a file ends early,
// and other dimensions, or for ever, where the number of records is open.
#pragma once

#include <string>

namespace hsi::raster {

/// \throws Error if `path` is a classic netCDF file that is shorter than its header states, or that states no
/// number of records. Returns for any other file.
void check_netcdf_length(const std::string& path);

} // namespace hsi::raster
