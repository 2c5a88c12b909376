// SPDX-License-Identifier: MIT
// Reads products of NASA's ocean colour group. They are arrays of an HDF5 or netCDF-4 file in sensor
// geometry, with a longitude and a latitude for each pixel.
#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/array_facts.h"
#include "raster/products/product_readers.h"

#include <utility>

namespace hsi::raster {
namespace {

/// Sets scale and offset from attributes in either spelling; a scaled value is stored value * scale + offset.
void take_scale(Product& product, size_t first_band, const std::shared_ptr<GDALMDArray>& array) {
    const auto number = [&](const char* name, const char* other) -> std::optional<double> {
        for (const char* each : {name, other})
            if (const auto found = number_told(product, array, each)) return found;
        return std::nullopt;
    };
    const auto scale = number("scale_factor", "slope"), offset = number("add_offset", "intercept");
    for (size_t b = first_band; b < product.bands.size(); ++b) {
        product.bands[b].scale = scale;
        product.bands[b].offset = offset;
    }
}

} // namespace

/// Reads PACE OCI. Level 1B has reflectance at the top of the atmosphere, in three cubes (band, line, sample)
/// whose wavelength ranges overlap. Level 2 has surface reflectance (rhos) or remote-sensing reflectance
/// (Rrs) in a cube (line, sample, band), and wavelengths in wavelength_3d. l2gen writes this form of level 2
/// also for other sensors.
std::optional<Product> read_pace(const ArrayFile& file) {
    const auto root = file.group("/");
    const std::string platform = attribute_text(root, "platform"),
                      instrument = attribute_text(root, "instrument");
    const std::string sensor = platform.empty() || instrument.empty() ? "l2gen" : platform + " " + instrument;
    const std::string bands = "/sensor_band_parameters/";
    for (const auto& [name, what] :
         {std::pair{"rhos", "surface reflectance"}, {"Rrs", "remote-sensing reflectance"}}) {
        const std::string cube = std::string("/geophysical_data/") + name;
        const auto array = file.array(cube);
        if (!array || array->GetDimensionCount() != 3) continue;
        Product product = begin_product(file, sensor + " L2 " + what);
        const Numbers wavelengths = file.list(bands + "wavelength_3d");
        if (wavelengths.size() == 0) refuse_product(product, "has no " + bands + "wavelength_3d");
        add_part(product, file, cube, wavelengths.size(), 2);
        add_bands(product, wavelengths, {}, {});
        take_scale(product, 0, array);
        product.unit = unit_of(array);
        take_locations(product, file, "/navigation_data/longitude", "/navigation_data/latitude");
        return product;
    }
    Product product = begin_product(file, sensor + " L1B reflectance");
    for (const char* range : {"blue", "red", "SWIR"}) {
        const std::string cube = std::string("/observation_data/rhot_") + range;
        const auto array = file.array(cube);
        if (!array || array->GetDimensionCount() != 3) return std::nullopt;
        const Numbers wavelengths = file.list(bands + range + "_wavelength");
        if (wavelengths.size() == 0) refuse_product(product, "has no " + bands + range + "_wavelength");
        const size_t first = product.bands.size();
        add_part(product, file, cube, wavelengths.size(), 0);
        add_bands(product, wavelengths, file.list(bands + range + "_bandpass"), {});
        for (size_t b = first; b < product.bands.size(); ++b)
            product.bands[b].description = std::string(range) + " " + std::to_string(b - first + 1);
        take_scale(product, first, array);
    }
    sort_bands(product);
    take_locations(product, file, "/geolocation_data/longitude", "/geolocation_data/latitude");
    return product;
}

/// Reads HICO level 1B (Ocean Biology Processing Group): radiance (line, sample, band). Attributes of the
/// cube contain the band properties.
std::optional<Product> read_hico(const ArrayFile& file) {
    const std::string cube = "/products/Lt";
    const auto array = file.array(cube);
    if (!array || array->GetDimensionCount() != 3 || !file.group("/navigation")) return std::nullopt;
    Product product = begin_product(file, "HICO L1B radiance");
    const Numbers wavelengths = attribute_numbers(array, "wavelengths");
    if (wavelengths.size() == 0) refuse_product(product, "has no attribute wavelengths of " + cube);
    add_part(product, file, cube, wavelengths.size(), 2);
    add_bands(product, wavelengths, attribute_numbers(array, "fwhm"), {});
    take_scale(product, 0, array);
    product.unit = unit_of(array);
    take_locations(product, file, "/navigation/longitudes", "/navigation/latitudes");
    return product;
}

} // namespace hsi::raster
