// SPDX-License-Identifier: MIT
// Which spectra of a library are used, and at which bands, where some lack values.
#pragma once

#include "raster/libraries/spectral_library.h"
#include "tool/run.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hsi::tools {

/// Where a fitted library has values. Spectra may lack some of the scene's bands (channels that were deleted,
/// another spectrometer), and each band that is left out is one for all of them.
struct Overlap {
    std::vector<size_t> bands;    ///< at which all of `spectra` have a value
    std::vector<size_t> spectra;  ///< those that are kept, in the library's order
    std::vector<size_t> left_out; ///< the others
};

/// keep: all spectra are kept. Else they are counted in from those that lack least to those that lack most,
/// and the count is taken at which spectra times bands, the values that are used, are most. \throws Error
/// naming `role` and `path` when fewer than 2 bands are left.
Overlap overlap_of(const raster::SpectralLibrary& fitted, const std::string& role, const std::string& path,
                   bool keep);

/// A warning that counts the spectra that are left out and names the first, and a note on the bands,
/// beginning with `what` ("Unmixing").
void tell_overlap(tool::Run& run, const Overlap& overlap, const raster::SpectralLibrary& fitted,
                  const std::string& role, const std::string& path, const std::string& what);

/// True when -spectrum was given and means single spectra alone: none of these is left out.
inline bool names_all(const std::vector<std::string>& wanted) {
    return !wanted.empty() && raster::are_exact(wanted);
}

} // namespace hsi::tools
