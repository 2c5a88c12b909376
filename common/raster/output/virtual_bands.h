// SPDX-License-Identifier: MIT
// The text of a VRT whose bands are computed by pixel functions from the bands of a scene.
#pragma once

#include "raster/raster_sink.h"
#include "raster/raster_source.h"

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Throws UsageError for a source that a VRT cannot open because it requires -if.
void check_virtual_source(const RasterSource& like);

/// Returns `text`, a VRT with as many described plain bands as `bands`, with derived bands that read the
/// bands of `like`. `destination` is its final path. no_value: the value of missing pixels.
std::string with_derived_bands(const std::string& text, const std::string& destination,
                               const RasterSource& like, const std::vector<VirtualBand>& bands,
                               std::optional<double> no_value);

} // namespace hsi::raster
