// SPDX-License-Identifier: MIT
// Writes the facts about an output apart from its pixels: nodata, georeference, metadata, names, legend and
// history.
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <gdal_priv.h>

#include <optional>

namespace hsi::raster {

/// Returns the metadata of an output without a source scene, made from its spec. The bands have the
/// descriptions, items and spectral texts of the spec, so all formats write them like the metadata of a file.
/// Returns nullopt if the spec has neither an SRS nor a geotransform nor ENVI fields. Throws UsageError for
/// an unknown SRS.
std::optional<SceneMetadata> metadata_of(const OutputSpec& spec);

/// Returns the metadata of `like` with the bands of `spec`, whose bands are spectral.
SceneMetadata metadata_of(const OutputSpec& spec, const SceneMetadata& like);

/// Returns the nodata value of an output; nullopt if no pixel can be missing. The value comes from the
/// options, the spec or the source (`scene`, which may be null); otherwise it is a default value of the type.
std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SceneMetadata* scene, GDALDataType type);

/// Writes all facts into a new dataset whose bands have the type `type`.
void describe_output(const OutputOptions& options, const OutputSpec& spec, const SceneMetadata* scene,
                     const std::optional<NodataValue>& nodata, GDALDataType type, GDALDataset& dataset);

} // namespace hsi::raster
