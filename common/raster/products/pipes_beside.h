// SPDX-License-Identifier: MIT
// Finds pipes and devices that GDAL would open together with a scene. GDAL opens side files, and files that
// a header names, without checking their type, and opening a pipe waits for its other end.
#pragma once

#include "core/file_path.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The local file in a name.
struct NamedPart {
    std::string path;
    PathKind kind = PathKind::nothing;
    bool last = false; ///< the name ends with it
};

/// Returns the parts of a GDAL name (NETCDF:"a.nc":v, /vsizip/a.zip/b.tif, vrt://a.tif?bands=1) that exist on
/// this machine; nullopt if the name has too many parts to check.
std::optional<std::vector<NamedPart>> parts_of_name(const std::string& name);

/// Returns the local file itself and the texts next to it in which GDAL searches for names and for the
/// coordinate reference system (.aux.xml, .hdr, .prj), whether they exist or not.
std::vector<std::string> texts_of_dataset(const std::string& path);

/// Returns a pipe or a device that GDAL may open together with `path`; empty if there is none. Checks entries
/// of its folder whose names begin with its own (a.ovr, a_rpc.txt of a.tif). Checks names in its text (ERS,
/// PDS3, ISIS3, VRT, JSON), in its .aux.xml, in the header of an ERDAS IMAGINE or HDF4 file, or in an HDF5
/// file's references, and entries next to the named files. For a folder, checks its entries at any depth.
/// Does not check `path` itself.
std::string pipe_beside(const std::string& path);

/// Throws Error that names the pipe if there is one.
void refuse_pipe_beside(const std::string& path);

} // namespace hsi::raster
