// SPDX-License-Identifier: MIT
// Parts of an ENVI output that GDAL's driver does not write.
#pragma once

#include "raster/files/atomic_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <string>

namespace hsi::raster {

/// Throws Error for a geotransform that an ENVI header cannot hold; name: of its owner. "map info" of an ENVI
/// header knows rotation, but neither shear nor lines that run upwards: GDAL writes something similar, which
/// would put the scene elsewhere.
void check_envi_geotransform(const double (&wanted)[6], const std::string& name);

/// The ENVI driver's header lacks most of the source's metadata, and its side file repeats the rest.
/// Completes the header and clears the side file, after the driver has closed the file.
void finish_envi_output(const AtomicFile& file, const OutputOptions& options, const OutputSpec& spec,
                        const SceneMetadata* scene);

} // namespace hsi::raster
