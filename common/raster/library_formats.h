// SPDX-License-Identifier: MIT
// The readers behind read_spectral_library(), one a format.
#pragma once

#include "raster/spectral_library.h"

#include <string>
#include <vector>

namespace hsi::raster {

/// Columns between commas, semicolons or tabs, whichever the first line has most of; with or without a line
/// of names. Behind semicolons and tabs a comma in a number is a decimal one.
SpectralLibrary read_library_table(const std::string& path, const std::string& text);

/// USGS Spectral Library 7 as text: a title line with "Record=", then a value a line; the wavelengths are a
/// file of the same kind beside it or in a folder above.
bool is_usgs_text(const std::string& text);
SpectralLibrary read_usgs_text(const std::string& path, const std::string& text);

/// ECOSTRESS (and ASTER) as text: "Name: ..." and further lines of a header, then wavelength and value a
/// line. Percent become fractions.
bool is_ecostress_text(const std::string& text);
SpectralLibrary read_ecostress_text(const std::string& path, const std::string& text);

/// Profiles in the form of EnMAP-Box and QGIS: features whose field holds {"x": [...], "y": [...], "xUnit":
/// ...}, in GeoJSON or a GeoPackage.
bool holds_features(const std::string& text); ///< by a file's beginning
SpectralLibrary read_profiles(const std::string& path);

/// Files of MATLAB's: an array (band, spectrum), or the other way round where the scene's bands, wavelengths
/// or names tell so; `scene_bands`: 0 when there is no scene.
bool is_matlab(const std::string& path);
SpectralLibrary read_matlab_library(const std::string& name, size_t scene_bands);

/// Throws Error naming the file, and what formats there are.
[[noreturn]] void refuse_library(const std::string& path, const std::string& what);
double library_number(const std::string& text); ///< NaN when it is none
/// In nanometres; empty when none is known.
void library_to_nm(std::vector<double>& values, const std::string& units);
/// The file's bytes. \throws Error.
std::string library_text(const std::string& path);

} // namespace hsi::raster
