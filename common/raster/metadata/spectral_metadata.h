// SPDX-License-Identifier: MIT
// Reads wavelengths, FWHM and the bad band list in all forms in which formats store them.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <string>
#include <vector>

namespace hsi::raster {

bool in_micrometres(const std::string& units);
bool in_nanometres(const std::string& units);

/// Returns the unit that an ENVI header states for its wavelengths: "wavelength units", or else the title of
/// the first axis in "z plot titles". Empty if the header does not state the unit.
std::string envi_wavelength_unit(const EnviHeader& header);

/// Returns notes for the user about the units of the scene's wavelengths: which unit was assumed, or that the
/// stated unit cannot be converted.
std::vector<std::string> unit_notes(const SceneMetadata& scene);

/// Returns the number of elements of the field `key` in the ENVI header or domain, with or without braces; 0
/// if the field does not exist.
size_t band_list_size(const SceneMetadata& scene, const std::string& key);
/// Returns true if the list `key` in the ENVI header or domain does not have one element per band of the
/// file. Tools and outputs ignore such a list.
bool is_wrong_band_list(const SceneMetadata& scene, const std::string& key);

/// Returns the name of a band as the file's header states it. GDAL's ENVI driver appends the wavelength to
/// the name, and this function removes it. Empty if the driver has used the wavelength as the name.
std::string plain_band_name(const BandMetadata& band);

/// Sets the wavelength, FWHM and bad band list of all bands of `scene`, as text and as numbers. The domains
/// and ENVI fields of `scene` must have been read, and its bands must be all bands of the file.
void read_spectral(SceneMetadata& scene);

/// The texts of wavelengths and FWHM, in one unit for all bands: the unit of the file if all bands have the
/// same unit, else nanometres.
struct SpectralTexts {
    bool known = false, widths = false;
    std::string units;
    std::vector<std::string> wavelength, fwhm;
};
SpectralTexts spectral_texts(const SceneMetadata& scene);

/// Returns a wavelength or FWHM in micrometres, as the domain IMAGERY requires. `text` is the value in the
/// file in `units`, and `nanometres` the same value in nanometres. If `units` are micrometres, `text` is
/// returned unchanged.
std::string micrometres(const std::string& text, double nanometres, const std::string& units);

/// Returns the warning about `count` invalid FWHM, the first of which is `width` in band `band`.
std::string no_widths(int band, const std::string& width, size_t count);

/// Returns the warning about implausible FWHM; empty if all are plausible. A FWHM is implausible if it is
/// larger than twice the wavelength of the band. It is also implausible if it is larger than the range of all
/// wavelengths, and larger than 20 times the distance to the neighbouring bands. Such values usually have
/// another unit. Both lists have one value per band (NaN if unknown), or are empty. `numbers` are the band
/// numbers; empty for 1, 2, 3 ...
std::string doubtful_widths(const std::vector<double>& wavelengths_nm, const std::vector<double>& fwhm_nm,
                            const std::vector<int>& numbers = {});

} // namespace hsi::raster
