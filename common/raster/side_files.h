// SPDX-License-Identifier: MIT
// Which files belong together: the files that a dataset is read from, and the files that a format writes next
// to its main file.
#pragma once

#include <string>
#include <vector>

namespace hsi::raster {

/// Every file that reading `path` touches, as far as GDAL and the texts of VRTs state it: the file itself;
/// its side files; the sources of a VRT (also of a nested VRT as text) and their sources; files that its
/// pixel functions name; the tiles of an index; the container of a subdataset (NETCDF:"a.nc":v); external
/// files of an HDF5 file; files of a virtual Zarr dataset (Kerchunk's JSON); local files behind names of
/// GDAL's virtual file systems (/vsizip/, /vsisubfile/, /vsisparse/ ...). Names that do not exist are left
/// out, except `path` itself. Opens what GDAL opens; a name that does not open is listed as it is.
std::vector<std::string> files_read_with(const std::string& path);

/// Checks the name of a file that `document` gives (a rule file): a file or a folder of this machine, no
/// pipe, and a server only where the configuration option GDAL_HSI_SERVERS is YES. Throws Error.
void check_named_file(const std::string& document, const std::string& name);

/// Names next to the local file `path` that change what GDAL reads of it as soon as they exist: a world file,
/// the .prj of a shapefile, .aux.xml ... They are listed whether they exist or not.
std::vector<std::string> files_that_may_come(const std::string& path);

/// The facts in GDAL's side file (.aux.xml) `path` about a dataset's position and the meaning of its values,
/// in a normalised form. Metadata and statistics are left out, since viewers add them. Empty without such
/// facts or without the file.
std::string told_by_side_file(const std::string& path);

/// Throws Error when a dataset that `path`, a VRT, reads somewhere below lacks its values
/// (check_values_are_there()).
void check_virtual_sources(const std::string& path);

/// The names that a driver gives to files next to `path`, from a table of formats; `options` are its creation
/// options (SUFFIX=ADD of ENVI ...). Does not depend on existing files.
std::vector<std::string> side_file_names(const std::string& driver, const std::string& path,
                                         const std::vector<std::string>& options);

/// Side files of the present dataset at `path`, which are removed when it is replaced: existing files of its
/// format that no other dataset uses. Never files that it merely refers to, as a VRT does.
std::vector<std::string> old_side_files(const std::string& path);

/// Files next to the complete output `path` that are not its `own`, but that GDAL reads with it: a world file
/// of another program gives a position to a scene without georeference.
std::vector<std::string> foreign_side_files(const std::string& path, const std::vector<std::string>& own);

/// Throws Error when `side`, a side file of the new dataset `path`, belongs to another dataset or is one, and
/// is not a file of an old `path`.
void check_side_is_free(const std::string& side, const std::string& path);

/// Another dataset near `path` that is read with `side`, for example an ENVI header; empty without one.
std::string other_owner(const std::string& side, const std::string& path);

} // namespace hsi::raster
