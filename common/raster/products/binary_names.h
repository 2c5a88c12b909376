// SPDX-License-Identifier: MIT
// Finds the names of further files that binary files contain, because GDAL would open these files.
#pragma once

#include <string>
#include <vector>

namespace hsi::raster {

/// Returns the texts of an ERDAS IMAGINE file that may name its .ige and .rrd files. The texts come from the
/// nodes in which GDAL searches for names (ERDAS IMAGINE .img Files, ERDAS Inc., 2010). The list is empty for
/// files of other formats and for a damaged file.
std::vector<std::string> texts_of_imagine(const std::string& path);

/// Returns the names of external files in which an HDF4 file stores values (HDF Specification and Developer's
/// Guide, The HDF Group, 2010, "External Elements"). Relative names are relative to the working directory.
/// The list is empty for files of other formats.
std::vector<std::string> external_files_of_hdf4(const std::string& path);

} // namespace hsi::raster
