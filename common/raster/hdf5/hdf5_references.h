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
/// name; otherwise empty. Such a name must be found before GDAL opens `path`: the HDF5 library opens the
/// target of a link when it follows the link, and opening a pipe may block.
std::string pipe_behind_hdf5(const std::string& path);

/// Checks that the other files from which datasets get their values exist, and that the linked or mapped
/// datasets are in these files. Throws Error if this is not so, because HDF5 would silently return fill
/// values, for example for a missing source of a virtual dataset. `objects` has the full names of the
/// datasets to check, with "_" for blanks if the names are from GDAL; empty: all datasets of the file.
void check_hdf5_sources(const std::string& path, const std::vector<std::string>& objects);

/// Calls check_hdf5_sources() for a dataset that GDAL has opened through a driver that reads_hdf5().
void check_values_are_there(GDALDataset& dataset);

} // namespace hsi::raster
