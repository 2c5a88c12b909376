// SPDX-License-Identifier: MIT
// The files that an HDF5 (or netCDF-4) file refers to, found where the HDF5 library searches for them.
#pragma once

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

/// Returns all existing files that `path` refers to: external storage, the sources of virtual datasets, the
/// targets of links, and the files that these refer to in turn. Empty for files of other formats.
std::vector<std::string> hdf5_files_behind(const std::string& path);

/// Returns a pipe or a device in the place of a file that `path` refers to, directly or not; empty if there
/// is none. The HDF5 library opens the target of a link as soon as it follows the link.
std::string pipe_behind_hdf5(const std::string& path);

/// Throws Error if values of a dataset are missing: if the source of a virtual dataset does not exist, HDF5
/// silently returns fill values. `objects`: full names of datasets, with "_" for blanks if they are from
/// GDAL; empty: the whole file.
void check_hdf5_sources(const std::string& path, const std::vector<std::string>& objects);

/// Makes the same check for a dataset that GDAL has opened through a driver that reads_hdf5().
void check_values_are_there(GDALDataset& dataset);

} // namespace hsi::raster
