// SPDX-License-Identifier: MIT
// Writes the parts of an ENVI output that GDAL's driver does not write.
#pragma once

#include "raster/files/atomic_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <string>

namespace hsi::raster {

/// Throws Error for a geotransform that an ENVI header cannot represent. The field "map info" supports
/// rotation, but neither shear nor lines that run upwards. GDAL would write another geotransform, which
/// places the scene elsewhere. `name` is the name of the scene for the message.
void check_envi_geotransform(const double (&wanted)[6], const std::string& name);

/// Call it after the driver has closed the output. Adds metadata to the header, because the driver's header
/// lacks most metadata of the source. Removes from the side file what the header also states, and deletes a
/// side file that is then empty.
void finish_envi_output(const AtomicFile& file, const OutputOptions& options, const OutputSpec& spec,
                        const SceneMetadata* scene);

} // namespace hsi::raster
