// SPDX-License-Identifier: MIT
// Spectra with names and wavelengths: ENVI spectral libraries (.sli beside a .hdr) and CSV tables, and what
// others deliver: tables of text, USGS splib07, ECOSTRESS, the profiles of EnMAP-Box (library_formats.h).
//
// CSV: the first line names the columns: band, wavelength (nm) and then one column a spectrum; a line a band.
// Reading takes any order of columns; band, wavelength and the line of names may be missing.
#pragma once

#include "raster/text_output.h"

#include <string>
#include <vector>

namespace hsi::raster {

struct SpectralLibrary {
    std::vector<std::string> names;
    std::vector<std::vector<double>> spectra; ///< of one length
    std::vector<double> wavelengths_nm;       ///< one a band; NaN where unknown; empty when no band has one
    std::vector<double> fwhm_nm;              ///< likewise
    std::vector<std::string> notes;           ///< what a user should know of the file
    bool gaps = false;                        ///< NaN stands for channels that were deleted, not for damage
    size_t bands() const { return spectra.empty() ? 0 : spectra.front().size(); }
};

/// The content decides, and the extension .csv; a header beside the file makes it ENVI's. `scene_bands` tells
/// bands from spectra in a file of MATLAB's, which does not say; 0: not known. Throws Error naming the file
/// and what is wrong with it.
SpectralLibrary read_spectral_library(const std::string& path, size_t scene_bands = 0);

/// What can be refused before work is done: an extension other than .sli and .csv, an existing file (or
/// header of a .sli) without overwrite, a folder that is missing. Throws Error or UsageError naming its role.
/// `also`: a form that the caller writes itself, for the message.
void check_library_output(const TextOutput& output, const std::string& also = "");

/// Writes .sli (Float32, with its .hdr) or .csv, at once or with all outputs of output.run. Throws Error; an
/// old file is then untouched.
void write_spectral_library(const TextOutput& output, const SpectralLibrary& library,
                            const std::string& history);

/// The library's spectra at other wavelengths (nm), by linear interpolation between neighbouring bands; NaN
/// where a wavelength lies outside the library's range or is unknown.
SpectralLibrary resampled(const SpectralLibrary& library, const std::vector<double>& wavelengths_nm);

} // namespace hsi::raster
