// SPDX-License-Identifier: MIT
// Places of the quality layers in products, and the names of their flags: tables with one row per layer.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/products/product.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// A raster that holds flags.
struct QualityRaster {
    std::string path;
    std::shared_ptr<const Product> arrays; ///< not null: arrays of `path`
    DatasetHandle open() const;            ///< \throws Error
};

/// A flag, or a quantity, of a raster. Its value is the greatest of those bands.
struct QualityLayer {
    std::string name, also;        ///< also: another name; empty without one
    size_t raster = 0;             ///< of QualityLayers::rasters
    std::vector<int> bands;        ///< 1-based
    uint64_t bits = 0;             ///< not 0: the flag is 1 where one of these bits is set, else 0
    std::optional<double> number;  ///< the flag is 1 where the layer has this value, else 0
    std::vector<double> fill = {}; ///< values without a meaning, in addition to the band's nodata
};

/// Bits of a signed or unsigned number, with which QualityLayer::bits are compared.
uint64_t bits_of(double number);

struct QualityLayers {
    std::vector<QualityRaster> rasters;
    std::vector<QualityLayer> layers;
    /// The advice for users without layers.
    std::string advice;
};

/// The layers of a product, in its own file or in files next to it.
QualityLayers layers_of_product(const Product& product);
/// Those that a file holds. Bands of a raster that no row knows are named by their descriptions.
/// \throws Error when the file does not open.
QualityLayers layers_in_file(const std::string& path);

} // namespace hsi::raster
