// SPDX-License-Identifier: MIT
// The facts in an output in addition to its pixels: nodata, georeference, metadata, names, legend and
// history.
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <gdal_priv.h>

#include <optional>

namespace hsi::raster {

/// Returns the metadata of an output without a like source, from its spec; nullopt if the spec has neither
/// SRS nor geotransform nor ENVI fields. Bands get their descriptions, items and spectral texts, so every
/// format receives them like those of a file. Throws UsageError for an unknown SRS.
std::optional<SceneMetadata> metadata_of(const OutputSpec& spec);

/// Returns the metadata of `like` with the bands of a spec that is spectral.
SceneMetadata metadata_of(const OutputSpec& spec, const SceneMetadata& like);

/// Returns the nodata value of an output: from the options, the spec, the source (`scene`, may be null), or a
/// chosen value if pixels may be missing; nullopt without one.
std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SceneMetadata* scene, GDALDataType type);

/// Writes all facts into a new dataset, whose bands have `type`.
void describe_output(const OutputOptions& options, const OutputSpec& spec, const SceneMetadata* scene,
                     const std::optional<NodataValue>& nodata, GDALDataType type, GDALDataset& dataset);

} // namespace hsi::raster
