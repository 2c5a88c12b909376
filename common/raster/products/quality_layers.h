// SPDX-License-Identifier: MIT
// Positions of the quality layers in products, and the names of their flags, as tables with one row per
// layer.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/products/product.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// A raster that contains flags.
struct QualityRaster {
    std::string path;
    std::shared_ptr<const Product> arrays; ///< not null: arrays of `path`
    DatasetHandle open() const;            ///< \throws Error
};

/// A flag or a quantity of a raster. Its value is the maximum of its bands.
struct QualityLayer {
    std::string name, also;        ///< also: another name; empty without another name
    size_t raster = 0;             ///< of QualityLayers::rasters
    std::vector<int> bands;        ///< 1-based
    uint64_t bits = 0;             ///< not 0: the flag is 1 if one of these bits is set, else 0
    std::optional<double> number;  ///< the flag is 1 if the layer has this value, else 0
    std::vector<double> fill = {}; ///< values without a meaning, in addition to the band's nodata
};

/// Returns the bits of a signed or unsigned number, for a comparison with QualityLayer::bits.
uint64_t bits_of(double number);

struct QualityLayers {
    std::vector<QualityRaster> rasters;
    std::vector<QualityLayer> layers;
    /// The advice for users if there are no layers.
    std::string advice;
};

/// Returns the layers of a product, in its own file or in files next to it.
QualityLayers layers_of_product(const Product& product);
/// Returns the layers of a file. Bands of an unknown raster are named by their descriptions.
/// \throws Error if the file does not open.
QualityLayers layers_in_file(const std::string& path);

} // namespace hsi::raster
