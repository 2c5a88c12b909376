// SPDX-License-Identifier: MIT
// A spectral library at the bands of a scene.
#pragma once

#include "raster/raster_source.h"
#include "raster/spectral_library.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

/// The library's spectra at bands of these wavelengths (nm; empty: unknown). As they are when there are as
/// many bands and no wavelength differs by more than 0.5 nm (unknown ones do not); else interpolated between
/// neighbouring bands, NaN at bands outside of the library's range or without a wavelength. \throws Error
/// naming `role` and `path` when the numbers of bands differ and one side has no wavelengths.
raster::SpectralLibrary fit_library(const raster::SpectralLibrary& library, const std::string& role,
                                    const std::string& path, size_t bands,
                                    const std::vector<double>& wavelengths_nm);

/// Indices of the bands at which all spectra of a fitted library have a value. \throws Error naming `role`
/// and `path` when there are fewer than 2.
std::vector<size_t> common_bands(const raster::SpectralLibrary& fitted, const std::string& role,
                                 const std::string& path);

} // namespace hsi::tools
