// SPDX-License-Identifier: MIT
// Finds the quality layers of products and the names of their flags. Tables with one row per layer state in
// which files and bands the layers are.
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
    /// Null: GDAL opens `path` as a raster; otherwise the arrays to read from `path`.
    std::shared_ptr<const Product> arrays;
    DatasetHandle open() const; ///< \throws Error
};

/// A flag or a quantity in a raster. Its value in a pixel is the maximum of the values of its bands.
struct QualityLayer {
    std::string name, also;        ///< also: a second name; may be empty
    size_t raster = 0;             ///< index in QualityLayers::rasters
    std::vector<int> bands;        ///< band numbers, from 1
    uint64_t bits = 0;             ///< not 0: the flag is 1 if one of these bits is set, otherwise 0
    std::optional<double> number;  ///< set: the flag is 1 if the layer has this value, otherwise 0
    std::vector<double> fill = {}; ///< values without a meaning, in addition to the nodata value of the band
};

/// Returns the bits of a signed or unsigned number, for comparison with QualityLayer::bits.
uint64_t bits_of(double number);

struct QualityLayers {
    std::vector<QualityRaster> rasters;
    std::vector<QualityLayer> layers;
    /// Advice for the user if no layers are found.
    std::string advice;
};

/// Returns the quality layers of a product, which are in its own file or in files next to it.
QualityLayers layers_of_product(const Product& product);
/// Returns the quality layers in a file. In a raster that is not a known quality file, each band with a
/// description is a layer with this name. \throws Error if the file cannot be opened.
QualityLayers layers_in_file(const std::string& path);

} // namespace hsi::raster
