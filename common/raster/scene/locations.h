// SPDX-License-Identifier: MIT
// Longitude and latitude of every pixel of a scene without a geotransform, from the arrays of its product, or
// of the product that it was made from, which its GEOLOCATION domain names.
#pragma once

#include "raster/products/product.h"
#include "raster/scene/source_impl.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// Pixel (line, sample) of the file is pixel (line + this line, sample + this sample) of the product.
struct Locations {
    std::shared_ptr<const Product> product; ///< with arrays of longitude and latitude
    int64_t line = 0, sample = 0;
};

/// Returns nullopt for a scene with a geotransform, or if the product is not where the domain states. Domains
/// of other programs, which need not refer to centres of pixels, are left to GDAL.
std::optional<Locations> locations_behind(const SourceState& state);

/// Returns the product in the GEOLOCATION domain of a scene without a geotransform; empty: no domain, or a
/// domain of another program.
std::string product_of_locations(const SceneMetadata& scene);

/// Returns the earlier position (sample, line) of the first pixel of a part of a scene. Its GEOLOCATION
/// domain is shifted by -srcwin.
std::optional<std::pair<int64_t, int64_t>> first_pixel(const SceneMetadata& scene);

} // namespace hsi::raster
