// SPDX-License-Identifier: MIT
// Describes an output raster as an Item of a SpatioTemporal Asset Catalog (STAC 1.1.0): place and time,
// bands, classes and processing, for catalogues that find scenes.
// https://github.com/radiantearth/stac-spec
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

/// Checks the item of `options.stac` before the work begins: its path, an invalid time, an output that is not
/// a file, or several outputs of the same kind. Throws Error or UsageError.
void check_stac_item(const OutputOptions& options);

/// Returns the text of the item. `described` has all facts of the output except its pixels; `files` are its
/// final names; `scene` (may be null) is the source, which may state its time of acquisition.
std::string stac_item(const OutputOptions& options, GDALDriver& driver, const std::vector<std::string>& files,
                      GDALDataset& described, const SceneMetadata* scene);

} // namespace hsi::raster
