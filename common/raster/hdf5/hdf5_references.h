// SPDX-License-Identifier: MIT
// The files that an HDF5 (or netCDF-4) file refers to, found where the HDF5 library searches for them.
#pragma once

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

/// Returns all existing files that `path` refers to: external storage, the sources of virtual datasets, the
/// targets of links, and the files to which all of these refer in turn. Empty for files of other formats.
std::vector<std::string> hdf5_files_behind(const std::string& path);

/// Returns the name of a file to which `path` refers, directly or indirectly, if a pipe or a device has this
/// name; otherwise empty. The HDF5 library opens the target of a link as soon as it follows the link, and
/// opening a pipe may block.
std::string pipe_behind_hdf5(const std::string& path);

/// Throws Error if values of a dataset are missing. If the source of a virtual dataset does not exist, HDF5
/// silently returns fill values. `objects` has full names of datasets, with "_" for blanks if the names are
/// from GDAL; empty: the whole file.
void check_hdf5_sources(const std::string& path, const std::vector<std::string>& objects);

/// Calls check_hdf5_sources() for a dataset that GDAL has opened through a driver that reads_hdf5().
void check_values_are_there(GDALDataset& dataset);

} // namespace hsi::raster
