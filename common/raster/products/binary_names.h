// SPDX-License-Identifier: MIT
/// Texts in binary files by which GDAL opens further files.
#pragma once

#include <string>
#include <vector>

namespace hsi::raster {

/// The texts of an ERDAS IMAGINE file that may name its .ige and .rrd: from the nodes in which GDAL looks for
/// names (ERDAS IMAGINE .img Files, ERDAS Inc., 2010). Empty for other files, and for a tree that is damaged.
std::vector<std::string> texts_of_imagine(const std::string& path);

/// The names of files in which an HDF4 file keeps values (HDF Specification and Developer's Guide, The HDF
/// Group, 2010, "External Elements"). Relative names are relative to the working directory. Empty for others.
std::vector<std::string> external_files_of_hdf4(const std::string& path);

} // namespace hsi::raster
