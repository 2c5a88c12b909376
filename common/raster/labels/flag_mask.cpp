// SPDX-License-Identifier: MIT
// Pixels in which flags of quality layers are set, on the grid of a scene.
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/labels/labels_impl.h"
#include "raster/products/quality_layers.h"
#include "raster/quality_flags.h"
#include "raster/regular_file.h"
#include "raster/scene/source_impl.h"
#include "raster/side_files.h"

#include <gdal_priv.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace hsi::raster {
namespace {

/// Returns the name of a scene for messages: "'scene.nc' (EMIT L2A reflectance)".
std::string scene_text(const RasterSource& scene) {
    const std::string product = scene.facts().product;
    return "'" + scene.path() + "'" + (product.empty() ? "" : " (" + product + ")");
}

/// Returns the product of the scene, or of the input of a pipeline's first step; null if unknown.
std::shared_ptr<const Product> product_of(const RasterSource& scene) {
    if (const Chain* const chain = scene.chain()) return find_scene(chain->source()).product;
    return SourceAccess::state(scene).product;
}

QualityLayers layers_of(const RasterSource& scene) {
    const auto product = product_of(scene);
    return product ? layers_of_product(*product) : QualityLayers();
}

std::string names_text(const QualityLayers& found) {
    std::vector<std::string> names;
    for (const QualityLayer& layer : found.layers)
        names.push_back(layer.name + (layer.also.empty() ? "" : " (or " + layer.also + ")"));
    return joined(names, ", ");
}

bool is_called(const QualityLayer& layer, const std::string& plain) {
    return plain_flag_name(layer.name) == plain ||
           (!layer.also.empty() && plain_flag_name(layer.also) == plain);
}

/// Returns the layer that an item names. \throws Error for an unknown name; the message lists the existing
/// names.
const QualityLayer& layer_named(const FlagItem& item, const QualityLayers& found, const std::string& where) {
    const auto named = [&](const std::string& plain) {
        return std::find_if(found.layers.begin(), found.layers.end(),
                            [&](const QualityLayer& layer) { return is_called(layer, plain); });
    };
    const auto layer = named(plain_flag_name(item.name));
    if (layer != found.layers.end()) return *layer;
    std::vector<std::string> names;
    for (const QualityLayer& each : found.layers)
        names.insert(names.end(), {each.name, each.also});
    const std::string meant = did_you_mean(item.name, names);
    throw Error("-mask-flags: " + where + " has no flag '" + item.name + "'",
                (meant.empty() ? "" : meant + " ") + "Its flags are: " + names_text(found) + ".");
}

/// Returns sample and line of the scene's first pixel in the raster of a layer. \throws Error if the raster
/// has another grid than the scene.
std::pair<int64_t, int64_t> place_in(const RasterSource& scene, GDALDataset& raster, const std::string& path,
                                     const QualityLayers& found) {
    const SourceState& state = SourceAccess::state(scene);
    const int64_t samples = raster.GetRasterXSize(), lines = raster.GetRasterYSize();
    const bool whole = samples == state.file.samples && lines == state.file.lines,
               window = samples == state.window().w && lines == state.window().h;
    GeoTransform own{};
    const bool placed = raster.GetGeoTransform(own.data()) == CE_None;
    const auto fits = [&](const std::optional<GeoTransform>& of_scene) {
        return !placed || !of_scene ||
               (same_geotransform(own, *of_scene, samples, lines) &&
                same_srs(wkt_of(raster.GetSpatialRef()), scene.facts().srs_wkt()));
    };
    if (whole && fits(state.scene.geotransform)) return {state.window().x, state.window().y};
    if (window && fits(scene.facts().geotransform)) return {0, 0};
    const auto size = [](int64_t s, int64_t l) { return std::to_string(s) + " x " + std::to_string(l); };
    const std::string advice =
        "Layers must be on the scene's grid; use gdalwarp to change the grid of a raster. Flags: " +
        names_text(found) + ".";
    if (whole || window)
        throw Error("-mask-flags: '" + path + "' and '" + scene.path() + "' have different georeferences",
                    advice);
    throw Error("-mask-flags: '" + path + "' has " + size(samples, lines) + " pixels, '" + scene.path() +
                    "' has " + size(state.file.samples, state.file.lines),
                advice);
}

class FlagLabels final : public LabelSource {
  public:
    FlagLabels(const RasterSource& scene, const std::string& where, const QualityLayers& found,
               const std::vector<FlagItem>& items) {
        m_grid = grid_of(scene);
        m_path = where;
        m_rasters.resize(found.rasters.size());
        std::vector<std::string> texts;
        for (const FlagItem& item : items) {
            const QualityLayer& layer = layer_named(item, found, where);
            Raster& raster = m_rasters[layer.raster];
            if (!raster.dataset) {
                const std::string& path = found.rasters[layer.raster].path;
                raster.path = path;
                raster.dataset = found.rasters[layer.raster].open();
                std::tie(raster.x, raster.y) = place_in(scene, *raster.dataset, path, found);
            }
            for (const int band : layer.bands)
                if (band > raster.dataset->GetRasterCount())
                    throw Error("-mask-flags: '" + raster.path + "' has no band " + std::to_string(band) +
                                    " for the flag " + layer.name,
                                "Use the original file of the product.");
            m_items.push_back({item, layer});
            texts.push_back(item.text);
        }
        m_description = joined(texts, ", ") + " of " + where;
    }

