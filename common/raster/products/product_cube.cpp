// SPDX-License-Identifier: MIT
// Cubes of no agency's: netCDF as xarray, MATLAB and the like write it, whose axes have names.
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal/gdal_errors.h"
#include "raster/gdal/whole_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/products/array_axes.h"
#include "raster/products/product_readers.h"

#include <cpl_conv.h>
#include <gdal_priv.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

using Array = std::shared_ptr<GDALMDArray>;

/// Axes of the bands, the lines and the samples; nothing unless each is told by its name.
std::optional<std::array<size_t, 3>> axes_of(const Array& array) {
    constexpr size_t none = 3;
    const auto& axes = array->GetDimensions();
    if (axes.size() != 3 || array->GetDataType().GetClass() != GEDTC_NUMERIC) return std::nullopt;
    std::array<size_t, 3> found{none, none, none};
    for (size_t k = 0; k < 3; ++k) {
        const Axis axis = axis_called(axes[k]->GetName());
        if (axis == Axis::unknown) return std::nullopt;
        size_t& place = found[axis == Axis::bands ? 0 : axis == Axis::lines ? 1 : 2];
        if (place != none) return std::nullopt;
        place = k;
    }
    return found;
}

/// The only cube of the file, or the only one that is called after what scenes hold; null otherwise.
Array cube_in(const std::shared_ptr<GDALGroup>& root) {
    std::vector<Array> cubes;
    constexpr size_t most = 2000; // a file has tens
    const auto names = root->GetMDArrayNames();
    for (size_t k = 0; k < std::min(names.size(), most); ++k)
        if (auto array = root->OpenMDArray(names[k]); array && axes_of(array))
            cubes.push_back(std::move(array));
    if (cubes.size() > 1)
        cubes.erase(std::remove_if(cubes.begin(), cubes.end(),
                                   [](const Array& array) {
                                       const std::string name = lower(array->GetName());
                                       return name != "reflectance" && name != "radiance";
                                   }),
                    cubes.end());
    return cubes.size() == 1 ? cubes.front() : nullptr;
}

