// SPDX-License-Identifier: MIT
#include "raster/products/quality_layers.h"

#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/array_file.h"
#include "raster/products/product_readers.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hsi::raster {
namespace {

/// An array with two axes that contains one flag. If several rows have the same flag name, the first existing
/// array is used.
struct ArrayRow {
    const char* array;
    const char *name, *also;
    /// The array has PRISMA's codes for errors and for pixels that are not classified.
    bool has_other_codes = false;
};
constexpr ArrayRow array_rows[] = {
    // PRISMA L1 (ASI, PRISMA Products Specification Document)
    {"/HDFEOS/SWATHS/PRS_L1_HCO/Data Fields/Cloud_Mask", "cloud", "", true},
    {"/HDFEOS/SWATHS/PRS_L1_HCO/Data Fields/SunGlint_Mask", "glint", "SunGlint", true},
    {"/HDFEOS/SWATHS/PRS_L1_HCO/Data Fields/LandCover_Mask", "landcover", "", true},
    {"/HDFEOS/SWATHS/PRS_L1_HRC/Data Fields/Cloud_Mask", "cloud", "", true},
    {"/HDFEOS/SWATHS/PRS_L1_HRC/Data Fields/SunGlint_Mask", "glint", "SunGlint", true},
    {"/HDFEOS/SWATHS/PRS_L1_HRC/Data Fields/LandCover_Mask", "landcover", "", true},
    // Tanager (Planet, Tanager core imagery product specification)
    {"/HDFEOS/SWATHS/HYP/Data Fields/beta_cloud_mask", "cloud", "beta_cloud_mask"},
    {"/HDFEOS/SWATHS/HYP/Data Fields/beta_cirrus_mask", "cirrus", "beta_cirrus_mask"},
    {"/HDFEOS/SWATHS/HYP/Data Fields/nodata_pixels", "nodata_pixels", ""},
    {"/HDFEOS/GRIDS/HYP/Data Fields/beta_cloud_mask", "cloud", "beta_cloud_mask"},
    {"/HDFEOS/GRIDS/HYP/Data Fields/beta_cirrus_mask", "cirrus", "beta_cirrus_mask"},
    {"/HDFEOS/GRIDS/HYP/Data Fields/nodata_pixels", "nodata_pixels", ""},
};
const std::vector<double> other_codes = {10, 255};

/// The array of NASA OBPG's level 2 flags. Each flag is a bit, which the attributes flag_masks and
/// flag_meanings describe.
constexpr const char* bit_array = "/geophysical_data/l2_flags";
constexpr std::pair<const char*, const char*> bit_names[] = {{"CLDICE", "cloud"}, {"HIGLINT", "glint"}};

/// The array of EMIT L2A masks (NASA JPL, D-107862). Each flag is a band, whose position depends on the
/// product version.
constexpr const char* band_array = "/mask";
constexpr const char* band_labels[] = {"/sensor_band_parameters/mask_bands", "/mask_bands"};

/// EnMAP (DLR, EN-PCV-ICD-2009) stores flags in ..QL_QUALITY_NAME.TIF, a raster with one band per flag.
constexpr const char* enmap_part = "QL_QUALITY_";
constexpr std::pair<const char*, const char*> enmap_also[] = {{"cloudshadow", "shadow"}};
constexpr const char* enmap_classes = "classes";
constexpr std::pair<const char*, double> enmap_numbers[] = {{"land", 1}, {"water", 2}};

/// DESIS L2A (DLR, PAV-DES-TN) stores flags in ..QL_QUALITY-2.tif. Some flags have two bands: one over land
/// and one over water.
constexpr const char* desis_part = "QL_QUALITY-2";
struct BandRow {
    const char* name;
    int first, last;
};
constexpr BandRow desis_rows[] = {{"shadow", 1, 1}, {"land", 2, 2},  {"snow", 3, 3},   {"haze", 4, 5},
                                  {"cloud", 6, 7},  {"water", 8, 8}, {"aot550", 9, 9}, {"wv", 10, 10}};

bool has_name(const QualityLayers& found, const std::string& name) {
    return std::any_of(found.layers.begin(), found.layers.end(),
                       [&](const QualityLayer& layer) { return layer.name == name; });
}

/// Returns the texts of a string array with one axis; empty if there is no such array.
std::vector<std::string> texts_in(const ArrayFile& file, const std::string& name) {
    constexpr uint64_t most = 10000;
    const auto array = file.array(name);
    if (!array || array->GetDimensionCount() != 1 || array->GetDataType().GetClass() != GEDTC_STRING)
        return {};
    const GUInt64 start = 0;
    const size_t count = array->GetDimensions()[0]->GetSize();
    if (count == 0 || count > most) return {};
    const GdalErrors quiet;
    std::vector<char*> read(count, nullptr);
    std::vector<std::string> texts;
    if (array->Read(&start, &count, nullptr, nullptr, GDALExtendedDataType::CreateString(), read.data()))
        for (const char* text : read)
            texts.push_back(utf8_text(text ? text : ""));
    for (char* text : read)
        CPLFree(text);
    return texts;
}

/// Adds an array with two axes as a raster, with lines and samples in the stored order. Returns false if the
/// array does not exist.
bool add_plane(QualityLayers& found, const ArrayFile& file, const std::string& array, bool bits = false) {
    if (!file.array(array)) return false;
    auto plane = read_array(file, array, {WantedArray::Use::plane});
    if (!plane) return false;
    plane->lines_rise = plane->samples_fall = false; // the same order as the product's cube
    plane->geotransform.reset();
    // netCDF's default fill value, -2147483647, is valid here because it means two of 32 flags.
    if (bits && attribute_numbers(file.array(array), "_FillValue").size() == 0)
        plane->parts.front().nodata.reset();
    found.rasters.push_back({file.path(), std::make_shared<const Product>(std::move(*plane))});
    return true;
}

void add_array_rows(QualityLayers& found, const ArrayFile& file) {
    for (const ArrayRow& row : array_rows)
        if (!has_name(found, row.name) && add_plane(found, file, row.array))
            found.layers.push_back({row.name,
                                    row.also,
                                    found.rasters.size() - 1,
                                    {1},
                                    0,
                                    std::nullopt,
                                    row.has_other_codes ? other_codes : std::vector<double>()});
}

void add_bits(QualityLayers& found, const ArrayFile& file) {
    const auto array = file.array(bit_array);
    if (!array) return;
    const Numbers masks = attribute_numbers(array, "flag_masks");
    const CPLStringList names(
        CSLTokenizeString2(attribute_text(array, "flag_meanings").c_str(), " ,\t\n", 0));
    if (masks.size() == 0 || static_cast<size_t>(names.size()) != masks.size() ||
        !add_plane(found, file, bit_array, true))
        return;
    for (int k = 0; k < names.size(); ++k) {
        const std::string name = names[k];
        const auto* const known = std::find_if(std::begin(bit_names), std::end(bit_names),
                                               [&](const auto& row) { return name == row.first; });
        found.layers.push_back({name,
                                known == std::end(bit_names) ? "" : known->second,
                                found.rasters.size() - 1,
                                {1},
                                bits_of(masks.values[static_cast<size_t>(k)]),
                                std::nullopt});
    }
}

void add_labelled_bands(QualityLayers& found, const ArrayFile& file) {
    const auto array = file.array(band_array);
    if (!array || array->GetDimensionCount() != 3) return;
    std::vector<std::string> labels;
    for (const char* name : band_labels)
        if (labels.empty()) labels = texts_in(file, name);
    if (labels.empty()) return;
    Product product = begin_product(file, "EMIT L2A mask");
    add_part(product, file, band_array, labels.size(), 2);
    product.bands.resize(labels.size());
    for (size_t b = 0; b < labels.size(); ++b) {
        product.bands[b].index = static_cast<int64_t>(b);
        found.layers.push_back(
            {labels[b], "", found.rasters.size(), {static_cast<int>(b) + 1}, 0, std::nullopt});
    }
    found.rasters.push_back({file.path(), std::make_shared<const Product>(std::move(product))});
}

void add_arrays(QualityLayers& found, const std::string& path) {
    const auto file = ArrayFile::open(path);
    if (!file) return;
    const GdalErrors quiet;
    add_labelled_bands(found, *file);
    add_bits(found, *file);
    add_array_rows(found, *file);
}

/// Returns the sorted names of the entries of a folder.
std::vector<std::string> names_in(const std::string& folder) {
    constexpr int most = 10000;
    const GdalErrors quiet;
    const CPLStringList entries(VSIReadDirEx(folder.c_str(), most));
    std::vector<std::string> names(entries.List(), entries.List() + entries.size());
    std::sort(names.begin(), names.end());
    return names;
}

/// Returns the position of `part` in a file name, ignoring case; npos if the name does not contain it.
size_t place_of(const std::string& name, const char* part) { return lower(name).find(lower(part)); }

bool is_tiff_name(const std::string& name) {
    const std::string end = lower(CPLGetExtension(name.c_str()));
    return end == "tif" || end == "tiff";
}

void add_enmap_raster(QualityLayers& found, const std::string& path, const std::string& name) {
    const size_t raster = found.rasters.size();
    found.rasters.push_back({path, nullptr});
    std::string also;
    for (const auto& [first, second] : enmap_also)
        if (name == first) also = second;
    found.layers.push_back({name, also, raster, {1}, 0, std::nullopt});
    if (name == enmap_classes)
        for (const auto& [of, number] : enmap_numbers)
            found.layers.push_back({of, "", raster, {1}, 0, number});
}

/// Adds the quality rasters of EnMAP and DESIS whose names begin with `stem`.
void add_quality_rasters(QualityLayers& found, const std::string& folder, const std::string& stem) {
    for (const std::string& name : names_in(folder)) {
        if (name.rfind(stem, 0) != 0 || !is_tiff_name(name)) continue;
        const std::string path = join_path(folder, name), rest = name.substr(stem.size());
        if (place_of(rest, desis_part) == 0) {
            for (const BandRow& row : desis_rows) {
                found.layers.push_back({row.name, "", found.rasters.size(), {}, 0, std::nullopt});
                for (int band = row.first; band <= row.last; ++band)
                    found.layers.back().bands.push_back(band);
            }
            found.rasters.push_back({path, nullptr});
        } else if (place_of(rest, enmap_part) == 0) {
            const std::string words = CPLGetBasename(rest.substr(std::string(enmap_part).size()).c_str());
            add_enmap_raster(found, path, lower(words));
        }
    }
}

/// Returns the path of the mask that belongs to an EMIT scene. The names of both files are equal after level,
/// type and version. The text is empty if there is no mask.
std::string emit_mask_of(const std::string& scene) {
    constexpr const char* kind = "EMIT_L2A_MASK_";
    const std::string name = name_of(scene), folder = folder_of(scene);
    size_t at = 0;
    for (int underscores = 0; underscores < 4 && at != std::string::npos; ++underscores)
        at = name.find('_', at + (underscores > 0));
    if (at == std::string::npos || name.rfind("EMIT_L", 0) != 0) return {};
    const std::string rest = name.substr(at);
    for (const std::string& other : names_in(folder))
        if (other.rfind(kind, 0) == 0 && other.size() > rest.size() &&
            other.compare(other.size() - rest.size(), rest.size(), rest) == 0)
            return join_path(folder, other);
    return {};
}

void add_described_bands(QualityLayers& found, const std::string& path) {
    const DatasetHandle dataset = QualityRaster{path, nullptr}.open();
    for (int band = 1; band <= dataset->GetRasterCount(); ++band)
        if (const char* const text = dataset->GetRasterBand(band)->GetDescription(); text && *text)
            found.layers.push_back({utf8_text(text), "", 0, {band}, 0, std::nullopt});
    if (!found.layers.empty()) found.rasters.push_back({path, nullptr});
}

} // namespace

