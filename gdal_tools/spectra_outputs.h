// SPDX-License-Identifier: MIT
// What gdal_hsi_spectra writes.
#pragma once

#include "raster/raster_source.h"
#include "raster/spectral_library.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::tools {

/// A spectrum with what is known of it.
struct SpectrumRow {
    std::string name;
    int value = 0; ///< its class
    int64_t pixels = 1;
    std::vector<double> mean, deviation;
    int64_t line = -1, sample = -1; ///< of a single pixel
};

/// Profiles as EnMAP-Box and QGIS read them: a feature a spectrum, at its place where it is a single pixel's.
std::string geojson_of(const std::vector<SpectrumRow>& rows, const raster::RasterSource& scene);

/// Deviations are spectra of their own; in double precision where the scene's type tells more than single.
raster::SpectralLibrary library_of(const std::vector<SpectrumRow>& rows, const raster::RasterSource& scene);

} // namespace hsi::tools
