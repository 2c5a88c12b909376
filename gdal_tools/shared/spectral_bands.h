// SPDX-License-Identifier: MIT
// Bands by their wavelengths and widths, in the words of tools, and spectra of a library at other bands.
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

/// Returns "response" or "linear".
const char* resampling_name(math::Resampling method);
std::string short_number(double value); ///< ten digits, without trailing zeros
std::string number_cell(double value);  ///< short_number(), or empty if the value is not finite
std::string nm_text(double wavelength); ///< "2200 nm", "no wavelength"
/// Returns "`what` between 400 and 2500 nm", or a text for unknown wavelengths.
std::string reach_text(const math::SpectralBands& bands, const std::string& what);

/// Returns advice on how to give a scene its wavelengths.
std::string advice_on_wavelengths();

/// Gives a note if a requested range (nm; `what`: the user's text) extends by more than two spacings beyond
/// its first or last band: the scene ends there, or its bands are bad.
void note_cut_range(tool::Run& run, const std::string& what, const std::vector<double>& wavelengths_nm,
                    double from, double to);

/// The opened src; the other member is empty.
struct SceneOrLibrary {
    std::shared_ptr<raster::RasterSource> scene;
    std::optional<raster::SpectralLibrary> library;
};
/// Opens src for tools that accept both. Options of rasters are errors for a library, whose notes become
/// warnings. \throws Error and UsageError.
SceneOrLibrary open_scene_or_library(tool::Run& run);

/// A library's spectra at other bands.
struct ResampledSpectra {
    /// The bands that at least one spectrum has.
    math::ResamplingPlan plan;
    std::vector<std::vector<double>> spectra; ///< at all targets: NaN for bands that cannot be resampled
};
/// Ignores missing bands of each spectrum, so spectra with different missing bands have different target
/// bands.
ResampledSpectra resampled(const raster::SpectralLibrary& library, const math::SpectralBands& target,
                           math::Resampling method);

} // namespace hsi::tools
