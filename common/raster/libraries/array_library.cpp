// SPDX-License-Identifier: MIT
// Spectral libraries in arrays of netCDF, HDF5 and Zarr: an array with two axes, one of which is the bands,
// or arrays that have only the axis of wavelengths.
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/libraries/library_formats.h"
#include "raster/libraries/table_axis.h"
#include "raster/products/array_facts.h"
#include "raster/products/array_file.h"
#include "raster/products/product.h"
#include "raster/sample_convert.h"

#include <cpl_conv.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

/// Returns all samples of the product's only array, in the array's order, with scale and offset applied.
/// Missing values are NaN. Per cent are converted to fractions, as in text tables.
std::vector<double> values_of(const Product& product, const std::string& path) {
    const CubePart& part = product.parts.front();
    const auto file = ArrayFile::open(product.path);
    const auto array = file ? file->array_of(part) : nullptr;
    const GUInt64 start[3] = {0, 0, 0};
    size_t count[3];
    count[part.line_axis] = static_cast<size_t>(product.lines);
    count[part.sample_axis] = static_cast<size_t>(product.samples);
    count[part.band_axis] = product.bands.size();
    const size_t all = count[0] * count[1] * count[2];
    const int size = GDALGetDataTypeSizeBytes(part.type);
    std::vector<char> samples(all * static_cast<size_t>(size));
    const GdalErrors errors;
    if (!array || !read_samples(*array, part, start, count, samples.data()) || errors.any())
        throw Error("cannot read '" + path + "': " + errors.text());
    std::vector<double> values(all);
    GDALCopyWords64(samples.data(), part.type, size, values.data(), GDT_Float64, sizeof(double),
                    static_cast<GPtrDiff_t>(all));
    std::vector<float> marks(all);
    to_floats(samples.data(), size, sample_type(part.type), false,
              part.nodata ? match_in_type(*part.nodata, sample_type(part.type)) : NodataMatch{}, marks.data(),
              all);
    blank_invalid(part.invalid, samples.data(), size, sample_type(part.type), false, marks.data(), all);
    const ProductBand& band = product.bands.front();
    const double whole = is_percent(unit_of(array)) ? 100 : 1;
    for (size_t i = 0; i < all; ++i)
        values[i] = marks[i] != marks[i]
                        ? no_library_value
                        : (values[i] * band.scale.value_or(1) + band.offset.value_or(0)) / whole;
    return values;
}

/// Returns the texts of the only one-dimensional string array in the file that has `count` entries. The list
/// is empty if the file has no such array or several.
std::vector<std::string> names_of(const std::string& path, size_t count) {
    std::vector<std::string> names;
    const auto file = ArrayFile::open(path);
    const GdalErrors quiet;
    const auto root = file ? file->group("/") : nullptr;
    if (!root) return names;
    for (const std::string& each : array_names(*root)) {
        const auto list = root->OpenMDArray(each);
        if (!list || list->GetDimensionCount() != 1 || list->GetDimensions()[0]->GetSize() != count ||
            list->GetDataType().GetClass() != GEDTC_STRING)
            continue;
        if (!names.empty()) return {};
        std::vector<char*> texts(count, nullptr);
        const GUInt64 start = 0;
        if (list->Read(&start, &count, nullptr, nullptr, GDALExtendedDataType::CreateString(), texts.data()))
            for (char* const text : texts)
                names.emplace_back(text != nullptr ? text : "");
        for (char* const text : texts)
            CPLFree(text);
    }
    return names;
}

/// Returns the axis of a single-band product that has the length of the scene's bands: 0 for its lines, 1 for
/// its samples. \throws Error if both axes or neither have this length.
int axis_of_bands(const Product& product, size_t scene_bands, const std::string& path) {
    const auto bands = static_cast<int64_t>(scene_bands);
    if (bands > 0 && (product.lines == bands) != (product.samples == bands))
        return product.lines == bands ? 0 : 1;
    refuse_library(path, "does not state which axis of " + product.parts.front().array + " is the bands");
}

/// Returns the last part of the array's path. The full path (with groups) is returned if another array has
/// the same last part.
std::string name_among(const std::vector<Product>& products, const Product& product) {
    const auto last = [](const Product& of) {
        const std::string& name = of.parts.front().array;
        return name.substr(name.rfind('/') + 1);
    };
    const auto alike = std::count_if(products.begin(), products.end(),
                                     [&](const Product& other) { return last(other) == last(product); });
    return alike == 1 ? last(product) : product.parts.front().array.substr(1);
}

