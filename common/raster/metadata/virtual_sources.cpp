// SPDX-License-Identifier: MIT
#include "raster/metadata/virtual_sources.h"

#include "core/file_path.h"
#include "raster/gdal_errors.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

constexpr int deepest_vrt = 8;
/// Maximum number of sources that are opened, because a mosaic with more sources would open slowly.
constexpr size_t most_sources = 512;

/// For each band of the VRT, the path and the band number of each source.
using SourceBands = std::vector<std::set<std::pair<std::string, int>>>;

std::string path_of(const CPLXMLNode& file, const std::string& folder) {
    const std::string name = CPLGetXMLValue(&file, "", "");
    return std::atoi(CPLGetXMLValue(&file, "relativeToVRT", "0")) != 0 ? join_path(folder, name) : name;
}

template <class Visit>
void each_child(const CPLXMLNode& parent, const char* name, Visit visit) {
    for (const CPLXMLNode* node = parent.psChild; node != nullptr; node = node->psNext)
        if (node->eType == CXT_Element && (name == nullptr || EQUAL(node->pszValue, name))) visit(*node);
}

/// Reads the source bands of a mosaic. Returns false if a pixel function computes a band.
bool read_mosaic(const CPLXMLNode& root, const std::string& folder, SourceBands& bands) {
    size_t band = 0;
    bool plain = true;
    each_child(root, "VRTRasterBand", [&](const CPLXMLNode& of) {
        const std::string kind = CPLGetXMLValue(&of, "subClass", "VRTSourcedRasterBand");
        if (band >= bands.size() || kind != "VRTSourcedRasterBand") {
            plain = false;
            return;
        }
        each_child(of, nullptr, [&](const CPLXMLNode& source) {
            const CPLXMLNode* const file = CPLGetXMLNode(&source, "SourceFilename");
            if (file == nullptr) return;
            bands[band].emplace(path_of(*file, folder),
                                std::atoi(CPLGetXMLValue(&source, "SourceBand", "1")));
        });
        ++band;
    });
    return plain && band == bands.size();
}

/// Reads the source bands of a VRT that gdalwarp -of VRT wrote.
bool read_warped(const CPLXMLNode& root, const std::string& folder, SourceBands& bands) {
    const CPLXMLNode* const options = CPLGetXMLNode(&root, "GDALWarpOptions");
    const CPLXMLNode* const file = options != nullptr ? CPLGetXMLNode(options, "SourceDataset") : nullptr;
    const CPLXMLNode* const list = options != nullptr ? CPLGetXMLNode(options, "BandList") : nullptr;
    if (file == nullptr || list == nullptr) return false;
    each_child(*list, "BandMapping", [&](const CPLXMLNode& mapping) {
        const int to = std::atoi(CPLGetXMLValue(&mapping, "dst", "0"));
        if (to >= 1 && static_cast<size_t>(to) <= bands.size())
            bands[static_cast<size_t>(to) - 1].emplace(path_of(*file, folder),
                                                       std::atoi(CPLGetXMLValue(&mapping, "src", "0")));
    });
    return true;
}

std::optional<SceneMetadata> metadata_of(const std::string& path, int depth) {
    const std::unique_ptr<GDALDataset> source(
        GDALDataset::Open(path.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY));
    if (!source) return std::nullopt;
    SceneMetadata scene = read_metadata(*source, depth);
    return scene;
}

bool same_place(const BandMetadata& a, const BandMetadata& b) {
    constexpr double equal = 0.01; // nanometres
    return std::fabs(a.wavelength_nm - b.wavelength_nm) <= equal ||
           (std::isnan(a.wavelength_nm) && std::isnan(b.wavelength_nm));
}

} // namespace

void take_from_sources(GDALDataset& vrt, SceneMetadata& scene, int depth) {
    if (depth >= deepest_vrt || std::any_of(scene.bands.begin(), scene.bands.end(),
                                            [](const BandMetadata& b) { return !b.wavelength.empty(); }))
        return;
    const GdalErrors quiet;
    CSLConstList const xml = vrt.GetMetadata("xml:VRT");
    const CPLXMLTreeCloser tree(xml != nullptr && xml[0] != nullptr ? CPLParseXMLString(xml[0]) : nullptr);
    const CPLXMLNode* const root = tree ? CPLGetXMLNode(tree.get(), "=VRTDataset") : nullptr;
    if (root == nullptr) return;
    const std::string folder = folder_of(vrt.GetDescription()), kind = CPLGetXMLValue(root, "subClass", "");
    SourceBands sources(scene.bands.size());
    if (!(kind.empty() ? read_mosaic(*root, folder, sources)
                       : kind == "VRTWarpedDataset" && read_warped(*root, folder, sources)))
        return;
    std::map<std::string, std::optional<SceneMetadata>> opened;
    std::vector<const BandMetadata*> found(sources.size(), nullptr);
    bool known = false;
    for (size_t b = 0; b < sources.size(); ++b)
        for (const auto& source : sources[b]) {
            auto at = opened.find(source.first);
            if (at == opened.end()) {
                if (opened.size() >= most_sources) continue;
                at = opened.emplace(source.first, metadata_of(source.first, depth + 1)).first;
            }
            if (!at->second || source.second < 1 ||
                source.second > static_cast<int>(at->second->bands.size()))
                continue;
            const BandMetadata& band = at->second->bands[static_cast<size_t>(source.second) - 1];
            known |= !band.wavelength.empty();
            if (found[b] == nullptr) {
                found[b] = &band;
            } else if (!same_place(*found[b], band)) {
                scene.notes.push_back("the sources of the mosaic have different wavelengths at band " +
                                      std::to_string(b + 1) + ": its wavelength is unknown");
                return;
            }
        }
    if (!known) return;
    for (size_t b = 0; b < found.size(); ++b) {
        if (found[b] == nullptr) continue;
        BandMetadata& to = scene.bands[b];
        to.wavelength = found[b]->wavelength;
        to.wavelength_units = found[b]->wavelength_units;
        to.wavelength_nm = found[b]->wavelength_nm;
        to.fwhm = found[b]->fwhm;
        to.fwhm_nm = found[b]->fwhm_nm;
        if (to.bbl.empty()) to.bbl = found[b]->bbl;
    }
}

} // namespace hsi::raster
