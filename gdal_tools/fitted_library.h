// SPDX-License-Identifier: MIT
// A spectral library at the bands of a scene.
#pragma once

#include "raster/libraries/spectral_library.h"
#include "raster/source/raster_source.h"
#include "tool/definition.h"
#include "tool/run.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

/// The library's spectra at bands of these wavelengths (nm; empty: unknown). As they are when there are as
/// many bands and no wavelength differs by more than 0.5 nm (unknown ones do not); else interpolated between
/// neighbouring bands, NaN at bands outside of the library's range or without a wavelength. \throws Error
/// naming `role` and `path` when the numbers of bands differ and one side has no wavelengths, and when a
/// spectrum holds what is infinite.
raster::SpectralLibrary fit_library(const raster::SpectralLibrary& library, const std::string& role,
                                    const std::string& path, size_t bands,
                                    const std::vector<double>& wavelengths_nm);

/// Reads a library, tells its notes as warnings, and takes the spectra that `wanted` (the words of -spectrum)
/// asks for; all when it is empty. `scene_bands` as read_spectral_library() has it. \throws Error as
/// read_spectral_library() and chosen_names().
raster::SpectralLibrary chosen_library(tool::Run& run, const std::string& role, const std::string& path,
                                       const std::vector<std::string>& wanted, size_t scene_bands = 0);

/// Spectra at the bands of a scene, in its units.
struct SceneSpectra {
    std::vector<std::string> names;
    std::vector<std::vector<double>> spectra; ///< of one length
};

/// The spectra of the library that `wanted` asks for at the scene's bands, times `scale`. Bands that the
/// library does not know are left out of the scene, which a note tells, beginning with `what` ("Unmixing"),
/// and spectra that lack bands by overlap_of(); without wavelengths also bands of the scene without a single
/// value, where the library has exactly the others. The library goes into the report. \throws Error naming
/// `role` and the file, and the spectrum that is infinite.
SceneSpectra spectra_for_scene(tool::Run& run, const std::string& role, const std::string& path,
                               const std::vector<std::string>& wanted, double scale, const std::string& what,
                               std::shared_ptr<raster::RasterSource>& scene);

/// -spectrum of a tool that reads a library.
void add_spectrum_option(tool::Call& call, std::vector<std::string>& wanted, const std::string& library);

/// The same at the bands of `scene`, which may have lost some since: bands are the file bands of `library`'s
/// values.
SceneSpectra without_lost_bands(const SceneSpectra& library, const std::vector<int>& bands,
                                const raster::RasterSource& scene);

/// Warns when the median length of the spectra is under a tenth or over ten times that of the scene's first
/// 65,536 valid pixels: reflectance in 0..1 beside a scene of integers is the commonest mistake.
void compare_levels(tool::Run& run, const raster::RasterSource& scene, const SceneSpectra& library);

} // namespace hsi::tools
