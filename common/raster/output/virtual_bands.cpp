// SPDX-License-Identifier: MIT
#include "raster/output/virtual_bands.h"

#include "core/error.h"
#include "raster/gdal_type.h"
#include "raster/metadata/envi_file.h"
#include "raster/products/product.h"
#include "raster/scene/source_impl.h"
#include "raster/scene_document.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>

#include <cmath>
#include <numeric>

namespace hsi::raster {
namespace {

std::string attribute_number(double v) {
    if (std::isnan(v)) return "nan";
    return CPLSPrintf("%.17g", v);
}

void add_attribute(CPLXMLNode* node, const std::string& name, const std::string& value) {
    CPLAddXMLAttributeAndValue(node, name.c_str(), value.c_str());
}

class Writer {
  public:
    Writer(const SourceState& source, const std::string& destination, std::optional<double> no_value)
        : m_source(source), m_destination(destination), m_no_value(no_value) {}

    void derive(CPLXMLNode* node, const VirtualBand& band) const {
        std::vector<int> bands = band.bands;
        if (bands.empty()) {
            bands.resize(m_source.bands.size());
            std::iota(bands.begin(), bands.end(), 0);
        }
        add_attribute(node, "subClass", "VRTDerivedRasterBand");
        CPLCreateXMLElementAndValue(node, "PixelFunctionType", band.function.c_str());
        CPLXMLNode* const arguments = CPLCreateXMLNode(node, CXT_Element, "PixelFunctionArguments");
        for (const auto& [name, value] : band.arguments)
            add_attribute(arguments, name, value);
        const auto nodata = nodata_of(bands, !band.further.empty());
        if (!nodata.empty()) add_attribute(arguments, "nodata", nodata);
        const size_t masks = m_source.masking.kind == MaskKind::none      ? 0
                             : m_source.masking.kind == MaskKind::dataset ? 1
                                                                          : bands.size();
        if (masks > 0) add_attribute(arguments, "masks", std::to_string(masks));
        if (m_no_value) add_attribute(arguments, "dst_nodata", attribute_number(*m_no_value));
        if (const char* type = CPLGetXMLValue(node, "dataType", "Float32"); !EQUAL(type, "Float32"))
            add_attribute(arguments, "dst_type", type);
        // The tools compute in Float32. A comparison with the nodata value may need Float64.
        bool wide = false;
        for (const int b : bands)
            wide = wide || (m_source.nodata[static_cast<size_t>(b)].active &&
                            !exact_in_float(sample_type(type_of(b))));
        CPLCreateXMLElementAndValue(node, "SourceTransferType", wide ? "Float64" : "Float32");
        for (const int b : bands)
            add_source(node, m_source.options.path, std::to_string(m_source.bands[static_cast<size_t>(b)]),
                       m_source.window(), true);
        if (!band.further.empty())
            add_source(node, band.further, "1", {0, 0, m_source.window().w, m_source.window().h}, false);
        for (size_t k = 0; k < masks; ++k)
            add_source(node, m_source.options.path,
                       m_source.masking.alpha > 0
                           ? std::to_string(m_source.masking.alpha)
                           : "mask," + std::to_string(m_source.bands[static_cast<size_t>(bands[k])]),
                       m_source.window(), true);
    }

  private:
    GDALDataType type_of(int band) const { return m_source.scene.bands[static_cast<size_t>(band)].type; }

    /// Returns the nodata values of the sources: one value if all sources have the same, otherwise one per
    /// source ("none" if a source has no nodata value). The text is empty if no source has a nodata value.
    std::string nodata_of(const std::vector<int>& bands, bool further) const {
        std::string list;
        bool any = false, same = !further;
        std::string first;
        for (size_t k = 0; k < bands.size(); ++k) {
            const auto b = static_cast<size_t>(bands[k]);
            const bool active = m_source.nodata[b].active;
            const std::string text =
                active ? attribute_number(m_source.scene.bands[b].nodata->as_double()) : "none";
            any = any || active;
            if (k == 0) first = text;
            same = same && text == first;
            list += (k ? " " : "") + text;
        }
        if (!any) return {};
        return same ? first : further ? list + " none" : list;
    }

