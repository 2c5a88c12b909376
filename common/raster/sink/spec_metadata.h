// SPDX-License-Identifier: MIT
// The metadata of an output that no source is like: what its OutputSpec tells.
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/sink/raster_sink.h"

#include <optional>

namespace hsi::raster {

/// Nothing when the spec has neither SRS nor geotransform nor ENVI fields. Bands get their descriptions,
/// items and spectral texts, so the result travels to every format like that of a file. Throws UsageError for
/// an unknown SRS.
std::optional<SceneMetadata> metadata_of(const OutputSpec& spec);

} // namespace hsi::raster