    std::vector<ValueSample> values() override { return {}; }
    std::vector<std::string> files() const {
        std::vector<std::string> all;
        for (const Raster& raster : m_rasters)
            if (raster.dataset) all.push_back(raster.path);
        return all;
    }

  protected:
    void read_lines(int64_t line, int64_t count, uint16_t* out) override {
        m_seen = true;
        const auto pixels = static_cast<size_t>(count * m_grid.samples);
        std::fill_n(out, pixels, uint16_t{0});
        for (const auto& [item, layer] : m_items) {
            m_flag.assign(pixels, 0);
            m_filled.assign(pixels, 0);
            for (size_t b = 0; b < layer.bands.size(); ++b)
                take_band(layer, b, line, count);
            for (size_t i = 0; i < pixels; ++i)
                if (m_filled[i] != 0 || item.marks(m_flag[i])) out[i] = 1;
        }
    }

  private:
    struct Raster {
        std::string path;
        DatasetHandle dataset; ///< null: no item uses it
        int64_t x = 0, y = 0;  ///< position of the scene's first pixel in the raster
    };

    void take_band(const QualityLayer& layer, size_t which, int64_t line, int64_t count) {
        const Raster& raster = m_rasters[layer.raster];
        GDALRasterBand& band = *raster.dataset->GetRasterBand(layer.bands[which]);
        m_values.resize(m_flag.size());
        const GdalErrors errors;
        const auto w = static_cast<int>(m_grid.samples), h = static_cast<int>(count);
        if (band.RasterIO(GF_Read, static_cast<int>(raster.x), static_cast<int>(raster.y + line), w, h,
                          m_values.data(), w, h, GDT_Float64, 0, 0, nullptr) != CE_None)
            throw Error("'" + raster.path + "' cannot be read: " + errors.text());
        int has_nodata = 0;
        const double nodata = band.GetNoDataValue(&has_nodata);
        for (size_t i = 0; i < m_values.size(); ++i) {
            const double v = m_values[i];
            const bool fill = std::isnan(v) || (has_nodata != 0 && v == nodata) ||
                              std::find(layer.fill.begin(), layer.fill.end(), v) != layer.fill.end();
            m_filled[i] |= static_cast<char>(fill);
            const double flag = layer.bits != 0 ? static_cast<double>((bits_of(v) & layer.bits) != 0)
                                : layer.number  ? static_cast<double>(v == *layer.number)
                                                : v;
            m_flag[i] = which == 0 ? flag : std::max(m_flag[i], flag);
        }
    }

    std::vector<Raster> m_rasters;
    std::vector<std::pair<FlagItem, QualityLayer>> m_items;
    std::vector<double> m_values, m_flag;
    std::vector<char> m_filled;
};

} // namespace

std::vector<QualityFlag> quality_flags_of(const RasterSource& scene) {
    QualityLayers found = layers_of(scene);
    if (found.layers.empty() && scene.chain() == nullptr && scene.facts().bands.wavelengths_nm.empty())
        found = layers_in_file(scene.path());
    std::vector<QualityFlag> flags;
    for (const QualityLayer& layer : found.layers)
        flags.push_back({layer.name, layer.also, found.rasters[layer.raster].path});
    return flags;
}

FlagMask open_flag_mask(const RasterSource& scene, const std::string& file,
                        const std::vector<FlagItem>& items) {
    const QualityLayers found = file.empty() ? layers_of(scene) : layers_in_file(file);
    const std::string where = file.empty() ? scene_text(scene) : "'" + file + "'";
    if (found.layers.empty())
        throw Error("-mask-flags: " + where +
                        (file.empty() ? " has no known quality layers"
                                      : " has no flags: its bands have no descriptions"),
                    found.advice.empty() ? "Name the file with the flags: -mask-flags-from FILE."
                                         : found.advice);
    auto source = std::make_unique<FlagLabels>(scene, where, found, items);
    auto files = source->files();
    return {std::move(source), std::move(files)};
}

} // namespace hsi::raster
