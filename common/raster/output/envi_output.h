// SPDX-License-Identifier: MIT
// Writes the parts of an ENVI output that GDAL's driver does not write.
#pragma once

#include "raster/files/atomic_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <string>

namespace hsi::raster {

/// Throws Error for a geotransform that an ENVI header cannot represent. `name` is the name of the scene for
/// the message. "map info" supports rotation, but neither shear nor lines that run upwards. For these, GDAL
/// would write a different geotransform, which places the scene elsewhere.
void check_envi_geotransform(const double (&wanted)[6], const std::string& name);

/// Completes the header and cleans the side file after the driver has closed the output. The driver's header
/// lacks most metadata of the source, and its side file repeats the rest.
void finish_envi_output(const AtomicFile& file, const OutputOptions& options, const OutputSpec& spec,
                        const SceneMetadata* scene);

} // namespace hsi::raster
