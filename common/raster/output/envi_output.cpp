// SPDX-License-Identifier: MIT
#include "raster/output/envi_output.h"

#include "core/error.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/envi_header.h"
#include "raster/regular_file.h"
#include "raster/text_output.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace hsi::raster {
namespace {

bool same_geotransform(const double* a, const double* b) {
    for (int i = 0; i < 6; ++i)
        if (std::abs(a[i] - b[i]) > 1e-9 * std::max({1e-3, std::abs(a[i]), std::abs(b[i])})) return false;
    return true;
}

std::string read_all(const std::string& path) {
    GByte* bytes = nullptr;
    vsi_l_offset size = 0;
    if (!VSIIngestFile(nullptr, path.c_str(), &bytes, &size, -1)) throw Error("cannot read '" + path + "'");
    std::string text(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
    CPLFree(bytes);
    return text;
}

void replace_file(const OutputOptions& options, const std::string& path, const std::string& text) {
    VSIUnlink(path.c_str());
    write_file({options.role, options.path, true, nullptr}, path, text);
}

} // namespace

void check_envi_geotransform(const double (&wanted)[6], const std::string& name) {
    // The map info of a header consists of an origin and two pixel sizes. It can store this geotransform, so
    // the trial below is not needed.
    const bool finite = std::all_of(wanted, wanted + 6, [](double v) { return std::isfinite(v); });
    if (finite && wanted[1] > 0 && wanted[2] == 0 && wanted[4] == 0 && wanted[5] < 0) return;
    const AtomicFile file(CPLSPrintf("/vsimem/hsi-try-%d-%p/g.img", static_cast<int>(getpid()),
                                     static_cast<const void*>(wanted)));
    double got[6] = {};
    const GdalErrors quiet;
    {
        const DatasetHandle made(GetGDALDriverManager()->GetDriverByName("ENVI")->Create(
            file.path().c_str(), 2, 2, 1, GDT_Byte, nullptr));
        if (!made) return;
        double copy[6];
        std::copy(wanted, wanted + 6, copy);
        made->SetGeoTransform(copy);
    }
    const DatasetHandle read(GDALDataset::FromHandle(
        GDALOpenEx(file.path().c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
    if (!read || read->GetGeoTransform(got) != CE_None || !same_geotransform(wanted, got))
        throw Error("an ENVI header cannot store the geotransform of " + name +
                        ", whose axes are sheared or reversed",
                    "Write a GTiff (-of GTiff), or warp the source first.");
}

namespace {

/// Returns the class names of the output, in the order of the class values.
std::vector<std::string> class_names(const OutputSpec& spec, const SceneMetadata* scene) {
    if (!spec.categories.empty() || !spec.same_bands || scene == nullptr || scene->bands.empty())
        return spec.categories;
    return scene->bands.front().categories;
}

/// Returns true if a node of the side file (a band or a metadata domain) only repeats facts of the header. A
/// band with further facts keeps its name in the side file, because GDAL prefers this name to the name in the
/// header, even if it is empty.
bool repeats_header(const CPLXMLNode* node) {
    if (EQUAL(node->pszValue, "Metadata")) {
        const std::string domain = CPLGetXMLValue(node, "domain", "");
        return domain == "ENVI" || domain == "IMAGE_STRUCTURE";
    }
    if (!EQUAL(node->pszValue, "PAMRasterBand")) return false;
    for (const CPLXMLNode* part = node->psChild; part != nullptr; part = part->psNext) {
        const auto is = [&](const char* name) { return EQUAL(part->pszValue, name); };
        if (part->eType == CXT_Element && !is("Description") && !is("Scale") && !is("Offset") &&
            !is("CategoryNames"))
            return false;
    }
    return true;
}

/// Removes the nodes that repeat the header. Returns whether any node was removed. If the header lacks a
/// removed fact, the check of the finished output restores it (WrittenRaster::lost()).
bool remove_repeated(CPLXMLNode* root) {
    bool changed = false;
    for (CPLXMLNode* node = root->psChild; node != nullptr;) {
        CPLXMLNode* const next = node->psNext;
        if (node->eType == CXT_Element && repeats_header(node)) {
            CPLRemoveXMLChild(root, node);
            CPLDestroyXMLNode(node);
            changed = true;
        }
        node = next;
    }
    return changed;
}

} // namespace

void finish_envi_output(const AtomicFile& file, const OutputOptions& options, const OutputSpec& spec,
                        const SceneMetadata* scene) {
    std::string path;
    for (const std::string& made : file.made())
        if (EQUAL(CPLGetExtension(made.c_str()), "hdr")) path = made;
    if (path.empty()) return;
    std::string text = read_all(path);
    if (scene != nullptr) text = finish_envi_header(text, *scene, spec.same_bands);
    if (const auto names = class_names(spec, scene); !names.empty()) {
        EnviHeader header = EnviHeader::parse(text);
        set_quoted_class_names(header, names);
        if (header.find(quoted_names_field) != nullptr) text = header.text();
    }
    replace_file(options, path, text);
    const std::string side = file.path() + ".aux.xml";
    if (!is_there(side)) return;
    const CPLXMLTreeCloser tree(CPLParseXMLFile(side.c_str()));
    CPLXMLNode* const root = tree ? CPLGetXMLNode(tree.get(), "=PAMDataset") : nullptr;
    if (root == nullptr || !remove_repeated(root)) return;
    if (root->psChild == nullptr) {
        VSIUnlink(side.c_str());
        return;
    }
    char* const serialised = CPLSerializeXMLTree(tree.get());
    const std::string xml = serialised;
    CPLFree(serialised);
    replace_file(options, side, xml);
}

} // namespace hsi::raster