uint64_t bits_of(double number) {
    return number < 0 ? static_cast<uint64_t>(static_cast<int64_t>(number)) : static_cast<uint64_t>(number);
}

DatasetHandle QualityRaster::open() const {
    if (arrays) return open_array_raster(arrays);
    register_drivers();
    const GdalErrors errors;
    DatasetHandle dataset = open_in_gdal({path, {}, GDAL_OF_RASTER, {}, {}});
    if (!dataset) throw Error("cannot open '" + path + "': " + errors.text());
    return dataset;
}

QualityLayers layers_of_product(const Product& product) {
    QualityLayers found;
    const bool emit = product.name.rfind("EMIT", 0) == 0;
    if (!product.parts.empty() && product.driver != "MATLAB")
        add_arrays(found, emit ? emit_mask_of(product.path) : product.path);
    if (emit)
        found.advice = "Put its file EMIT_L2A_MASK_.. into the same folder, under its original name, or give "
                       "a file with -mask-flags-from.";
    if (product.parts.empty()) {
        const std::string name = name_of(product.path);
        const size_t end = std::min(place_of(name, "SPECTRAL_IMAGE"), place_of(name, "METADATA.XML"));
        if (end != std::string::npos)
            add_quality_rasters(found, folder_of(product.path), name.substr(0, end));
        found.advice = "Put its files ..QL_QUALITY.. into the same folder, under their original names, or "
                       "give a file with -mask-flags-from.";
    }
    return found;
}

QualityLayers layers_in_file(const std::string& path) {
    QualityLayers found;
    if (may_hold_arrays(path)) add_arrays(found, file_of_subdataset(path));
    const std::string name = name_of(path);
    if (const size_t at = place_of(name, "QL_QUALITY"); found.layers.empty() && at != std::string::npos)
        add_quality_rasters(found, folder_of(path), name.substr(0, at));
    if (found.layers.empty()) add_described_bands(found, path);
    found.advice =
        "Flags are the band descriptions of a raster; for a raster of one band, use -mask-exclude.";
    return found;
}

} // namespace hsi::raster
