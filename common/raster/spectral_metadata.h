// SPDX-License-Identifier: MIT
// Wavelengths, widths and the bad-band list, found in every form in which formats carry them.
#pragma once

#include "raster/scene_metadata.h"

#include <string>

namespace hsi::raster {

bool in_micrometres(const std::string& units);
bool in_nanometres(const std::string& units);

/// Fills wavelength, fwhm, bbl and their numbers in all bands of `scene`, whose domains and ENVI fields have
/// been read and whose bands are those of the file.
void read_spectral(SceneMetadata& scene);

} // namespace hsi::raster
