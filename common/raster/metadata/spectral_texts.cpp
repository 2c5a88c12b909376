// SPDX-License-Identifier: MIT
#include "raster/metadata/spectral_texts.h"

#include "raster/metadata/metadata_items.h"
#include "raster/metadata/spectral_metadata.h"

#include <cmath>

namespace hsi::raster {

SpectralTexts spectral_texts(const SceneMetadata& scene) {
    SpectralTexts out;
    bool uniform = true;
    for (const BandMetadata& b : scene.bands) {
        out.known |= !b.wavelength.empty();
        out.widths |= !b.fwhm.empty();
        uniform &= b.wavelength_units == scene.bands.front().wavelength_units && !b.wavelength.empty();
    }
    if (scene.bands.empty()) return out;
    out.units = uniform ? scene.bands.front().wavelength_units : "Nanometers";
    for (const BandMetadata& b : scene.bands) {
        if (uniform) {
            out.wavelength.push_back(b.wavelength);
            out.fwhm.push_back(b.fwhm);
        } else {
            out.wavelength.push_back(std::isnan(b.wavelength_nm) ? std::string()
                                                                 : number_text(b.wavelength_nm));
            out.fwhm.push_back(std::isnan(b.fwhm_nm) ? std::string() : number_text(b.fwhm_nm));
        }
    }
    return out;
}

std::string micrometres(const std::string& text, double nanometres, const std::string& units) {
    return in_micrometres(units) ? text : number_text(nanometres / 1000);
}

} // namespace hsi::raster
