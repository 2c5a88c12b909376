// SPDX-License-Identifier: MIT
#include "raster/sink/envi_output.h"

#include "core/error.h"
#include "raster/files/text_output.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal/gdal_errors.h"
#include "raster/gdal/regular_file.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>

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
        throw Error("an ENVI header cannot hold the geotransform of " + name +
                        ", whose axes are sheared or run the other way",
                    "Write a GTiff (-of GTiff), or warp the source first.");
}

void finish_envi_output(const AtomicFile& file, const OutputOptions& options, const SceneMetadata* scene,
                        bool same_bands) {
    std::string header;
    for (const std::string& path : file.made())
        if (EQUAL(CPLGetExtension(path.c_str()), "hdr")) header = path;
    if (header.empty()) return;
    std::string text = read_all(header);
    if (scene != nullptr) text = finish_envi_header(text, *scene, same_bands);
    const std::string side = file.path() + ".aux.xml";
    CPLXMLNode* root = nullptr;
    if (is_there(side)) root = CPLParseXMLFile(side.c_str());
    CPLXMLTreeCloser closer(root);
    bool changed = false;
    if (root != nullptr) {
        for (CPLXMLNode* node = root->psChild; node != nullptr;) {
            CPLXMLNode* next = node->psNext;
            if (EQUAL(node->pszValue, "Metadata") && EQUAL(CPLGetXMLValue(node, "domain", ""), "ENVI")) {
                CPLRemoveXMLChild(root, node);
                CPLDestroyXMLNode(node);
                changed = true;
            }
            node = next;
        }
    }
    replace_file(options, header, text);
    if (!changed) return;
    if (root->psChild == nullptr) {
        VSIUnlink(side.c_str());
        return;
    }
    char* const serialised = CPLSerializeXMLTree(root);
    const std::string xml = serialised;
    CPLFree(serialised);
    replace_file(options, side, xml);
}

} // namespace hsi::raster
