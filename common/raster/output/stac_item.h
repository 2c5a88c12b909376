// SPDX-License-Identifier: MIT
// Describes an output raster as an Item of a SpatioTemporal Asset Catalog (STAC 1.1.0). An Item states place,
// time, bands, classes and processing, so that catalogues can find the scene.
// https://github.com/radiantearth/stac-spec
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

/// Checks the STAC Item that `options.stac` requests, before the computation. Throws Error or UsageError for
/// an invalid path or time, for an output that is not a file, and for a run that writes several rasters.
void check_stac_item(const OutputOptions& options);

/// Returns the text of the Item. `described` has all metadata of the output, and `files` are the final names
/// of its files. `scene` is the metadata of the source, which may state the time of acquisition; it may be
/// null.
std::string stac_item(const OutputOptions& options, GDALDriver& driver, const std::vector<std::string>& files,
                      GDALDataset& described, const SceneMetadata* scene);

} // namespace hsi::raster
