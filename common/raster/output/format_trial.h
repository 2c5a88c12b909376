// SPDX-License-Identifier: MIT
// Tests with a small file whether a driver can store an output.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/output_format.h"

#include <optional>

namespace hsi::raster {

/// Writes a small raster with known values, reads it back and compares. It has the same number of bands, type
/// and options, and the georeference of `scene` (null: a georeference in metres that most drivers accept).
/// Sets target.copies. Throws UsageError if the values differ, unless the format or a creation option of the
/// user is lossy.
void try_target(Target& target, const OutputOptions& options, const OutputSpec& spec,
                const SceneMetadata* scene);

/// Throws UsageError for an output that may contain NaN and has several interleaved bands of floats in LERC,
/// if the current GDAL cannot read its own file (libtiff 4.5).
void check_lerc_of_nan(const Target& target, const OutputOptions& options, const OutputSpec& spec,
                       const std::optional<NodataValue>& nodata);

} // namespace hsi::raster
