// SPDX-License-Identifier: MIT
// Wavelengths and FWHM of bands in the messages of tools, and spectra of a library at other bands.
#pragma once

#include "math/continuum.h"
#include "math/resampling.h"
#include "raster/raster_sink.h"
#include "raster/spectral_library.h"
#include "tool/run.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::tools {

/// Returns the name of the method: "response" or "linear".
const char* resampling_name(math::Resampling method);
std::string short_number(double value); ///< Returns ten digits, without trailing zeros.
std::string number_cell(double value);  ///< Returns short_number(); empty if the value is not finite.
std::string nm_text(double wavelength); ///< Returns a text like "2200 nm"; "no wavelength" if it is unknown.
/// Returns a text like "`what` between 400 and 2500 nm", or another text if wavelengths are unknown.
std::string reach_text(const math::SpectralBands& bands, const std::string& what);

/// Returns advice on how to add wavelengths to a scene.
std::string advice_on_wavelengths();

/// Prints a note if a requested range (from .. to, in nm) extends more than two band spacings beyond the
/// first or the last band of the scene within the range. The scene then ends there, or has bad bands there.
/// `what`: text of the user.
void note_cut_range(tool::Run& run, const std::string& what, const std::vector<double>& wavelengths_nm,
                    double from, double to);

/// src, opened as a scene or as a library. One of the members is empty.
struct SceneOrLibrary {
    std::shared_ptr<raster::RasterSource> scene;
    std::optional<raster::SpectralLibrary> library;
};
/// Opens src for tools that accept scenes and libraries. For a library, options of rasters are errors, and
/// its notes are printed as warnings. \throws Error and UsageError.
SceneOrLibrary open_scene_or_library(tool::Run& run);

/// The spectra of a library at other bands.
struct ResampledSpectra {
    /// The plan for the bands that at least one spectrum has.
    math::ResamplingPlan plan;
    /// Spectra at all target bands; NaN for bands that cannot be computed.
    std::vector<std::vector<double>> spectra;
};
/// Resamples each spectrum without its missing bands. Spectra with different missing bands can therefore have
/// different target bands.
ResampledSpectra resampled(const raster::SpectralLibrary& library, const math::SpectralBands& target,
                           math::Resampling method);

} // namespace hsi::tools
