// SPDX-License-Identifier: MIT
#include "raster/sink/spec_metadata.h"

#include "core/error.h"
#include "raster/gdal/gdal_errors.h"

#include <cstdlib>
#include <limits>

namespace hsi::raster {
namespace {

std::shared_ptr<const OGRSpatialReference> parse_srs(const std::string& text) {
    auto srs = std::shared_ptr<OGRSpatialReference>(new OGRSpatialReference(),
                                                    [](OGRSpatialReference* s) { s->Release(); });
    const GdalErrors errors;
    if (srs->SetFromUserInput(text.c_str()) != OGRERR_NONE)
        throw UsageError("'" + text + "' is no coordinate reference system that PROJ knows" +
                         (errors.any() ? ": " + errors.text() : ""));
    srs->SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

std::string item(const std::map<std::string, std::string>& items, const char* key) {
    const auto at = items.find(key);
    return at == items.end() ? std::string() : at->second;
}

} // namespace

bool is_geographic(const std::string& srs) { return parse_srs(srs)->IsGeographic() != 0; }

std::optional<SceneMetadata> metadata_of(const OutputSpec& spec) {
    if (spec.srs.empty() && !spec.geotransform && spec.envi.empty()) return std::nullopt;
    SceneMetadata scene;
    scene.file_bands = spec.shape.bands;
    scene.window = Rect{0, 0, spec.shape.samples, spec.shape.lines};
    if (!spec.srs.empty()) scene.srs = parse_srs(spec.srs);
    scene.geotransform = spec.geotransform;
    for (const auto& [key, value] : spec.envi)
        scene.envi.set(key, value);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (int b = 0; b < spec.shape.bands; ++b) {
        BandMetadata band;
        band.file_band = b + 1;
        band.wavelength_nm = band.fwhm_nm = nan;
        if (static_cast<size_t>(b) < spec.bands.size()) {
            const BandSpec& from = spec.bands[static_cast<size_t>(b)];
            band.description = from.description;
            band.scale = from.scale;
            band.offset = from.offset;
            band.unit = from.unit;
            for (const auto& [key, value] : from.metadata)
                band.domains[""].push_back(key + "=" + value);
            band.wavelength = item(from.metadata, "wavelength");
            band.wavelength_units = item(from.metadata, "wavelength_units");
            band.fwhm = item(from.metadata, "fwhm");
            band.bbl = item(from.metadata, "bbl");
            if (!band.wavelength.empty())
                band.wavelength_nm =
                    to_nanometres(std::atof(band.wavelength.c_str()), band.wavelength_units, 1000);
            if (!band.fwhm.empty())
                band.fwhm_nm = to_nanometres(std::atof(band.fwhm.c_str()), band.wavelength_units, 1000);
        }
        scene.bands.push_back(std::move(band));
    }
    return scene;
}

} // namespace hsi::raster
