// SPDX-License-Identifier: MIT
// Wavelengths and widths as texts for an output.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <string>
#include <vector>

namespace hsi::raster {

/// One unit for all bands: the file's own when it is the same everywhere, else nanometres.
struct SpectralTexts {
    bool known = false, widths = false;
    std::string units;
    std::vector<std::string> wavelength, fwhm;
};
SpectralTexts spectral_texts(const SceneMetadata& scene);

/// An item of the domain IMAGERY: the file's own digits where they are micrometres.
std::string micrometres(const std::string& text, double nanometres, const std::string& units);

} // namespace hsi::raster
