// SPDX-License-Identifier: MIT
// Finds files that belong together: the files that a dataset is read from, and the files that a format writes
// next to its main file.
#pragma once

#include <string>
#include <vector>

namespace hsi::raster {

/// Returns every file that is read when `path` is read: the file itself, its side files, and the files to
/// which they refer. For a VRT, these are its sources, the sources of its sources, and files that its pixel
/// functions name. For a virtual scene (.hsi), these are the files of its source. The tiles of an index, the
/// file of a subdataset (NETCDF:"a.nc":v), external files of an HDF5 file, and files of a virtual Zarr
/// dataset (Kerchunk's JSON) are also included. So are local files behind names of GDAL's virtual file
/// systems (/vsizip/, /vsisubfile/, /vsisparse/ ...). Files that do not exist are left out, except `path`
/// itself. The function opens datasets to find these files.
std::vector<std::string> files_read_with(const std::string& path);

/// Checks a file name that the file `document` contains, for example a rule file. Throws Error if the name
/// means a pipe or a device. Throws Error for a name on a server, unless the configuration option
/// GDAL_HSI_SERVERS is YES or the file is below the folder of a document on the same server. A missing local
/// file is accepted.
void check_named_file(const std::string& document, const std::string& name);

/// Returns names of possible files next to the local file `path` that change how GDAL reads it as soon as
/// they exist: a world file, the .prj of a shapefile, .aux.xml ... Most names are listed whether the file
/// exists or not. Empty if `path` is not local.
std::vector<std::string> files_that_may_come(const std::string& path);

/// Returns a text with everything that GDAL's side file (.aux.xml) `path` states about the georeference of a
/// dataset and the meaning of its values. Side files with the same statements give the same text. Metadata
/// and statistics are left out, because viewers add them. Empty if the file is missing or contains nothing
/// else; "?" if it is not a valid side file.
std::string told_by_side_file(const std::string& path);

/// Checks the HDF5 datasets that the VRT `path` reads, also through other VRTs. Throws Error if such a
/// dataset lacks values (check_values_are_there()).
void check_virtual_sources(const std::string& path);

/// Returns the names that a driver gives to files next to `path`, from a table of formats. `options` are its
/// creation options (SUFFIX=ADD of ENVI ...). Does not depend on existing files.
std::vector<std::string> side_file_names(const std::string& driver, const std::string& path,
                                         const std::vector<std::string>& options);

/// Returns the side files that must be removed when the dataset at `path` is replaced: existing files of its
/// format that no other dataset uses. Files to which the dataset only refers, as a VRT does, are not
/// included. If there is no dataset at `path`, returns remaining logs of SQLite and parts of a shapefile,
/// which would change a new dataset.
std::vector<std::string> old_side_files(const std::string& path);

/// Returns files next to the complete output `path` that GDAL reads with the output although they are not
/// among its files `own`. For example, a world file of another program gives a position to a scene without
/// georeference. Empty if `path` is not local.
std::vector<std::string> foreign_side_files(const std::string& path, const std::vector<std::string>& own);

/// Checks the name `side` of a side file that the new dataset `path` will write. Throws Error if a file with
/// this name exists that belongs to another dataset or is a dataset itself. A file that belongs to the old
/// dataset at `path` is accepted.
void check_side_is_free(const std::string& side, const std::string& path);

/// Returns the path of a dataset other than `path` that is read with the file `side`, for example an ENVI
/// header; empty if there is none. Only datasets in the folder of `side` whose name has the same stem are
/// found.
std::string other_owner(const std::string& side, const std::string& path);

} // namespace hsi::raster