SpectralLibrary library_of_table(const Product& product, const std::string& path, size_t scene_bands) {
    const bool told = product.bands.size() > 1;
    if (told && product.lines > 1)
        throw Error("'" + path + "': " + product.parts.front().array +
                        " is a scene, but a library has two axes",
                    "Make a library from the scene with gdal_hsi_endmembers or gdal_hsi_spectra.");
    const CubePart& part = product.parts.front();
    const int axis = told                                             ? part.band_axis
                     : axis_of_bands(product, scene_bands, path) == 0 ? part.line_axis
                                                                      : part.sample_axis;
    const int other = told || axis == part.line_axis ? part.sample_axis : part.line_axis;
    const auto length = [&](int k) {
        return k == part.band_axis && told ? product.bands.size()
               : k == part.line_axis       ? static_cast<size_t>(product.lines)
                                           : static_cast<size_t>(product.samples);
    };
    const size_t bands = length(axis), count = length(other);
    const std::vector<double> values = values_of(product, path);
    const size_t band_step = axis < other ? count : 1, spectrum_step = axis < other ? 1 : bands;
    const auto names = names_of(product.path, count);
    SpectralLibrary library;
    library.notes = product.notes;
    for (size_t k = 0; k < count; ++k) {
        library.names.push_back(k < names.size() && !names[k].empty() ? names[k]
                                                                      : "Spectrum " + std::to_string(k + 1));
        auto& spectrum = library.spectra.emplace_back();
        for (size_t b = 0; b < bands; ++b)
            spectrum.push_back(told && product.bands[b].good == false
                                   ? no_library_value
                                   : values[k * spectrum_step + b * band_step]);
    }
    const SceneMetadata scene = scene_of(product);
    for (size_t b = 0; told && b < bands; ++b) {
        library.wavelengths_nm.push_back(scene.bands[b].wavelength_nm);
        library.fwhm_nm.push_back(scene.bands[b].fwhm_nm);
    }
    for (auto* const list : {&library.wavelengths_nm, &library.fwhm_nm})
        if (std::all_of(list->begin(), list->end(), [](double v) { return v != v; })) list->clear();
    return library;
}

/// Adds the spectra of another array of the same file. \throws Error if the wavelengths of the two arrays
/// differ.
void join(SpectralLibrary& library, SpectralLibrary&& other, const std::string& path) {
    const auto same = [](double a, double b) { return a == b || (a != a && b != b); };
    const auto& a = library.wavelengths_nm;
    const auto& b = other.wavelengths_nm;
    if (a.size() != b.size() || !std::equal(a.begin(), a.end(), b.begin(), same))
        throw Error("'" + path + "': the wavelengths of " + library.names.front() + " and " +
                        other.names.front() + " differ",
                    "Name one of the arrays, as in NETCDF:\"a.nc\":spectrum.");
    std::move(other.names.begin(), other.names.end(), std::back_inserter(library.names));
    std::move(other.spectra.begin(), other.spectra.end(), std::back_inserter(library.spectra));
    for (std::string& note : other.notes)
        if (std::find(library.notes.begin(), library.notes.end(), note) == library.notes.end())
            library.notes.push_back(std::move(note));
}

} // namespace

SpectralLibrary read_array_library(const std::string& path, size_t scene_bands) {
    const auto products = find_spectra(path, static_cast<int64_t>(scene_bands));
    if (products.empty() || products.front().parts.size() != 1)
        refuse_library(path, "is not a spectral library");
    std::vector<std::string> names;
    for (const Product& product : products)
        names.push_back(name_among(products, product));
    const auto statistics = statistics_among(names, std::vector<Column>(names.size()));
    std::optional<SpectralLibrary> library;
    for (size_t k = 0; k < products.size(); ++k) {
        if (statistics[k]) continue;
        SpectralLibrary one = library_of_table(products[k], path, scene_bands);
        const bool list = products[k].lines == 1 && products[k].samples == 1;
        if (products.size() > 1 || (list && one.names.front() == "Spectrum 1")) one.names.front() = names[k];
        if (library)
            join(*library, std::move(one), path);
        else
            library = std::move(one);
    }
    return std::move(*library);
}

} // namespace hsi::raster
