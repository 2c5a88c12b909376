// SPDX-License-Identifier: MIT
// Finds files that belong together: the files that a dataset is read from, and the files that a format writes
// next to its main file.
#pragma once

#include <string>
#include <vector>

namespace hsi::raster {

/// Returns every file that is read when `path` is read, as GDAL and the texts of VRTs state: the file and its
/// side files. For a VRT, these include its sources (also of a VRT within it), the sources of its sources,
/// and files that its pixel functions name. They also include the tiles of an index, the container of a
/// subdataset (NETCDF:"a.nc":v), external files of an HDF5 file, and files of a virtual Zarr dataset
/// (Kerchunk's JSON). Local files behind names of GDAL's virtual file systems (/vsizip/, /vsisubfile/,
/// /vsisparse/ ...) are included. Files that do not exist are left out, except `path` itself. Opens the
/// datasets that GDAL can open; other names are listed unchanged.
std::vector<std::string> files_read_with(const std::string& path);

/// Checks the name of a file that `document` (a rule file) states: a local file or folder, not a pipe; a
/// server only if the configuration option GDAL_HSI_SERVERS is YES. Throws Error.
void check_named_file(const std::string& document, const std::string& name);

/// Returns names next to the local file `path` that change how GDAL reads it as soon as they exist: a world
/// file, the .prj of a shapefile, .aux.xml ... They are listed whether they exist or not.
std::vector<std::string> files_that_may_come(const std::string& path);

/// Returns what GDAL's side file (.aux.xml) `path` states about a dataset's georeference and the meaning of
/// its values, in a normalised form. Metadata and statistics are left out, since viewers add them. Empty if
/// the file is missing or states nothing else.
std::string told_by_side_file(const std::string& path);

/// Throws Error if a dataset that `path`, a VRT, reads directly or indirectly lacks its values
/// (check_values_are_there()).
void check_virtual_sources(const std::string& path);

/// Returns the names that a driver gives to files next to `path`, from a table of formats. `options` are its
/// creation options (SUFFIX=ADD of ENVI ...). Does not depend on existing files.
std::vector<std::string> side_file_names(const std::string& driver, const std::string& path,
                                         const std::vector<std::string>& options);

/// Returns the side files of the current dataset at `path`, which are removed when the dataset is replaced:
/// existing files of its format that no other dataset uses. Files to which the dataset only refers, as a VRT
/// does, are not included.
std::vector<std::string> old_side_files(const std::string& path);

/// Returns files next to the complete output `path` that are not among the output's `own` files, but that
/// GDAL reads with the output. For example, a world file of another program gives a position to a scene
/// without georeference.
std::vector<std::string> foreign_side_files(const std::string& path, const std::vector<std::string>& own);

/// Throws Error if `side`, a side file of the new dataset `path`, belongs to another dataset or is a dataset,
/// and does not belong to an old dataset at `path`.
void check_side_is_free(const std::string& side, const std::string& path);

/// Returns another dataset near `path` that is read with `side`, for example an ENVI header; empty if there
/// is none.
std::string other_owner(const std::string& side, const std::string& path);

} // namespace hsi::raster
