// SPDX-License-Identifier: MIT
// The spectra that gdal_hsi_spectra has taken out of a scene, in the forms in which it writes them.
#pragma once

#include "raster/libraries/spectral_library.h"
#include "raster/source/raster_source.h"

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

/// Those that the words of -spectrum ask for, in their order; all when there are none. \throws Error as
/// raster::chosen_names().
std::vector<SpectrumRow> chosen_rows(const std::vector<SpectrumRow>& rows,
                                     const std::vector<std::string>& wanted);

/// Profiles as EnMAP-Box and QGIS read them: a feature a spectrum, at its place where it is a single pixel's.
/// Wavelengths in nm; unknown ones, and values that are none, are null.
std::string geojson_of(const std::vector<SpectrumRow>& rows, const raster::RasterSource& scene);

/// Deviations are spectra of their own, behind the mean; in double precision where the scene's type tells
/// more than single.
raster::SpectralLibrary library_of(const std::vector<SpectrumRow>& rows, const raster::RasterSource& scene);

} // namespace hsi::tools
