// SPDX-License-Identifier: MIT
#include "raster/scene/locations.h"
#include "core/error.h"
#include "raster/metadata/scene_metadata.h"

#include <cpl_conv.h>

#include <cmath>
#include <cstddef>

namespace hsi::raster {
namespace {

constexpr const char* domain_name = "GEOLOCATION";

/// Splits a name HDF5:"path"://array or ZARR:"path":/array, which add_geolocation() (product.cpp) writes,
/// into path and array. Both are empty for other names.
std::pair<std::string, std::string> parts_of(const std::string& subdataset) {
    const std::string begin = "HDF5:\"", middle = "\":/";
    const size_t end = subdataset.rfind(middle);
    if ((subdataset.rfind(begin, 0) != 0 && subdataset.rfind("ZARR:\"", 0) != 0) ||
        end == std::string::npos || end < begin.size())
        return {};
    return {subdataset.substr(begin.size(), end - begin.size()), subdataset.substr(end + middle.size())};
}

} // namespace

std::string product_of_locations(const SceneMetadata& scene) {
    if (scene.geotransform) return {};
    const auto item = [&](const char* key) { return value_of(scene.domains, domain_name, key); };
    if (item("GEOREFERENCING_CONVENTION") != "PIXEL_CENTER" || item("PIXEL_STEP") != "1" ||
        item("LINE_STEP") != "1")
        return {};
    const std::string x = parts_of(item("X_DATASET")).first;
    return x == parts_of(item("Y_DATASET")).first ? x : std::string();
}

std::optional<Locations> locations_behind(const SourceState& state) {
    if (state.scene.geotransform) return std::nullopt;
    if (state.product && !state.product->longitude.empty()) return Locations{state.product, 0, 0};
    const std::string path = product_of_locations(state.scene);
    const auto first = first_pixel(state.scene);
    if (path.empty() || !first) return std::nullopt;
    try {
        const auto product = find_scene(path).product;
        const auto& [sample, line] = *first;
        if (!product || product->longitude.empty() || sample < 0 || line < 0 ||
            sample + state.file.samples > product->samples || line + state.file.lines > product->lines)
            return std::nullopt;
        return Locations{product, line, sample};
    } catch (const Error&) {
        // The name may now belong to another file, or the file may have been removed.
        return std::nullopt;
    }
}

std::optional<std::pair<int64_t, int64_t>> first_pixel(const SceneMetadata& scene) {
    const auto domain = scene.domains.find(domain_name);
    if (domain == scene.domains.end()) return std::nullopt;
    std::pair<int64_t, int64_t> first;
    for (const std::string& item : domain->second) {
        const std::string key = item_key(item);
        const auto value = [&] { return -std::llround(CPLAtof(item.c_str() + key.size() + 1)); };
        if (key == "PIXEL_OFFSET") first.first = value();
        if (key == "LINE_OFFSET") first.second = value();
    }
    return first;
}

} // namespace hsi::raster
