// SPDX-License-Identifier: MIT
// Reads EnMAP and DESIS: a GeoTIFF with an XML file that describes its bands (bandCharacterisation). Both
// agencies use the same scheme with different names of elements. EnMAP L1B has one XML file for two images,
// one image per detector.
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/product_readers.h"
#include "raster/regular_file.h"
#include "raster/text_input.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>

namespace hsi::raster {
namespace {

constexpr const char* xml_suffix = "METADATA.XML"; ///< end of the file name; case is ignored

/// Parses an XML file; null if the file is not XML. `path` may be any file, even a large raster.
CPLXMLTreeCloser parse(const std::string& path) {
    const GdalErrors quiet;
    VSIStatBufL status;
    if (VSIStatL(path.c_str(), &status) == 0 &&
        static_cast<uint64_t>(status.st_size) > largest_file::product_text)
        return CPLXMLTreeCloser(nullptr);
    const std::string text = utf8_text(read_file(path, largest_file::product_text, FileHolds::bytes));
    CPLXMLTreeCloser tree(text.find('\0') == std::string::npos ? CPLParseXMLString(text.c_str()) : nullptr);
    if (tree) CPLStripXMLNamespace(tree.get(), nullptr, TRUE);
    return tree;
}

/// Returns the first element with this name, at any depth.
CPLXMLNode* find(CPLXMLNode* node, const char* name) {
    for (; node != nullptr; node = node->psNext) {
        if (node->eType != CXT_Element) continue;
        if (EQUAL(node->pszValue, name)) return node;
        if (CPLXMLNode* const inner = find(node->psChild, name)) return inner;
    }
    return nullptr;
}

std::string value_of_element(CPLXMLNode* tree, const char* name) {
    CPLXMLNode* const node = find(tree, name);
    return node ? CPLString(CPLGetXMLValue(node, nullptr, "")).Trim() : std::string();
}

std::optional<double> number_of(CPLXMLNode* band, const char* element) {
    const char* const text = CPLGetXMLValue(band, element, nullptr);
    return text && *text ? std::optional(CPLAtof(text)) : std::nullopt;
}

std::string stem_of(const std::string& xml) {
    const std::string name = name_of(xml);
    const size_t length = std::strlen(xml_suffix);
    if (name.size() < length || !equal_names(name.substr(name.size() - length), xml_suffix)) return {};
    return name.substr(0, name.size() - length);
}

/// Returns the image that the XML file names, or the image with the usual name next to the XML file.
std::string image_of(CPLXMLNode* tree, const std::string& xml) {
    std::vector<std::string> names;
    if (CPLXMLNode* const product = find(tree, "image"))
        if (CPLXMLNode* const merged = find(product, "merge"))
            names.push_back(value_of_element(merged, "name"));
    const std::string stem = stem_of(xml);
    for (const char* suffix : {"SPECTRAL_IMAGE.TIF", "SPECTRAL_IMAGE.tif", "SPECTRAL_IMAGE.tiff"})
        if (!stem.empty()) names.push_back(stem + suffix);
    for (const std::string& name : names) {
        const std::string path = join_path(folder_of(xml), name_of(name));
        if (!name.empty() && is_there(path)) return path;
    }
    return {};
}

constexpr std::array<const char*, 2> detectors = {"VNIR", "SWIR"};

/// Returns the paths of the images of both detectors, which the XML file names or which are next to it. The
/// path of a missing image is empty.
std::array<std::string, 2> detector_images(CPLXMLNode* tree, const std::string& xml) {
    std::array<std::string, 2> images;
    const std::string stem = stem_of(xml);
    for (size_t d = 0; d < 2; ++d) {
        std::vector<std::string> names;
        if (CPLXMLNode* const product = find(tree, "image"))
            if (CPLXMLNode* const own = find(product->psChild, detectors[d]))
                names.push_back(value_of_element(own->psChild, "name"));
        for (const char* extension : {".TIF", ".tif", ".tiff", ".TIFF"})
            if (!stem.empty()) names.push_back(stem + "SPECTRAL_IMAGE_" + detectors[d] + extension);
        for (const std::string& name : names) {
            const std::string path = join_path(folder_of(xml), name_of(name));
            if (images[d].empty() && !name.empty() && is_there(path)) images[d] = path;
        }
    }
    return images;
}

DatasetHandle open_tiff(const std::string& path) {
    const GdalErrors errors;
    const char* const drivers[] = {"GTiff", nullptr};
    DatasetHandle dataset(GDALDataset::FromHandle(
        GDALOpenEx(path.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, drivers, nullptr, nullptr)));
    if (!dataset) throw Error("cannot open '" + path + "': " + errors.text("it is not a GeoTIFF"));
    return dataset;
}

/// Returns the numbers of the bandCharacterisation entries that are in a detector's image, as the XML file
/// lists them.
std::vector<std::string> channels_of(CPLXMLNode* tree, const char* detector) {
    CPLXMLNode* const quality = find(tree, (std::string(detector) + "ProductQuality").c_str());
    const CPLStringList list(CSLTokenizeString2(
        quality ? value_of_element(quality->psChild, "expectedChannelsList").c_str() : "", ", \t\r\n", 0));
    return {list.List(), list.List() + list.size()};
}

/// Returns a VRT with the bands of both images in the order of the product, so that GDAL reads one raster.
std::string stacked(const std::array<std::string, 2>& images, const std::array<DatasetHandle, 2>& datasets,
                    const std::vector<ProductBand>& order) {
    GDALDriver* const driver = GetGDALDriverManager()->GetDriverByName("VRT");
    if (driver == nullptr)
        throw Error("this GDAL has no driver VRT, which puts the images of a product together");
    GDALDataset& first = *datasets[0];
    const DatasetHandle vrt(
        driver->Create("", first.GetRasterXSize(), first.GetRasterYSize(), 0, GDT_Unknown, nullptr));
    std::array<double, 6> gt{};
    if (first.GetGeoTransform(gt.data()) == CE_None) vrt->SetGeoTransform(gt.data());
    if (first.GetSpatialRef()) vrt->SetSpatialRef(first.GetSpatialRef());
    if (first.GetGCPCount() > 0) vrt->SetGCPs(first.GetGCPCount(), first.GetGCPs(), first.GetGCPSpatialRef());
    if (const auto rpc = first.GetMetadata("RPC")) // the type of `rpc` is const from GDAL 3.13 on
        vrt->SetMetadata(const_cast<char**>(rpc), "RPC");
    for (const ProductBand& band : order) {
        const auto d = static_cast<size_t>(band.part);
        const int number = static_cast<int>(band.index) + 1;
        GDALRasterBand* const from = datasets[d]->GetRasterBand(number);
        vrt->AddBand(from->GetRasterDataType(), nullptr);
        GDALRasterBand* const to = vrt->GetRasterBand(vrt->GetRasterCount());
        int has_nodata = 0;
        const double nodata = from->GetNoDataValue(&has_nodata);
        if (has_nodata) to->SetNoDataValue(nodata);
        char* const name = CPLEscapeString(images[d].c_str(), -1, CPLES_XML);
        const std::string source = "<SimpleSource><SourceFilename relativeToVRT=\"0\">" + std::string(name) +
                                   "</SourceFilename><SourceBand>" + std::to_string(number) +
                                   "</SourceBand></SimpleSource>";
        CPLFree(name);
        to->SetMetadataItem("source_0", source.c_str(), "new_vrt_sources");
    }
    CSLConstList const text = vrt->GetMetadata("xml:VRT");
    return text && text[0] ? text[0] : "";
}

/// Combines the two images of EnMAP L1B into one scene, sorted by wavelength.
void stack_detectors(Product& product, CPLXMLNode* tree, const std::vector<std::string>& numbers,
                     const std::array<std::string, 2>& images) {
    const std::string advice = "Keep the files of a product in one folder, under their original names.";
    for (size_t d = 0; d < 2; ++d)
        if (images[d].empty())
            throw Error("'" + product.path + "' (" + product.name +
                            ") has two images, but the image of the " + detectors[d] + " is missing",
                        advice);
    const std::array datasets = {open_tiff(images[0]), open_tiff(images[1])};
    if (datasets[0]->GetRasterXSize() != datasets[1]->GetRasterXSize() ||
        datasets[0]->GetRasterYSize() != datasets[1]->GetRasterYSize())
        refuse_product(product, "has images of different sizes");
    std::array<std::vector<size_t>, 2> entries; // indices of the product's bands in each image
    for (size_t d = 0; d < 2; ++d)
        for (const std::string& channel : channels_of(tree, detectors[d]))
            if (const auto at = std::find(numbers.begin(), numbers.end(), channel); at != numbers.end())
                entries[d].push_back(static_cast<size_t>(at - numbers.begin()));
    const auto count = [&](size_t d) { return static_cast<size_t>(datasets[d]->GetRasterCount()); };
    // Without these lists, the bands of the second image follow the bands of the first image.
    if (entries[0].size() != count(0) || entries[1].size() != count(1)) {
        if (count(0) + count(1) != product.bands.size())
            refuse_product(product, "states " + counted(product.bands.size(), "band") +
                                        ", but its images have " + std::to_string(count(0)) + " and " +
                                        std::to_string(count(1)));
        for (size_t d = 0; d < 2; ++d) {
            entries[d].resize(count(d));
            std::iota(entries[d].begin(), entries[d].end(), d == 0 ? 0 : count(0));
        }
    }
    std::vector<ProductBand> bands;
    for (size_t d = 0; d < 2; ++d)
        for (size_t k = 0; k < entries[d].size(); ++k) {
            ProductBand band = product.bands[entries[d][k]];
            band.part = static_cast<int>(d);
            band.index = static_cast<int64_t>(k);
            band.description = std::string(detectors[d]) + " " + std::to_string(k + 1);
            bands.push_back(std::move(band));
        }
    product.bands = std::move(bands);
    sort_bands(product);
    product.stack = stacked(images, datasets, product.bands);
    product.files = {product.path, images[0], images[1]};
}

} // namespace

std::optional<Product> read_metadata_xml(const std::string& xml, const std::string& image) {
    const CPLXMLTreeCloser tree = parse(xml);
    CPLXMLNode* const bands = tree ? find(tree.get(), "bandCharacterisation") : nullptr;
    if (bands == nullptr) return std::nullopt;
    Product product;
    bool enmap = false;
    std::vector<std::string> numbers;
    for (CPLXMLNode* band = bands->psChild; band != nullptr; band = band->psNext) {
        if (band->eType != CXT_Element) continue;
        const bool of_enmap = EQUAL(band->pszValue, "bandID");
        if (!of_enmap && !EQUAL(band->pszValue, "band")) continue;
        enmap |= of_enmap;
        ProductBand out;
        out.wavelength = CPLString(CPLGetXMLValue(band, "wavelengthCenterOfBand", "")).Trim();
        out.fwhm =
            CPLString(CPLGetXMLValue(band, of_enmap ? "FWHMOfBand" : "wavelengthWidthOfBand", "")).Trim();
        out.scale = number_of(band, of_enmap ? "GainOfBand" : "gainOfBand");
        out.offset = number_of(band, of_enmap ? "OffsetOfBand" : "offsetOfBand");
        product.bands.push_back(std::move(out));
        numbers.push_back(CPLGetXMLValue(band, "number", ""));
    }
    if (product.bands.empty()) return std::nullopt;
    std::string level = value_of_element(tree.get(), "level");
    if (level.empty()) level = value_of_element(tree.get(), "processingLevel");
    product.name = std::string(enmap ? "EnMAP" : "DESIS") + (level.empty() ? "" : " " + level);
    if (const std::string text = value_of_element(tree.get(), "backgroundValue"); !text.empty())
        product.nodata.emplace().real = CPLAtof(text.c_str());
    if (CPLXMLNode* const time = find(tree.get(), "temporalCoverage")) {
        product.time_start = value_of_element(time->psChild, "startTime");
        product.time_end = value_of_element(time->psChild, "stopTime");
        if (product.time_end.empty()) product.time_end = value_of_element(time->psChild, "endTime");
    }
    const auto images = detector_images(tree.get(), xml);
    const bool of_detector = std::any_of(images.begin(), images.end(), [&](const std::string& each) {
        return !each.empty() && (image.empty() || same_file(each, image));
    });
    product.path = image.empty() ? image_of(tree.get(), xml) : image;
    if (of_detector && (!image.empty() || product.path.empty())) {
        product.path = xml;
        stack_detectors(product, tree.get(), numbers, images);
        return product;
    }
    if (product.path.empty())
        throw Error("'" + xml + "' describes a product of " + product.name + ", but the image is missing",
                    "Keep the files of a product in one folder, under their original names.");
    product.files = {product.path, xml};
    check_product(product);
    return product;
}

namespace {

/// Returns true for quick looks and masks, whose names begin with the product's name:
/// "ENMAP01-QL_PIXELMASK.TIF". They must be excluded because a mask has as many bands as the scene.
bool is_quality_layer(const std::string& rest) {
    const std::string name = lower(rest);
    const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
    return name.rfind("ql_", 0) == 0 || has("-ql_") || has("_ql_") || has("pixelmask");
}

std::optional<Product> beside(const std::string& image, int bands) {
    const std::string folder = folder_of(image), name = name_of(image);
    const GdalErrors quiet;
    const CPLStringList entries(VSIReadDirEx(folder.c_str(), 10000));
    for (int i = 0; i < entries.size(); ++i) {
        const std::string stem = stem_of(entries[i]);
        // The names of a product's files begin with the same text, up to a separator. The content of a file
        // shows its type.
        const std::string signs = "-_. ";
        const size_t end = stem.find_last_not_of(signs);
        if (end == std::string::npos || name.compare(0, end + 1, stem, 0, end + 1) != 0 ||
            signs.find(name[end + 1]) == std::string::npos || is_quality_layer(name.substr(end + 2)))
            continue;
        auto product = read_metadata_xml(join_path(folder, entries[i]), image);
        if (product && (!product->stack.empty() || static_cast<int>(product->bands.size()) == bands))
            return product;
    }
    return std::nullopt;
}

} // namespace

std::optional<Product> find_metadata_xml(const std::string& image, int bands) {
    // Archives are searched like folders, but remote folders are not searched.
    const bool in_archive = image.rfind("/vsizip/", 0) == 0 || image.rfind("/vsitar/", 0) == 0;
    if (!is_local(image) && !in_archive) return std::nullopt;
    if (auto product = beside(image, bands)) return product;
    const std::string led_to = is_local(image) ? follow_links(image) : image;
    return led_to == image ? std::nullopt : beside(led_to, bands);
}

} // namespace hsi::raster
