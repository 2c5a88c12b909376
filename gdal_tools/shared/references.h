// SPDX-License-Identifier: MIT
// -reference: compares spectra that a search has found with the spectra of a library.
#pragma once

#include "shared/scene_and_library.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hsi::tools {

struct KnownSpectra {
    std::string path;                 ///< path of the library; empty: no library
    std::vector<std::string> spectra; ///< words of -spectrum; empty: all spectra
    BandFit fit = BandFit::automatic;
    bool rename = false; ///< true to name the found spectra after the references
};
/// Adds -reference, -spectrum, -resample and -reference-names. `found`: name of a result of the search, such
/// as "target".
void add_reference_options(tool::Builder& args, KnownSpectra& known, const std::string& found);

/// Returns the library; without spectra if no library was given. \throws the errors of chosen_library().
raster::SpectralLibrary read_references(tool::Run& run, const KnownSpectra& known, size_t scene_bands);

/// Prints and reports, for each reference spectrum, the found spectrum with the smallest angle. With
/// known.rename, puts the name of the reference before the name of the found spectrum, unless several
/// references have the same nearest spectrum, which gives a warning. Does nothing if no library was given.
/// `found`: spectra at the bands of `scene`. `title`: name of a found spectrum, such as "Target".
void compare_with_references(tool::Run& run, const KnownSpectra& known,
                             const raster::SpectralLibrary& references, raster::SpectralLibrary& found,
                             const raster::RasterSource& scene, const std::string& title);

} // namespace hsi::tools
