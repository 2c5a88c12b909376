// SPDX-License-Identifier: MIT
// Whether a driver holds an output, shown by a small file.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/output_format.h"

#include <optional>

namespace hsi::raster {

/// Writes a small raster of the same kind with known values, reads it back and compares: so many bands, of
/// such a type, with these options, and with the georeference of `scene` (null: one in metres that most
/// drivers take). Sets target.copies. Throws UsageError when what comes back is not what was written. Values
/// may differ where the format or a creation option that the user gave is made to lose some.
void try_target(Target& target, const OutputOptions& options, const OutputSpec& spec,
                const SceneMetadata* scene);

/// Throws UsageError for an output that may hold NaN, of several bands of floats together in blocks of LERC,
/// where the GDAL at hand does not read back what it writes of such (libtiff 4.5).
void check_lerc_of_nan(const Target& target, const OutputOptions& options, const OutputSpec& spec,
                       const std::optional<NodataValue>& nodata);

} // namespace hsi::raster
