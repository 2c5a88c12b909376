// SPDX-License-Identifier: MIT
// Creates the text of a VRT whose bands are computed by pixel functions from the bands of a scene.
#pragma once

#include "raster/raster_sink.h"
#include "raster/raster_source.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Throws UsageError if a VRT cannot show the source. This is so if GDAL cannot read the file (MATLAB), if
/// the source is read from arrays or from two images, if it requires -if, or if GDAL misreads its header.
void check_virtual_source(const RasterSource& like);

/// Returns the text of a VRT whose bands are computed by pixel functions from the bands of `like`. `text` is
/// a VRT with the same number of bands without pixels; its metadata is kept. `destination` is the final path
/// of the VRT. `no_value` is the value of missing pixels.
std::string with_derived_bands(const std::string& text, const std::string& destination,
                               const RasterSource& like, const std::vector<VirtualBand>& bands,
                               std::optional<double> no_value);

} // namespace hsi::raster
