// SPDX-License-Identifier: MIT
// Writes the facts about an output apart from its pixels: nodata, georeference, metadata, names, legend and
// history.
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <gdal_priv.h>

#include <optional>

namespace hsi::raster {

/// Makes the metadata of an output without a source scene from its spec. The bands get the descriptions,
/// items and spectral texts of the spec. All formats can then write this metadata like the metadata of a
/// source file. Returns nullopt if the spec has neither an SRS nor a geotransform nor ENVI fields. Throws
/// UsageError for an unknown SRS.
std::optional<SceneMetadata> metadata_of(const OutputSpec& spec);

/// Returns the metadata of `like`, with the bands that `spec` describes instead of its own
/// (OutputSpec::spectral). Scales and units in the ENVI header of `like` are left out if no band of `spec`
/// states them.
SceneMetadata metadata_of(const OutputSpec& spec, const SceneMetadata& like);

/// Returns the nodata value of an output, chosen as in nodata_choice.h. The nodata values of the source are
/// those of `scene`, which may be null.
std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SceneMetadata* scene, GDALDataType type);

/// Writes nodata, georeference, metadata, names, legend and history into a new dataset, whose bands have the
/// type `type`. Facts that the driver cannot store are lost without an error; the finished file is checked
/// later.
void describe_output(const OutputOptions& options, const OutputSpec& spec, const SceneMetadata* scene,
                     const std::optional<NodataValue>& nodata, GDALDataType type, GDALDataset& dataset);

} // namespace hsi::raster
