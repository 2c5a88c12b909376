// SPDX-License-Identifier: MIT
// Tests with a small file whether a driver can store an output.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/output_format.h"

#include <optional>

namespace hsi::raster {

/// Writes a small raster with known values, reads it, and compares the values. The raster has the number of
/// bands, the type and the options of the output, and the georeference of `scene` (null: a georeference in
/// metres that most drivers accept). Sets target.copies. Throws UsageError if the values differ, unless the
/// format or one of the user's creation options is lossy.
void try_target(Target& target, const OutputOptions& options, const OutputSpec& spec,
                const SceneMetadata* scene);

/// Throws UsageError if this GDAL cannot read LERC files with NaN that it writes (libtiff 4.5). This concerns
/// outputs of several interleaved bands of floats that may contain NaN.
void check_lerc_of_nan(const Target& target, const OutputOptions& options, const OutputSpec& spec,
                       const std::optional<NodataValue>& nodata);

} // namespace hsi::raster
