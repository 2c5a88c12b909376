// SPDX-License-Identifier: MIT
// Which files belong together: those that a dataset is read from, and those that a format writes beside its
// main file.
#pragma once

#include <string>
#include <vector>

namespace hsi::raster {

/// Every file that reading `path` touches, as far as GDAL and the texts of VRTs tell: the file itself, its
/// side files, the sources of a VRT (of one that stands inside of it as text, too) and the sources of these,
/// files that its pixel functions name, the tiles of an index, the container of a subdataset
/// (NETCDF:"a.nc":v), what an HDF5 file keeps in other files, what a virtual Zarr dataset (Kerchunk's JSON)
/// names, local files behind names of GDAL's virtual file systems (/vsizip/, /vsisubfile/, /vsisparse/ ...).
/// Names that are not there are left out, `path` itself never. Opens what GDAL opens; whatever does not open
/// is just its name.
std::vector<std::string> files_read_with(const std::string& path);

/// Checks the name of a file that `document` gives (a rule file): a file or a folder of this machine, no
/// pipe, and a server only where the configuration option GDAL_HSI_SERVERS is YES. Throws Error.
void check_named_file(const std::string& document, const std::string& name);

/// Names beside the local file `path` that change what GDAL reads of it as soon as they are there: a world
/// file, the .prj of a shapefile, .aux.xml ... Whether they are there or not.
std::vector<std::string> files_that_may_come(const std::string& path);

/// What GDAL's side file (.aux.xml) `path` tells of the place of a dataset and the meaning of its numbers, in
/// a form of its own: metadata and statistics, to which programs that only look add, are left out. Empty
/// where it tells nothing or is not there.
std::string told_by_side_file(const std::string& path);

/// Throws Error when a dataset that `path`, a VRT, reads somewhere below lacks its values
/// (check_values_are_there()).
void check_virtual_sources(const std::string& path);

/// The names that a driver gives to files beside `path`, by a list of what is known of formats; `options` are
/// its creation options (SUFFIX=ADD of ENVI ...). Never depends on what is there.
std::vector<std::string> side_file_names(const std::string& driver, const std::string& path,
                                         const std::vector<std::string>& options);

/// Side files of the dataset that stands at `path` now, which go when it is replaced: those of its format
/// that are there and that no other dataset uses. Never anything that it merely refers to, as a VRT does.
std::vector<std::string> old_side_files(const std::string& path);

/// Files beside the complete output `path` that are none of its `own`, and that GDAL reads with it all the
/// same: a world file that another program has left gives a scene without georeference a place.
std::vector<std::string> foreign_side_files(const std::string& path, const std::vector<std::string>& own);

/// Throws Error when `side`, which the new dataset `path` would write beside itself, belongs to another
/// dataset or is one, and is none of the files of an old `path`.
void check_side_is_free(const std::string& side, const std::string& path);

/// A dataset beside `path` that is read with `side`, an ENVI header for one; empty when there is none.
std::string other_owner(const std::string& side, const std::string& path);

} // namespace hsi::raster