/// GDAL's reader for rasters gives the cube as it is meant: bands, lines and samples in its order, and its
/// lines turned around only where they are told to rise.
bool gdal_reads_it(const ArrayFile& file, const Array& array, const std::array<size_t, 3>& axes,
                   const Numbers& y) {
    if (axes != std::array<size_t, 3>{0, 1, 2}) return false;
    // Its own files, and those whose reader has been told how they lie.
    if (!attribute_text(file.group("/"), "GDAL").empty() ||
        CPLGetConfigOption("GDAL_NETCDF_BOTTOMUP", nullptr) != nullptr)
        return true;
    const GdalErrors quiet;
    const DatasetHandle raster(GDALDataset::FromHandle(GDALOpenEx(
        whole_name(file.path()).c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
    if (!raster || raster->GetRasterCount() != static_cast<int>(array->GetDimensions()[0]->GetSize()))
        return false;
    std::array<double, 6> gt{};
    const bool turned = raster->GetDriver() && EQUAL(raster->GetDriver()->GetDescription(), "netCDF");
    return !turned || raster->GetGeoTransform(gt.data()) == CE_None ||
           (y.size() > 1 && y.values.front() < y.values.back());
}

bool evenly_spaced(const Numbers& numbers) {
    if (numbers.size() < 2) return false;
    const double first = numbers.values.front(), count = static_cast<double>(numbers.size() - 1),
                 step = (numbers.values.back() - first) / count;
    constexpr double most = 0.1; // of a pixel: coordinates in single precision are not exact
    for (size_t k = 0; k < numbers.size(); ++k)
        if (!(std::fabs(numbers.values[k] - first - step * static_cast<double>(k)) <= most * std::fabs(step)))
            return false;
    return step != 0;
}

std::shared_ptr<const OGRSpatialReference> srs_of(const ArrayFile& file, const Array& array) {
    std::vector<std::string> names = {"spatial_ref", "crs", "transverse_mercator"};
    if (const std::string told = attribute_text(array, "grid_mapping"); !told.empty())
        names.insert(names.begin(), told);
    for (const std::string& name : names)
        for (const char* text : {"crs_wkt", "spatial_ref"})
            if (auto srs = srs_from(attribute_text(file.array("/" + name), text))) return srs;
    for (const char* text : {"crs_wkt", "spatial_ref", "crs"})
        if (auto srs = srs_from(attribute_text(file.group("/"), text))) return srs;
    return nullptr;
}

/// Wavelengths: the list that is called like the axis, or one that is called after them.
std::pair<Array, Numbers> wavelengths_for(const ArrayFile& file, const std::string& axis, size_t bands) {
    std::vector<std::string> names = {axis};
    for (const std::string& name : file.group("/")->GetMDArrayNames())
        names.push_back(name);
    for (const std::string& name : names)
        if (lists_wavelengths(name))
            if (Numbers list = file.list("/" + name); list.size() == bands)
                return {file.array("/" + name), std::move(list)};
    return {};
}

} // namespace

std::optional<Product> read_named_cube(const ArrayFile& file) {
    const auto root = file.group("/");
    const Array array = root ? cube_in(root) : nullptr;
    if (!array) return std::nullopt;
    const auto order = *axes_of(array);
    const auto& axes = array->GetDimensions();
    const std::string x_name = axes[order[2]]->GetName(), y_name = axes[order[1]]->GetName();
    const Numbers x = file.list("/" + x_name), y = file.list("/" + y_name);
    if (gdal_reads_it(file, array, order, y)) return std::nullopt;

    const size_t bands = axes[order[0]]->GetSize();
    constexpr size_t most_bands = 65535;
    if (bands > most_bands) return std::nullopt;
    std::string names;
    for (size_t k = 0; k < 3; ++k)
        names += (k ? ", " : "") + axes[k]->GetName();
    Product product = begin_product(file, "cube " + array->GetName() + " (" + names + ")");
    add_part(product, file, array->GetFullName(), bands, static_cast<int>(order[0]));
    const auto [list, wavelengths] = wavelengths_for(file, axes[order[0]]->GetName(), bands);
    if (wavelengths.size() > 0) {
        const auto as_long = [&](const char* name) {
            Numbers found = file.list(name);
            return found.size() == bands ? found : Numbers();
        };
        Numbers good = as_long("/good_wavelengths");
        if (good.size() == 0) good = as_long("/bbl");
        add_bands(product, wavelengths, as_long("/fwhm"), good);
        if (in_micrometres(list->GetUnit())) product.wavelength_units = "Micrometers";
    } else {
        product.bands.resize(bands);
        for (size_t b = 0; b < bands; ++b)
            product.bands[b].index = static_cast<int64_t>(b);
    }
    bool scaled = false, shifted = false;
    const double scale = array->GetScale(&scaled), offset = array->GetOffset(&shifted);
    for (ProductBand& band : product.bands) {
        if (scaled) band.scale = scale;
        if (shifted) band.offset = offset;
    }
    take_nodata(product, array);
    product.unit = array->GetUnit();
    if (static_cast<int64_t>(x.size()) != product.samples || static_cast<int64_t>(y.size()) != product.lines)
        return product;
    if (!evenly_spaced(x) || !evenly_spaced(y)) {
        product.notes.push_back("'" + product.path + "' (" + product.name + "): " + x_name + " and " +
                                y_name + " are not evenly spaced: the scene has no position");
        return product;
    }
    product.geotransform = grid_of_centres(x, y);
    product.srs = srs_of(file, array);
    if (!product.srs && starts_with(lower(x_name), "lon") && starts_with(lower(y_name), "lat"))
        product.srs = srs_from("EPSG:4326");
    return product;
}

} // namespace hsi::raster
