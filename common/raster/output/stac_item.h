// SPDX-License-Identifier: MIT
// An output raster as an Item of a SpatioTemporal Asset Catalog (STAC 1.1.0): where and when it is, its
// bands, classes and how it was made, for catalogues that find scenes.
// https://github.com/radiantearth/stac-spec
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

/// Checks the item of `options.stac` before work is done: its path, an invalid time, an output that is not a
/// file, or not the only one of its kind. Throws Error or UsageError.
void check_stac_item(const OutputOptions& options);

/// The text of the item. `described` has all of the output but its pixels; `files` are its final names;
/// `scene` (may be null) is the source, which may state its time of acquisition.
std::string stac_item(const OutputOptions& options, GDALDriver& driver, const std::vector<std::string>& files,
                      GDALDataset& described, const SceneMetadata* scene);

} // namespace hsi::raster