    void add_source(CPLXMLNode* node, const std::string& path, const std::string& band, const Rect& window,
                    bool scene) const {
        CPLXMLNode* const source = CPLCreateXMLNode(node, CXT_Element, "SimpleSource");
        const FileName name = name_from(path, m_destination, !scene);
        CPLXMLNode* const file = CPLCreateXMLElementAndValue(source, "SourceFilename", name.text.c_str());
        add_attribute(file, "relativeToVRT", name.relative ? "1" : "0");
        if (scene && !m_source.options.open_options.empty()) {
            CPLXMLNode* const options = CPLCreateXMLNode(source, CXT_Element, "OpenOptions");
            for (const std::string& item : m_source.options.open_options) {
                const size_t equals = item.find('=');
                // GDAL also ignores an option without an equals sign.
                if (equals == std::string::npos) continue;
                CPLXMLNode* const option =
                    CPLCreateXMLElementAndValue(options, "OOI", item.substr(equals + 1).c_str());
                add_attribute(option, "key", item.substr(0, equals));
            }
        }
        CPLCreateXMLElementAndValue(source, "SourceBand", band.c_str());
        const auto add_rect = [&](const char* element, const Rect& r) {
            CPLXMLNode* const rect = CPLCreateXMLNode(source, CXT_Element, element);
            add_attribute(rect, "xOff", std::to_string(r.x));
            add_attribute(rect, "yOff", std::to_string(r.y));
            add_attribute(rect, "xSize", std::to_string(r.w));
            add_attribute(rect, "ySize", std::to_string(r.h));
        };
        add_rect("SrcRect", window);
        add_rect("DstRect", {0, 0, window.w, window.h});
    }

    const SourceState& m_source;
    const std::string& m_destination;
    const std::optional<double> m_no_value;
};

} // namespace

void check_virtual_source(const RasterSource& like) {
    const SourceState& source = SourceAccess::state(like);
    if (like.facts().driver == "MATLAB")
        throw UsageError("'" + source.options.path +
                             "' is a MATLAB file, which GDAL cannot read, so a VRT cannot use it",
                         "Use the extension .hsi for the output, or choose another format with -of.");
    if (!source.grid && source.in_arrays())
        throw UsageError("'" + source.options.path + "' is read from arrays (" + like.facts().product +
                             "), which a VRT cannot use",
                         "Use the extension .hsi for the output, or choose another format with -of.");
    if (source.product && !source.product->stack.empty())
        throw UsageError("'" + source.options.path + "' is read from two images (" + like.facts().product +
                             "), which a VRT of its bands cannot use",
                         "Use the extension .hsi for the output, or choose another format with -of.");
    if (!source.options.drivers.empty())
        throw UsageError("-if " + source.options.drivers.front() +
                             ": a VRT cannot state the driver of its source",
                         "Leave -if out, or choose another output format with -of.");
    if (!gdal_sees_pixels(source.options.path, source.options.header, true))
        throw UsageError("GDAL misreads the header of '" + source.options.path +
                             "', so a VRT would show wrong pixels",
                         "Choose another output format with -of. GDAL does not support lines of 10,000 "
                         "characters, comments in braces or a byte-order mark.");
}

std::string with_derived_bands(const std::string& text, const std::string& destination,
                               const RasterSource& like, const std::vector<VirtualBand>& bands,
                               std::optional<double> no_value) {
    const CPLXMLTreeCloser root(CPLParseXMLString(text.c_str()));
    CPLXMLNode* const dataset = root ? CPLGetXMLNode(root.get(), "=VRTDataset") : nullptr;
    if (dataset == nullptr) throw Error("internal: GDAL's VRT has no VRTDataset");
    const Writer writer(SourceAccess::state(like), destination, no_value);
    size_t next = 0;
    for (CPLXMLNode* node = dataset->psChild; node != nullptr; node = node->psNext)
        if (node->eType == CXT_Element && EQUAL(node->pszValue, "VRTRasterBand") && next < bands.size())
            writer.derive(node, bands[next++]);
    if (next != bands.size()) throw Error("internal: GDAL's VRT has another number of bands");
    char* const serialised = CPLSerializeXMLTree(root.get());
    std::string result = serialised;
    CPLFree(serialised);
    return result;
}

} // namespace hsi::raster
