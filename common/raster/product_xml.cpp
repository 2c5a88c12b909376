// SPDX-License-Identifier: MIT
// EnMAP and DESIS: a GeoTIFF beside an XML file that tells of its bands (bandCharacterisation), in one scheme
// with other names of elements.
#include "core/error.h"
#include "core/file_path.h"
#include "core/names.h"
#include "raster/gdal_errors.h"
#include "raster/product_readers.h"
#include "raster/text_input.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>

#include <cstring>

namespace hsi::raster {
namespace {

constexpr const char* xml_suffix = "METADATA.XML"; ///< of the file's name, in any case of letters

CPLXMLTreeCloser parse(const std::string& path) {
    const GdalErrors quiet;
    CPLXMLTreeCloser tree(CPLParseXMLString(read_file(path, largest_file::product_text).c_str()));
    if (tree) CPLStripXMLNamespace(tree.get(), nullptr, TRUE);
    return tree;
}

/// The first element of this name, wherever it stands.
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

/// The image that the file names, or the one beside it of the usual name.
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
        VSIStatBufL status;
        if (!name.empty() && VSIStatL(path.c_str(), &status) == 0) return path;
    }
    return {};
}

} // namespace

std::optional<Product> read_metadata_xml(const std::string& xml, const std::string& image) {
    const CPLXMLTreeCloser tree = parse(xml);
    CPLXMLNode* const bands = tree ? find(tree.get(), "bandCharacterisation") : nullptr;
    if (bands == nullptr) return std::nullopt;
    Product product;
    bool enmap = false;
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
    }
    if (product.bands.empty()) return std::nullopt;
    std::string level = value_of_element(tree.get(), "level");
    if (level.empty()) level = value_of_element(tree.get(), "processingLevel");
    product.name = std::string(enmap ? "EnMAP" : "DESIS") + (level.empty() ? "" : " " + level);
    product.path = image.empty() ? image_of(tree.get(), xml) : image;
    if (product.path.empty())
        throw Error("'" + xml + "' tells of a product of " + product.name + " whose image is not beside it",
                    "Keep the files of a product in one folder, under the names that they came with.");
    if (const std::string text = value_of_element(tree.get(), "backgroundValue"); !text.empty())
        product.nodata = CPLAtof(text.c_str());
    product.files = {product.path, xml};
    return product;
}

std::optional<Product> find_metadata_xml(const std::string& image, int bands) {
    if (!is_local(image)) return std::nullopt;
    const std::string folder = folder_of(image), name = name_of(image);
    const GdalErrors quiet;
    const CPLStringList entries(VSIReadDirEx(folder.c_str(), 10000));
    for (int i = 0; i < entries.size(); ++i) {
        const std::string stem = stem_of(entries[i]);
        // The names of one product's files begin alike; what it is is told by the content.
        if (stem.empty() || name.compare(0, stem.size(), stem) != 0) continue;
        auto product = read_metadata_xml(join_path(folder, entries[i]), image);
        if (product && static_cast<int>(product->bands.size()) == bands) return product;
    }
    return std::nullopt;
}

} // namespace hsi::raster
