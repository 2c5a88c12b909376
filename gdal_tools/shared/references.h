// SPDX-License-Identifier: MIT
// Compares spectra that a search has found with those of a library: -reference.
#pragma once

#include "shared/scene_and_library.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hsi::tools {

struct KnownSpectra {
    std::string path;                 ///< of the library; empty without one
    std::vector<std::string> spectra; ///< the words of -spectrum; empty: all
    BandFit fit = BandFit::automatic;
};
/// Adds -reference, -spectrum and -resample. `found`: the search's result, "target".
void add_reference_options(tool::Builder& args, KnownSpectra& known, const std::string& found);

/// Returns the library; without spectra if no library is given. \throws Error as chosen_library().
raster::SpectralLibrary read_references(tool::Run& run, const KnownSpectra& known, size_t scene_bands);

/// Prints and reports, for every reference, the found spectrum with the smallest angle; does nothing without
/// a library. `found` are spectra at the bands of `scene`; `title` is "Target".
void compare_with_references(tool::Run& run, const KnownSpectra& known,
                             const raster::SpectralLibrary& references, const raster::SpectralLibrary& found,
                             const raster::RasterSource& scene, const std::string& title);

} // namespace hsi::tools
