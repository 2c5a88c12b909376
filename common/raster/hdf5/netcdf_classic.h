// SPDX-License-Identifier: MIT
// Checks files in netCDF's classic formats (CDF-1, CDF-2 and CDF-5). The check is needed because the netCDF
// library reads zeros if a file is truncated, and reads wrong dimensions or never ends if the number of
// records is not stated.
#pragma once

#include <string>

namespace hsi::raster {

/// \throws Error if `path` is a classic netCDF file that is shorter than its header states, or that does not
/// state the number of records. Files of other formats are not checked.
void check_netcdf_length(const std::string& path);

} // namespace hsi::raster
