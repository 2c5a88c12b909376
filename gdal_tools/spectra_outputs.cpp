// SPDX-License-Identifier: MIT
#include "spectra_outputs.h"

#include "core/json.h"
#include "raster/sink/vector_sink.h"

#include <cmath>
#include <utility>

namespace hsi::tools {
namespace {

OrderedJson list_of(const std::vector<double>& values) {
    OrderedJson list = OrderedJson::array();
    for (const double v : values)
        list.push_back(std::isfinite(v) ? OrderedJson(v) : OrderedJson());
    return list;
}

} // namespace

std::string geojson_of(const std::vector<SpectrumRow>& rows, const raster::RasterSource& scene) {
    const auto nm = scene.wavelengths_nm();
    const auto profile = [&](const std::vector<double>& values) {
        OrderedJson json;
        if (!nm.empty()) json["x"] = list_of(nm);
        json["y"] = list_of(values);
        if (!nm.empty()) json["xUnit"] = "nm";
        return json;
    };
    std::vector<std::pair<int64_t, int64_t>> pixels;
    for (const SpectrumRow& row : rows)
        if (row.line >= 0) pixels.emplace_back(row.line, row.sample);
    const auto places = raster::places_of_pixels(scene, pixels);
    OrderedJson features = OrderedJson::array();
    size_t at = 0;
    for (const SpectrumRow& row : rows) {
        OrderedJson properties{{"name", row.name}, {"class", row.value}, {"pixels", row.pixels}};
        OrderedJson geometry;
        if (row.line >= 0) {
            properties["line"] = row.line;
            properties["sample"] = row.sample;
            const auto& place = places[at++];
            if (std::isfinite(place.lon) && std::isfinite(place.lat))
                geometry = {{"type", "Point"}, {"coordinates", {place.lon, place.lat}}};
        }
        properties["profiles"] = profile(row.mean);
        if (!row.deviation.empty()) properties["deviation"] = profile(row.deviation);
        features.push_back({{"type", "Feature"}, {"properties", properties}, {"geometry", geometry}});
    }
    return OrderedJson{{"type", "FeatureCollection"}, {"features", features}}.dump(
               -1, ' ', false, OrderedJson::error_handler_t::replace) +
           "\n";
}

raster::SpectralLibrary library_of(const std::vector<SpectrumRow>& rows, const raster::RasterSource& scene) {
    raster::SpectralLibrary library;
    for (const SpectrumRow& row : rows) {
        library.names.push_back(row.name);
        library.spectra.push_back(row.mean);
        if (row.deviation.empty()) continue;
        library.names.push_back(row.name + " deviation");
        library.spectra.push_back(row.deviation);
    }
    library.wavelengths_nm = scene.wavelengths_nm();
    library.fwhm_nm = scene.fwhm_nm();
    library.twofold = !scene.exact_in_float();
    return library;
}

std::vector<SpectrumRow> chosen_rows(const std::vector<SpectrumRow>& rows,
                                     const std::vector<std::string>& wanted) {
    if (wanted.empty()) return rows;
    std::vector<std::string> names;
    for (const SpectrumRow& row : rows)
        names.push_back(row.name);
    std::vector<SpectrumRow> some;
    for (const size_t k : raster::chosen_names(names, wanted, "-spectrum"))
        some.push_back(rows[k]);
    return some;
}

} // namespace hsi::tools
