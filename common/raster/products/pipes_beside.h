// SPDX-License-Identifier: MIT
// Finds pipes and devices that GDAL would open together with a scene. GDAL opens side files, and files that a
// header names, without checking their type. Opening a pipe blocks until another process opens its other end.
#pragma once

#include "core/file_path.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// A local path that is part of a GDAL name.
struct NamedPart {
    std::string path;
    PathKind kind = PathKind::nothing;
    bool last = false; ///< the name ends with this part
};

/// Returns the parts of a GDAL name that are existing local paths. Examples of names are NETCDF:"a.nc":v,
/// /vsizip/a.zip/b.tif and vrt://a.tif?bands=1. nullopt if the name has too many parts to check.
std::optional<std::vector<NamedPart>> parts_of_name(const std::string& name);

/// Returns the paths of the texts in which GDAL searches for file names and for the SRS of a dataset: the
/// file itself and the side files .aux.xml, .hdr and .prj. These files need not exist.
std::vector<std::string> texts_of_dataset(const std::string& path);

/// Returns the path of a pipe or device that GDAL may open together with `path`; empty if there is none.
/// `path` itself is not checked. The function checks
/// - entries of the folder whose names begin with the name of the file (a.ovr and a_rpc.txt for a.tif),
/// - names in the text of the file (ERS, PDS3, ISIS3, VRT, JSON) and in its .aux.xml,
/// - names in an ERDAS IMAGINE or HDF4 file, and in the references of an HDF5 file,
/// - entries next to the named files,
/// - for a folder, its entries and the entries of its folders; for a Zarr store, entries at any depth.
std::string pipe_beside(const std::string& path);

/// Throws Error that names the pipe if pipe_beside() finds one.
void refuse_pipe_beside(const std::string& path);

} // namespace hsi::raster
