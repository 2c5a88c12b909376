// SPDX-License-Identifier: MIT
// Whether a driver holds an output, shown by a small file.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/output_format.h"

#include <optional>

namespace hsi::raster {

/// Writes a small raster of the same kind with known values, reads it back and compares: with the same count
/// of bands, type and options, and with the georeference of `scene` (null: one in metres that most drivers
/// take). Sets target.copies. Throws UsageError when the values that are read differ. Values may differ if
/// the format, or a creation option of the user, is lossy.
void try_target(Target& target, const OutputOptions& options, const OutputSpec& spec,
                const SceneMetadata* scene);

/// Throws UsageError for an output that may hold NaN, with several bands of floats together in blocks of
/// LERC, if the present GDAL cannot read what it writes of such (libtiff 4.5).
void check_lerc_of_nan(const Target& target, const OutputOptions& options, const OutputSpec& spec,
                       const std::optional<NodataValue>& nodata);

} // namespace hsi::raster
