// SPDX-License-Identifier: MIT
/// Pipes and devices that GDAL would open along with a scene. It opens side files, and files that a header
/// names, without checking their kind, and opening a pipe waits for its other end.
#pragma once

#include "core/file_path.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The local file of a name.
struct NamedPart {
    std::string path;
    PathKind kind = PathKind::nothing;
    bool last = false; ///< the name ends with it
};

/// The parts of a name of GDAL's (NETCDF:"a.nc":v, /vsizip/a.zip/b.tif, vrt://a.tif?bands=1) that exist on
/// this machine; nullopt if the name has too many parts to look at all.
std::optional<std::vector<NamedPart>> parts_of_name(const std::string& name);

/// The local file itself and the texts next to it in which GDAL looks for names and for the coordinate
/// reference system (.aux.xml, .hdr, .prj), whether they are there or not.
std::vector<std::string> texts_of_dataset(const std::string& path);

/// Returns a pipe or a device that GDAL may open along with `path`, empty if there is none. It looks at:
/// entries of its folder whose name begins as its own does (a.ovr, a_rpc.txt of a.tif); names in its text, if
/// it is one (ERS, PDS3, ISIS3, VRT, JSON), in its .aux.xml, in the header of an ERDAS IMAGINE or HDF4 file,
/// or in an HDF5 file's references, and entries next to the named files; if it is a folder, its entries at
/// any depth. `path` itself is not checked.
std::string pipe_beside(const std::string& path);

/// Throws Error naming the pipe if there is one.
void refuse_pipe_beside(const std::string& path);

} // namespace hsi::raster
