// SPDX-License-Identifier: MIT
// Finds the longitude and latitude of the pixels of a scene without a geotransform. They are in arrays of a
// product. The scene is this product, or it was made from the product that its metadata domain GEOLOCATION
// names.
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

/// The position of a file within the swath of its product: pixel (l, s) of the file is pixel (line + l,
/// sample + s) of the product.
struct Locations {
    std::shared_ptr<const Product> product; ///< has arrays of longitude and latitude
    int64_t line = 0, sample = 0;
};

/// Returns the locations of a scene. nullopt if the scene has a geotransform, or if no product with arrays of
/// longitude and latitude that cover the scene is found. GEOLOCATION domains of other programs are not used,
/// because their positions may not be pixel centres.
std::optional<Locations> locations_behind(const SourceState& state);

/// Returns the path of the product in the GEOLOCATION domain of a scene without a geotransform; empty if the
/// scene has no such domain, or a domain of another program.
std::string product_of_locations(const SceneMetadata& scene);

/// Returns the position (sample, line) of the file's first pixel in the original scene. If the file is a part
/// that was cut with -srcwin, its GEOLOCATION domain states this position. nullopt if the file has no such
/// domain.
std::optional<std::pair<int64_t, int64_t>> first_pixel(const SceneMetadata& scene);

} // namespace hsi::raster
