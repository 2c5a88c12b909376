// SPDX-License-Identifier: MIT
// What an ENVI output needs beyond GDAL's driver.
#pragma once

#include "raster/files/atomic_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <string>

namespace hsi::raster {

/// Throws Error for a geotransform that an ENVI header cannot hold; name: of what has it.
/// "map info" of an ENVI header knows rotation, but neither shear nor lines that run upwards: GDAL writes
/// something near, which would put the scene elsewhere.
void check_envi_geotransform(const double (&wanted)[6], const std::string& name);

/// The ENVI driver's header lacks most of what the source told, and its side file repeats the rest. Completes
/// the one and clears the other, when the driver has closed the file.
void finish_envi_output(const AtomicFile& file, const OutputOptions& options, const OutputSpec& spec,
                        const SceneMetadata* scene);

} // namespace hsi::raster
