// SPDX-License-Identifier: MIT
// Tests with a small file whether a driver can store an output.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/output_format.h"

#include <optional>

namespace hsi::raster {

/// Tests an output: writes a small raster with known values, reads it, and compares the values. The raster
/// has the number of bands, the type and the options of the output, and the georeference of `scene` (null: a
/// georeference in metres that most drivers accept). Sets target.copies to the way of writing that works.
/// Throws UsageError if the raster cannot be written, or if the values differ, unless the format or one of
/// the user's creation options is lossy.
void try_target(Target& target, const OutputOptions& options, const OutputSpec& spec,
                const SceneMetadata* scene);

/// Throws UsageError if the output is a LERC file that may contain NaN in several interleaved bands of
/// floats, and this GDAL cannot read such files although it writes them (libtiff 4.5).
void check_lerc_of_nan(const Target& target, const OutputOptions& options, const OutputSpec& spec,
                       const std::optional<NodataValue>& nodata);

} // namespace hsi::raster
